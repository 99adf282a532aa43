package main

import (
	"slices"
	"strings"
	"testing"
)

// TestCompletion: the tab key offers the arguments of a command.
func TestCompletion(t *testing.T) {
	n := newNode(t).withAgent(t, &fakeAgent{})
	for args, want := range map[string]string{
		"pause |":                     "default/api/nginx default/web/nginx",
		"release default/w|":          "default/web/nginx",
		"resume /pods/|":              "/pods/api /pods/web",
		"pause default/web/nginx |":   "",
		"record default/web/nginx |":  "",
		"diagnose /pods/|":            "/pods/web", // the other is the agent's word only: its group is not there
		"run --policy |":              "auto cfsQuotaBurstOnly cpuBurstOnly none",
		"plan --policy |":             "auto cfsQuotaBurstOnly cpuBurstOnly none",
		"run --log-format |":          "json text",
		"status default/a|":           "default/api/nginx",
		"status --sort |":             "lost name throttled use",
		"simulate exp --rule |":       "published strict",
		"simulate data --replay |":    "blocks iid offsets",
		"completion |":                "bash fish powershell zsh",
		"pause |--state-dir /nowhere": "",
	} {
		words, rest, _ := strings.Cut(args, "|")
		last := words[strings.LastIndex(words, " ")+1:]
		line := append(strings.Fields(rest), strings.Fields(strings.TrimSuffix(words, last))...)
		stdout, _, err := n.run(append(append([]string{"__complete"}, line...), last)...)
		var got []string
		for _, l := range strings.Split(strings.TrimSpace(stdout), "\n") {
			if !strings.HasPrefix(l, ":") {
				got = append(got, strings.Split(l, "\t")[0])
			}
		}
		slices.Sort(got)
		if list := strings.Join(got, " "); err != nil || list != want {
			t.Errorf("%s: %q, %v; want %q", args, list, err, want)
		}
	}
	for _, args := range []string{"completion", "completion csh"} {
		if stdout, stderr, err := n.run(strings.Fields(args)...); exitCode(err) != exitMisused || stdout != "" ||
			!strings.Contains(stderr, "hint: plimsoll completion bash, fish, powershell or zsh") {
			t.Errorf("%s: %q, %q, %v", args, stderr, stdout, err)
		}
	}
}
