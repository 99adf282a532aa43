package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
)

// TestRunRecords: what a group did is in the record once the agent has ended, as the kernel's own counters say, and
// `history` shows it. The agent's policy is none: nothing is written to the group.
func TestRunRecords(t *testing.T) {
	s := newShipped(t)
	g := cgrouptest.New(t)
	g.Limit(hogLimit)
	s.configure("none", g.Path)
	agent := s.start()
	eventually(t, patience(time.Minute), func() string { return notRecorded(s.status(), g.Path) })
	before, err := g.Tree().Counters(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Spin(1) {
		defer p.Stop()
	}
	time.Sleep(4 * time.Second)
	var after cpu.Counters
	// on a machine that is full it waits before it has used its quota
	eventually(t, patience(time.Minute), func() string {
		if after, err = g.Tree().Counters(g.Path); err != nil ||
			after.ThrottledTime-before.ThrottledTime >= time.Second {
			return ""
		}
		return fmt.Sprintf("stood still for %v", after.ThrottledTime-before.ThrottledTime)
	})
	if err != nil {
		t.Fatal(err)
	}
	agent.stop(syscall.SIGTERM)
	var h report.History
	if err := json.Unmarshal([]byte(s.must("history", g.Path, "--from", "5m", "--json")), &h); err != nil {
		t.Fatal(err)
	}
	if len(h.Containers) != 1 || len(h.Warnings) > 0 || h.Lost > 0 {
		t.Fatalf("%+v", h)
	}
	f := h.Containers[0].Figures
	used, stood, throttled :=
		after.Usage-before.Usage, after.ThrottledTime-before.ThrottledTime, after.Throttled-before.Throttled
	if f.Limit == nil || *f.Limit != 0.2 || f.Quota != 0.2 {
		t.Errorf("limit %v, quota %v", f.Limit, f.Quota)
	}
	if f.Used < used*8/10 || f.Used > used*12/10 {
		t.Errorf("%v CPU time in the record, %v by the kernel's counter", f.Used, used)
	}
	if f.Throttled < stood*8/10 || f.Throttled > stood*12/10 {
		t.Errorf("stood still for %v in the record, %v by the kernel's counter", f.Throttled, stood)
	}
	if int64(f.Throttles) < throttled*8/10 || int64(f.Throttles) > throttled*12/10 {
		t.Errorf("%d throttles by the kernel's counter, in the record %+v", throttled, f)
	}
	if periods := after.Periods - before.Periods; f.Periods < periods*8/10 || f.Periods > periods*12/10 {
		t.Errorf("%d periods by the kernel's counter, in the record %+v", periods, f)
	}
	// A group runs beyond its quota for as long as its CPU's tick is late, and a host makes it late.
	// One thread uses one CPU.
	if mean := f.Used.Seconds() / (float64(f.Periods) * 0.1); f.Peak < mean || f.Peak > 1 {
		t.Errorf("a mean of %.3f CPUs in the periods in which it ran, a peak of %.3f", mean, f.Peak)
	}
	info, err := os.Stat(filepath.Join(s.state, "record"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the folder: %v %v", info, err)
	}
}

// notRecorded says why the periods of a group are not recorded; "" where they are.
func notRecorded(now report.Status, group string) string {
	if f := now.Record; f == nil || f.Fault != "" {
		return fmt.Sprintf("record: %+v", f)
	}
	for _, c := range now.Containers {
		if c.Cgroup == group && c.Totals.Events != nil {
			return ""
		}
	}
	return "the kernel's programs do not watch the group"
}

// TestRunRecordsNothing: turned off, there is no folder, no metric and no line in the status.
func TestRunRecordsNothing(t *testing.T) {
	s := newShipped(t)
	g := cgrouptest.New(t)
	s.configure("none", g.Path)
	s.flags = append(s.flags, "--record-dir", "")
	agent := s.start()
	if f := s.status().Record; f != nil {
		t.Errorf("%+v", f)
	}
	agent.stop(syscall.SIGTERM)
	if _, err := os.Stat(filepath.Join(s.state, "record")); err == nil {
		t.Error("there is a record")
	}
}
