package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/lock"
	"plimsoll/internal/node"
)

func TestDemoConfig(t *testing.T) {
	g := &globals{Dirs: node.Dirs{CgroupRoot: "/cg"}}
	f := demoFlags{seconds: 30, utilization: 0.45, limit: 0.5, modes: names(experiment.Modes()), seed: 7, loaded: true}
	c, err := f.config(g, "/bin/plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	if c.CgroupRoot != "/cg" || c.Agent != "/bin/plimsoll" || c.PerMode != 30*time.Second || c.Rounds != 3 ||
		c.Seed != 7 ||
		c.Utilization != 0.45 || !c.Loaded || c.Work != 40*time.Millisecond || len(c.Modes) != len(experiment.Modes()) {
		t.Errorf("config %+v", c)
	}
	f.requests = experiment.BenchRequests
	if c, err = f.config(g, ""); err != nil || c.PerMode < 500*time.Second {
		t.Errorf("3000 requests in %v, %v", c.PerMode, err)
	}
	f.figures, f.modes = true, []string{"none", "unlimited"}
	if c, err = f.config(g, ""); err != nil || !slices.Contains(c.Modes, experiment.UnlimitedAgain) {
		t.Errorf("figures of the modes %v, %v", c.Modes, err)
	}
	f.modes = []string{"fast"}
	if _, err := f.config(g, ""); err == nil {
		t.Error("mode fast is taken")
	}
}

// TestDemoFailsBeforeItStarts has a root without control groups: nothing can be made there, and the error says what
// to do.
func TestDemoFailsBeforeItStarts(t *testing.T) {
	for _, c := range []struct {
		args []string
		err  string
		hint string
	}{
		{[]string{"demo", "--cgroup-root", t.TempDir()}, "no cpu controller", "--cgroup-root"},
		{[]string{"demo", "--utilization", "100%"}, "utilization 100 %", ""},
		{[]string{"demo", "--utilization", "45"}, "write 45% if you mean percent", ""},
		{[]string{"demo", "--modes", "fast"}, `mode "fast"`, ""},
		{[]string{"demo", "now"}, "unknown command", ""},
	} {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(c.args)
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.Execute()
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: error %v, want %q", c.args, err, c.err)
			continue
		}
		var h interface{ Hint() string }
		if c.hint != "" && (!errors.As(err, &h) || !strings.Contains(h.Hint(), c.hint)) {
			t.Errorf("%v: no hint with %q", c.args, c.hint)
		}
		if out.Len() > 0 {
			t.Errorf("%v: says %q", c.args, out.String())
		}
	}
}

// TestDemoBesideAnAgent: the demo fails at once when its own agent cannot start, and not when the service is up.
func TestDemoBesideAnAgent(t *testing.T) {
	n := newNode(t)
	held, err := lock.Take(n.place())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	_, stderr, err := n.run("demo", "--seconds", "1")
	var locked *lock.TakenError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() ||
		!strings.Contains(stderr, "hint: ask it with `plimsoll status "+n.flags()+"`, or stop it first") {
		t.Errorf("%v, %q", err, stderr)
	}
	if groups, err := filepath.Glob(filepath.Join(n.cgroups, "cpu", "plimsoll*")); err != nil || len(groups) > 0 {
		t.Errorf("groups were made: %v, %v", groups, err)
	}
}
