package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/report"
)

// joined is a text with its lines joined.
func joined(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestNothingMatches: a mistyped path causes a message, with the groups that may be meant.
func TestNothingMatches(t *testing.T) {
	n := recordNode(t)
	for args, want := range map[string][]string{
		"--policy auto --include /nosuch/*": {"nothing to change",
			"No control group matches '/nosuch/*'. hint: a star does not cross a slash",
			"These groups have a limit and are not managed, because nothing names them: /lab/b, /lab/dark, " +
				"/pods/web. hint: --include /lab/b"},
		"--policy auto": {"not managed, because nothing names them: /lab/b"},
		"": {"Where no override says otherwise the policy is none, with which no limit is changed. " +
			"hint: --policy auto"},
	} {
		stdout, stderr, err := n.run(append([]string{"plan", "--watch", "0s"}, strings.Fields(args)...)...)
		for _, one := range want {
			if err != nil || !strings.Contains(joined(stdout), one) {
				t.Errorf("%s: %v, %s, %q; want %q", args, err, stderr, stdout, one)
			}
		}
	}
	stdout, _, err := n.run("plan", "--watch", "0s", "--policy", "auto", "--include", "/nosuch/*", "--json")
	var p report.Plan
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &p)); err != nil || len(p.Notes) != 2 ||
		len(p.Changes) != 0 {
		t.Errorf("%v, %+v", err, p)
	}
}

// TestSelection: an agent without any group says why, in the log and in the status.
func TestSelection(t *testing.T) {
	n := recordNode(t)
	dir := cgroup.NewDir(n.cgroups)
	defer dir.Close()
	tree, err := cgroup.Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	for include, want := range map[string]string{"": "", "/lab/*": "",
		"/nosuch/*": "nothing is managed: no control group matches '/nosuch/*' (hint: `plimsoll plan`"} {
		var globs []string
		if include != "" {
			globs = []string{include}
		}
		file, err := config.FromFlags("auto", globs)
		if err != nil {
			t.Fatal(err)
		}
		found, err := cgroupfs.OfHost(tree, "", file, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s := &selection{Scanner: found}
		s.take(file, slog.New(slog.NewTextHandler(&log, nil)))
		if got := s.empty(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", include, got, want)
		}
		if warned := strings.Contains(log.String(), "glob=/nosuch/*"); warned != (want != "") {
			t.Errorf("%q: log %s", include, log.String())
		}
	}
	if (*selection)(nil).empty() != "" {
		t.Error("nothing has a reason")
	}
}
