package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// TestHelpIsInSections: every command that people see stands in one of them.
func TestHelpIsInSections(t *testing.T) {
	help, _, err := (testNode{}).run("--help")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	for _, g := range root.Groups() {
		if !strings.Contains(help, "\n"+g.Title+"\n") {
			t.Errorf("the help has no section %q", g.Title)
		}
	}
	if len(root.Groups()) < 4 || !strings.Contains(help, "plimsoll plan --policy auto") {
		t.Errorf("%d sections, or no example:\n%s", len(root.Groups()), help)
	}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.GroupID == "" {
			t.Errorf("%s is in no section", cmd.Name())
		}
	}
}

// TestEachCommandHasAnExample: its help shows how it is called, and the example begins with that call.
func TestEachCommandHasAnExample(t *testing.T) {
	seen := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			look(child)
		}
		if cmd.Hidden || cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), " completion") {
			return
		}
		seen++
		if !strings.Contains(cmd.Example, "  "+cmd.CommandPath()) {
			t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
		}
	}
	look(newRoot())
	look(newPlugin())
	if seen < 35 {
		t.Errorf("only %d commands", seen)
	}
}

// TestExitCodes: the exit code distinguishes wrong use, no answer, and all other errors.
func TestExitCodes(t *testing.T) {
	stands := func(a *fakeAgent) *fakeAgent { a.err = &web.Error{Msg: "the loop hangs", Code: 503}; return a }
	for _, c := range []struct {
		args  string
		agent *fakeAgent
		want  int
	}{
		{"hold", nil, exitNoAgent},
		{"report", nil, exitNoAgent},
		{"hold", stands(&fakeAgent{}), exitNoAgent},
		{"hold", &fakeAgent{err: errors.New("no right")}, exitFailed},
		{"pause nobody", &fakeAgent{}, exitFailed},
		{"run --config /nonexistent", nil, exitFailed},
		{"plan --of-agent --config /nonexistent", nil, exitMisused},
		{"plan --of-agent --include /lab/*", nil, exitMisused},
		{"plan --of-agent --watch 11s", nil, exitMisused},
		{"plan --of-agent --policy nosuch", nil, exitMisused},
		{"plan --of-agent", nil, exitNoAgent},
	} {
		n := newNode(t)
		if c.agent != nil {
			n = n.withAgent(t, c.agent)
		}
		if _, _, err := n.run(strings.Fields(c.args)...); err == nil || exitCode(err) != c.want {
			t.Errorf("%s: exit code %d, want %d: %v", c.args, exitCode(err), c.want, err)
		}
	}
}

// TestComplain: a name in an error does not steer the terminal, and its lines stay lines.
func TestComplain(t *testing.T) {
	var b bytes.Buffer
	complain(&b, "plimsoll", "--state-dir /s", withHint(errors.New("no /lab/\x1b[31mred\nsecond"),
		"give /lab/\x1b[31mred to `plimsoll status`"))
	const want = "plimsoll: error: no /lab/\uFFFD[31mred\nsecond\nplimsoll: hint: give /lab/\uFFFD[31mred to " +
		"`plimsoll status --state-dir /s`\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	complain(&b, "kubectl plimsoll", "--node n1", &report.UnknownError{Arg: "web"})
	if !strings.Contains(b.String(), "kubectl plimsoll: hint: `kubectl plimsoll status --node n1` lists") {
		t.Errorf("of the plugin: %q", b.String())
	}
}
