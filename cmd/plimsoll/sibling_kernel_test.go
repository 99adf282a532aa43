package main

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/sysfs"
)

// TestDiagnoseBesideASibling: the diagnosis names a neighbour on the other hardware thread of the core, and not one
// on another core.
func TestDiagnoseBesideASibling(t *testing.T) {
	topology, err := sysfs.NewHost("/").Topology()
	if err != nil {
		t.Fatal(err)
	}
	siblings, cpu, elsewhere := topology.Siblings(), -1, -1
	for _, p := range topology.Places {
		if _, there := siblings[p.CPU]; there && cpu < 0 {
			cpu = p.CPU
		} else if cpu >= 0 && siblings[cpu] != p.CPU {
			elsewhere = p.CPU
		}
	}
	if cpu < 0 || elsewhere < 0 {
		cgrouptest.Elsewhere(t, "test/vm/scx.sh", "there are no two cores with two threads")
	}
	top := cgrouptest.New(t)
	web, batch := top.Child("web"), top.Child("batch")
	// a CPU is seen from its first switch on, for which a spinner alone there may wait long
	const forks = "while :; do (:); done"
	cgrouptest.Pin(t, cpu, web.Start(forks))
	neighbour := batch.Start(forks)
	cgrouptest.Pin(t, siblings[cpu], neighbour)
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}

	d, found := n.diagnose(t, top.Path+"/*")
	w, b := found["web"], found["batch"]
	least := w.Received + b.Received - d.Elapsed
	if off := d.Elapsed / 20; w.Beside < least-off || w.Beside > min(w.Received, b.Received)+off ||
		w.Beside < d.Elapsed/2 {
		t.Errorf("web ran %v and batch %v of %v, web %v of it beside a sibling", w.Received, b.Received, d.Elapsed,
			w.Beside)
	}
	if !strings.Contains(w.Verdict, "the core's other hardware thread") {
		t.Errorf("%q", w.Verdict)
	}

	cgrouptest.Pin(t, elsewhere, neighbour)
	time.Sleep(200 * time.Millisecond)
	if _, found = n.diagnose(t, top.Path+"/*"); found["web"].Beside > found["web"].Received/2 {
		t.Errorf("with the neighbour on another core, web ran %v of %v beside a sibling", found["web"].Beside,
			found["web"].Received)
	}
}
