package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// TestKernelRecord records a group that uses all that its limit and other groups allow: the sum of the recording,
// and the number of throttled periods, are the kernel's, and the limit is seen to hide demand.
func TestKernelRecord(t *testing.T) {
	g := cgrouptest.New(t)
	g.Limit(10 * time.Millisecond)
	g.Spin(1)
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}
	file := filepath.Join(t.TempDir(), "x.npy")
	before, err := g.Tree().Counters(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := n.run("record", g.Path, "--samples", "30", "--out", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	after, err := g.Tree().Counters(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Recording
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Aligned || !tape.Aligned {
		t.Error("the kernel shows when the group's periods begin, and the recording's begin at another time")
	}
	unrecorded := 0.1 // while the begin of a period was waited for
	if emulated() {
		unrecorded = 1
	}
	sum := 0.0
	for _, v := range tape.Series[0].Used {
		sum += v * tape.CPUs * tape.Period.Seconds()
	}
	if kernel := (after.Usage - before.Usage).Seconds(); tape.Len() != 30 || sum > kernel+0.01 ||
		sum < kernel-0.02-unrecorded {
		t.Errorf("%d periods with %.3f s, the kernel counted %.3f s around them", tape.Len(), sum, kernel)
	}
	c, stood := r.Containers[0], float64(after.Throttled-before.Throttled)
	if mean := sum / (30 * tape.Period.Seconds()); math.Abs(c.Mean-mean) > 1e-3 || c.Limit == nil || *c.Limit != 0.1 {
		t.Errorf("mean %.3f: %+v", mean, c)
	}
	others := float64(after.Periods-before.Periods) - 30 // periods that are not recorded
	if off := stood - 30*c.Throttled; (off < -1 || off > others+1) && !emulated() {
		t.Errorf("it was throttled in %.0f periods, the kernel counted %.0f in those and %.0f others", 30*c.Throttled,
			stood, others)
	}
	if c.Throttled > 0 && (c.Demand == nil || *c.Demand < c.Mean) {
		t.Errorf("the limit hides nothing: %+v", c)
	}
	if r.Cost.CPU <= 0 || r.Cost.CPU > r.Cost.Elapsed/5 {
		t.Errorf("recording cost %s of CPU in %s", r.Cost.CPU, r.Cost.Elapsed)
	}
}

// TestKernelRecordUncounted: on cgroup v1 a group may stand in the cpu hierarchy alone, where nothing counts its CPU
// time. It is recorded as `diagnose` measures it.
func TestKernelRecordUncounted(t *testing.T) {
	g := cgrouptest.New(t)
	if g.Tree().Version() == cgroup.V2 {
		cgrouptest.Elsewhere(t, "the same on cgroup v1", "on cgroup v2 the CPU time of every group is counted")
	}
	path := g.Path + "-dark"
	dir := filepath.Join(cgrouptest.Root(), g.Tree().Dir(path))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when the process that spins is gone
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := g.Tree().SetWeight(path, 1<<18); err != nil { // so that the loops have their CPU beside any load
		t.Fatal(err)
	}
	// Two loops that take turns: where a switch has no event (internal/probe/runq), who runs is known from the next one
	// on.
	loops := g.Spin(2)
	cgrouptest.Pin(t, 0, loops...)
	for _, p := range loops {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(p.PID())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Tree().Usage(path); !errors.Is(err, fs.ErrNotExist) {
		cgrouptest.Elsewhere(t, "a host on which the hierarchies are separate", "cpuacct is mounted with cpu here: %v",
			err)
	}
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}
	file := filepath.Join(t.TempDir(), "x.npy")
	// The kernel may keep a group of any weight from its CPU for most of a second, beside other load.
	for total, end := 0.0, time.Now().Add(20*time.Second); total < 0.5; {
		if time.Now().After(end) {
			t.Fatalf("two loops had %.2f s of CPU time in 20 s", total)
		}
		begin, before := time.Now(), cpuTime(t, g)
		if _, stderr, err := n.run("record", path, "--samples", "10", "--out", file); err != nil {
			t.Fatal(err, stderr)
		}
		ran, took := (cpuTime(t, g) - before).Seconds(), time.Since(begin).Seconds()
		tape, err := trace.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range tape.Series[0].Used {
			sum += v * tape.CPUs * tape.Period.Seconds()
		}
		if unrecorded := took - 1; tape.Len() != 10 || sum > ran+0.02 || sum < ran-unrecorded-0.1 {
			t.Errorf("%d periods with %.3f s, the kernel counted %.3f s in %.3f s", tape.Len(), sum, ran, took)
		}
		total += ran
	}
}

// cpuTime is that of a group's processes: of those that are in it in the hierarchy cpuacct.
func cpuTime(t *testing.T, g *cgrouptest.Group) time.Duration {
	t.Helper()
	used, err := g.Tree().Usage(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return used
}
