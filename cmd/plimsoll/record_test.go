package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/capacity"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/golden"
	"plimsoll/internal/hint"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// withGroup adds a group with a limit and counters to the v1 tree of a node.
func (n testNode) withGroup(t *testing.T, name, quota, period string) {
	t.Helper()
	n.write(t, name+"/cpu.cfs_quota_us", quota+"\n")
	n.write(t, name+"/cpu.cfs_period_us", period+"\n")
	n.write(t, name+"/cpu.stat", "nr_periods 10\nnr_throttled 1\nthrottled_time 5000000\n")
	n.write(t, name+"/cpuacct.usage", "123456789\n")
}

// recordNode has two groups of one period, one of another, and one that nothing counts.
func recordNode(t *testing.T) testNode {
	n := newNode(t)
	n.write(t, "cpuacct.usage", "1\n") // cpu and cpuacct are mounted together
	n.withGroup(t, "pods/web", "150000", "100000")
	n.withGroup(t, "lab/a", "-1", "100000")
	n.withGroup(t, "lab/b", "50000", "50000")
	n.withGroup(t, "lab/dark", "50000", "100000")
	if err := os.Remove(filepath.Join(n.cgroups, "cpu", "lab/dark/cpuacct.usage")); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRecordRefuses(t *testing.T) {
	n := recordNode(t)
	dir := t.TempDir()
	t.Chdir(dir) // where a recording that is not refused would go
	old := filepath.Join(dir, "old.npy")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct{ err, hint string }{
		"/pods/web":                               {"give --for or --samples", "--for 1h"},
		"/pods/web --samples 5 --for 1s":          {"--for 1s and --samples 5 both say", "leave one of them out"},
		"/pods/web --for 150ms":                   {"--for 150ms: that is 1 periods of 100ms, and 2 to 2^31", "36000"},
		"/pods/web --for -1s":                     {"2 to 2^31", "36000"},
		"--samples 5":                             {"requires at least 1 arg", ""},
		"/pods/web --samples 1":                   {"2 to 2^31", "36000"},
		"/pods/web --samples 3000000000":          {"2 to 2^31", "36000"},
		"/pods/web --samples 5 --out x.txt":       {`".txt" is not known`, ".npy or .csv"},
		"/pods/web --samples 5 --out /none/x.npy": {"no such folder", "make it"},
		"/pods/web --samples 5 --out " + old:      {"already exists", "--force"},
		"/pods/web /lab/b --samples 5": {"the limit of /pods/web has a period of 100ms, that of /lab/b " +
			"one of 50ms", "one by one"},
		"/lab/none --samples 5":                    {"no container is called", "path of a control group"},
		"nobody --samples 5":                       {"no container is called", "path of a control group"},
		"/none/* --samples 5":                      {`nothing is called like "/none/*"`, "one part of a path"},
		"[ --samples 5":                            {"syntax error in pattern", ""},
		"/pods/web --samples 5 --cgroups 0":        {"--cgroups 0", ""},
		"/pods/web --samples 5 --cgroup-root /dev": {"no cpu controller", "--cgroup-root"},
	} {
		out, stderr, err := n.run(append([]string{"record"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want.err) || !strings.Contains(stderr, want.hint) || out != "" {
			t.Errorf("%s: out %q, stderr %q, error %v; want %q and the hint %q", args, out, stderr, err, want.err,
				want.hint)
		}
	}
	if data, err := os.ReadFile(old); string(data) != "old" {
		t.Errorf("the old file is %q, %v", data, err)
	}
}

// TestRecord records files that do not change: all is there, and zero.
func TestRecord(t *testing.T) {
	n := recordNode(t)
	n.write(t, "pods/web/cpu.cfs_period_us", "1000\n") // the least: the test is quick
	t.Chdir(t.TempDir())
	out, stderr, err := n.run("record", "/lab/a", "/pods/web", "--samples", "20")
	if err != nil || !strings.Contains(out, "recording.npy: 20 periods of 1ms") ||
		!strings.Contains(out, "begin at a time of their own") || strings.Contains(stderr, "█") {
		t.Errorf("%s, %s, %v", out, stderr, err)
	}
	got, err := trace.Load("recording.npy")
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != 20 || got.Period != time.Millisecond || got.CPUs < 1 || got.Series[0].Name != "/lab/a" ||
		got.Series[0].Limited() || got.Series[1].Limit != 150 {
		t.Errorf("%+v", got)
	}
	out, _, err = n.run("record", n.cgroups+"/cpu/lab/a", "--for", "250ms", "--json", "--out", "a.csv")
	var r report.Recording
	if err := errors.Join(err, json.Unmarshal([]byte(out), &r)); err != nil || r.Schema != report.RecordingSchema ||
		r.Periods != 2 || len(r.Warnings) < 2 {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := trace.Load("a.csv"); err != nil {
		t.Error(err)
	}
}

// TestRecordToStdout: the file alone goes to standard output, whatever is said about it to standard error, and none to
// a terminal.
func TestRecordToStdout(t *testing.T) {
	n := recordNode(t)
	n.write(t, "pods/web/cpu.cfs_period_us", "1000\n")
	t.Chdir(t.TempDir())
	for _, flag := range []string{"--json=false", "--json"} {
		out, stderr, err := n.run("record", "/pods/web", "--samples", "20", "--out", "-", flag)
		if err != nil || !strings.Contains(stderr, "standard output") {
			t.Errorf("%s, %v", stderr, err)
		}
		if err := os.WriteFile("web.csv", []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := trace.Load("web.csv"); err != nil || got.Len() != 20 {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
		t.Errorf("files were made: %v, %v", files, err)
	}
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	for _, run := range []func() error{
		func() error { return recordFlags{out: toStdout, cgroups: 1}.check(screen) },
		func() error { return (&snapshotFlags{out: toStdout}).run(t.Context(), screen, io.Discard) },
	} {
		if err := run(); err == nil || !hint.Misused(err) || !strings.Contains(err.Error(), "terminal") {
			t.Errorf("to a terminal: %v", err)
		}
	}
}

// TestContainerIndex: record, advise and diagnose find containers by the agent's names, groups by their paths, both by
// globs, and each once.
func TestContainerIndex(t *testing.T) {
	n := recordNode(t).withAgent(t, &fakeAgent{})
	tree, err := cgroup.Detect(cgroup.NewDir(n.cgroups))
	if err != nil {
		t.Fatal(err)
	}
	g := &globals{Dirs: n.dirs()}
	c, err := g.containerIndex(context.Background(), tree, &config.File{})
	if err != nil {
		t.Fatal(err)
	}
	const web = "/pods/web default/web/nginx"
	for args, want := range map[string][]string{
		"default/web/nginx /lab/a":         {web, "/lab/a /lab/a"},
		"/pods/web /pods/web/ web":         {web},
		n.cgroups + "/cpu/pods/web":        {web},
		n.cgroups + "/cpu/lab/a":           {"/lab/a /lab/a"},
		"default/web/*":                    {web},
		"/lab/?":                           {"/lab/a /lab/a", "/lab/b /lab/b"},
		"/lab/b /pods/* default/web/ngin?": {"/lab/b /lab/b", web, "/pods/api default/api/nginx"},
	} {
		found, err := c.Find(strings.Fields(args))
		var got []string
		for _, one := range found {
			got = append(got, one.Cgroup+" "+one.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got\n%s", args, err, diff)
		}
	}
	if _, err := c.Find([]string{"nginx"}); err == nil || !strings.Contains(err.Error(), "may be any of") {
		t.Errorf("error %v", err)
	}
	if got := c.Containers(); len(got) != 1 || got[0].Cgroup != "/pods/web" {
		t.Errorf("all containers: %+v", got)
	}
}

// recorded is a recording of a limited container that was throttled half of the time.
func recorded() trace.Trace {
	return trace.Trace{Period: 100 * time.Millisecond, CPUs: 4, Late: 1, Series: []trace.Series{
		{Name: "default/web/nginx", Limit: 0.5, Used: []float64{0.125, 0.1, 0.125, 0.05},
			Throttled: []float64{0.1, 0, 0.05, 0}},
		{Name: "/lab/free", Limit: math.Inf(1), Used: []float64{0.01, 0.02, 0.03, 0.9}},
	}}
}

// TestRecordKeeps: a recording is also saved when it ended early, and only then there is an error.
func TestRecordKeeps(t *testing.T) {
	for _, tt := range []struct {
		stopped     error
		err, stderr string
	}{
		{nil, "", ""},
		{context.Canceled, "", "stopped after 4 of 10 periods"},
		{fs.ErrNotExist, "ended after 4 of 10 periods", ""},
	} {
		var out, stderr bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		cmd.SetErr(&stderr)
		f := recordFlags{out: filepath.Join(t.TempDir(), "x.npy"), cgroups: 10}
		err := f.keep(cmd, recorded(), report.RecordingCost{CPU: time.Millisecond, Elapsed: time.Second}, 10,
			tt.stopped)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
			!strings.Contains(stderr.String(), tt.stderr) || (tt.stderr == "") != (stderr.Len() == 0) {
			t.Errorf("%v: error %v, stderr %q", tt.stopped, err, &stderr)
		}
		if _, err := trace.Load(f.out); err != nil {
			t.Error(err)
		}
	}
	f := recordFlags{out: filepath.Join(t.TempDir(), "x.npy")}
	if err := f.keep(&cobra.Command{}, trace.Trace{}, report.RecordingCost{}, 10, context.Canceled); err == nil ||
		!strings.Contains(err.Error(), "nothing was recorded") {
		t.Errorf("error %v", err)
	}
}

func TestRecordingGolden(t *testing.T) {
	var out bytes.Buffer
	r := capacity.Describe("web.npy", recorded(),
		report.RecordingCost{CPU: 1200 * time.Microsecond, Elapsed: 400 * time.Millisecond}, 10)
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "record/text.txt", out.String())
	out.Reset()
	if err := report.WriteJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "record/json.txt", out.String())
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"default/web/nginx": "nginx.npy", "/lab/a": "a.npy",
		"nginx.service": "nginx.service.npy", "/": "recording.npy", "/x/.hidden": "recording.npy"} {
		if got := fileName([]report.Container{{Name: name}}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := fileName(make([]report.Container, 2)); got != "recording.npy" {
		t.Error(got)
	}
}
