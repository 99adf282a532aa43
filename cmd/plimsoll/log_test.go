package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestLogFormat: one line for people, or one object for log collectors.
func TestLogFormat(t *testing.T) {
	write := func(format string) string {
		t.Helper()
		var b strings.Builder
		log, err := (&logFlags{format: format}).logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("hidden")
		log.Warn("write", "error", errors.New("no"))
		return b.String()
	}
	if line := write("text"); !strings.HasSuffix(line, " level=WARN msg=write error=no\n") {
		t.Errorf("text: %q", line)
	}
	var line struct{ Level, Msg, Error string }
	if err := json.Unmarshal([]byte(write("json")), &line); err != nil || line.Level != "WARN" || line.Msg != "write" ||
		line.Error != "no" {
		t.Errorf("json: %+v, %v", line, err)
	}
	_, stderr, err := (testNode{}).run("run", "--log-format", "xml")
	if err == nil || exitCode(err) != exitMisused || !strings.Contains(stderr, "text, json") {
		t.Errorf("xml: %v, %q", err, stderr)
	}
}

// TestHostileNamesInTheLog: whatever a group or container is called, its line is one line that prints, in both formats,
// and the name is no format.
func TestHostileNamesInTheLog(t *testing.T) {
	name := "default/\x1b[2J\u009b31m\u202e%d%!n(MISSING)\x7f\r\nlevel=ERROR msg=forged\u2028<script>" +
		strings.Repeat("x", 253)
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		plain, err := (&logFlags{format: format}).logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(logqueue.Named(plain.Handler(), func(string) string { return name }))
		log.Warn("write", "cgroup", "/lab/"+name, "error", errors.New(name))
		log.With("object", name).WithGroup(name).Info(name, name, name)
		text := b.String()
		if strings.Count(text, "\n") != 2 || strings.ContainsFunc(text,
			func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", format, text)
		}
		if n := strings.Count(text, "%d%!n(MISSING)"); n < 7 {
			t.Errorf("%s: the name is in it %d times:\n%s", format, n, text)
		}
	}
}

// TestLogNamesContainers: the path of a container says nothing to people, so its name stands beside it.
func TestLogNamesContainers(t *testing.T) {
	var b strings.Builder
	plain, err := (&logFlags{format: "text"}).logger(&b)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(logqueue.Named(plain.Handler(),
		func(group string) string { return map[string]string{"/docker/0123": "web"}[group] }))
	log.Warn("write", "cgroup", "/docker/0123", "knob", "quota")
	log.With("a", 1).Warn("write", "cgroup", "/docker/0123")
	log.Warn("write", "cgroup", "/lab/a")
	log.Warn("version", "cgroup", 1)
	want := []string{"cgroup=/docker/0123 knob=quota name=web", "a=1 cgroup=/docker/0123 name=web", "cgroup=/lab/a",
		"cgroup=1"}
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if !strings.HasSuffix(line, want[i]) {
			t.Errorf("%q, want it to end with %q", line, want[i])
		}
	}
}

// TestPlanNamesContainers: the same in a plan. A group that has no name but its path has none.
func TestPlanNamesContainers(t *testing.T) {
	n := recordNode(t)
	id := strings.Repeat("0123", 16)
	n.withGroup(t, "docker/"+id, "50000", "100000")
	dir := cgroup.NewDir(n.cgroups)
	defer dir.Close()
	tree, err := cgroup.Detect(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := config.FromFlags("auto", []string{"/lab/*"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := cgroupfs.OfHost(tree, "", file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	of := func(group string) plan.Change { return plan.Change{Cgroup: workload.ID{Path: group}} }
	got := found.NamesOf([]plan.Change{of("/docker/" + id), of("/lab/a"), of("/nosuch")})
	if diff := cmp.Diff(map[string]string{"/docker/" + id: id[:12]}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestLoggedCommandsFindTheAgent: a command that a line names works when it is copied.
func TestLoggedCommandsFindTheAgent(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		log, err := (&logFlags{format: format, flags: "--state-dir /run/lab"}).logger(&b)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("held until `plimsoll resume`", "hint", "`plimsoll status` says why", "n", 1)
		for _, want := range []string{"`plimsoll resume --state-dir /run/lab`",
			"`plimsoll status --state-dir /run/lab` says"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %s in %s", format, want, b.String())
			}
		}
	}
}
