package agent

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/colocation"
	"plimsoll/internal/strategy"
	"plimsoll/internal/task"
)

// TestKernelSlices: real online tasks have the slice and what they make has it, offline ones have not, and afterwards
// nobody has.
func TestKernelSlices(t *testing.T) {
	k := &task.Kernel{}
	if has, why := k.HasSlices(); !has { // which kernels have them is held by TestKernelSlice of internal/task
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh on 6.12:v2 and 6.18:v2", "no slices: %s", why)
	}
	p := newPair(t, strategy.MechanismSlice)
	base, err := k.BaseSlice()
	if err != nil {
		t.Fatal(err)
	}
	wantSlices := func(what string, g *cgrouptest.Group, want time.Duration) {
		t.Helper()
		tids, err := g.Tree().Tasks(g.Path)
		if err != nil || len(tids) == 0 {
			t.Fatalf("%s: %v, %v", g.Path, tids, err)
		}
		for _, tid := range tids {
			if got, err := k.Slice(tid); got != want || err != nil {
				t.Errorf("%s: task %d of %s has %v, want %v (%v)", what, tid, g.Path, got, want, err)
			}
		}
	}
	awaitTasks(t, p.online, 4)
	awaitTasks(t, p.offline, 2)
	p.agent.Tick(time.Now())
	wantSlices("in force", p.online, 100*time.Microsecond)
	wantSlices("in force", p.offline, base)
	if c := p.agent.Status().Colocation; c.Mechanism != strategy.MechanismSlice || !c.InForce() {
		t.Errorf("%+v", c)
	}
	p.online.Idle() // comes later
	awaitTasks(t, p.online, 5)
	p.agent.Tick(time.Now().Add(colocation.TasksEvery))
	wantSlices("later", p.online, 100*time.Microsecond)
	if err := p.agent.stop(); err != nil {
		t.Fatal(err)
	}
	wantSlices("after", p.online, base)
}

// awaitTasks waits until so many have entered a group.
func awaitTasks(t *testing.T, g *cgrouptest.Group, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		tids, err := g.Tree().Tasks(g.Path)
		if err == nil && len(tids) >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: tasks %v, %v; want %d", g.Path, tids, err, n)
		}
	}
}
