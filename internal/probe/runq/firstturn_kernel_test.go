package runq

import (
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// Each thread of a core has run one busy thread since before the programs were attached, which see no switch at all:
// each ran beside the other all the time, and neither CPU is idle.
func TestFirstTurnOfABusyCPU(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	cgrouptest.Pin(t, 0, a.Spin(1)...)
	cgrouptest.Pin(t, 1, b.Spin(1)...)
	time.Sleep(50 * ms) // until they spin
	p := load(t, Options{Siblings: map[int]int{0: 1, 1: 0}, change: func(spec *ebpf.CollectionSpec) {
		for _, name := range []string{kernelProgSchedSwitch, kernelProgSchedWakeup, kernelProgSchedWakeupNew,
			kernelProgSchedMigrateTask} {
			delete(spec.Programs, name)
		}
	}})
	ours, theirs := setClass(t, p, a, 1), setClass(t, p, b, 2)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	firstTurns(t, p, 0, ours)
	firstTurns(t, p, 1, theirs)
	got := during(t, p, 100*ms, ours, theirs)
	for i, class := range []Class{2, 1} {
		if s := got[i]; s.Beside[class] != s.At || s.Running != s.At || s.Waiting != 0 {
			t.Errorf("group %d: of %v, it ran %v and waited %v, beside the other %v", i, s.At, s.Running, s.Waiting,
				s.Beside[class])
		}
	}
	var idle [maxCPUs / 64]kernelLine
	if err := p.objects.Idle.Get(&idle); err != nil || idle[0].N&3 != 0 {
		t.Errorf("CPUs %b are idle (%v), of which 0 and 1 are busy", idle[0].N, err)
	}
}

// firstTurns makes the probe read a CPU again, from another one, until it finds a group there: on a busy machine others
// have their turns too. The calling thread itself has its CPU.
func firstTurns(t *testing.T, p *Probe, cpu int, slot Slot) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, other unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	other.Set(1 - cpu)
	if err := unix.SchedSetaffinity(0, &other); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			t.Error(err)
		}
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(ms) {
		var c kernelCpu
		if err := p.objects.Cpus.Lookup(uint32(cpu), &c); err != nil {
			t.Fatal(err)
		}
		switch {
		case c.Begun == 0:
			t.Fatalf("CPU %d has had no turn since it was read", cpu)
		case Slot(c.Slot) == slot && c.Thread != 0:
			return
		case time.Now().After(end):
			t.Fatalf("CPU %d never runs group %d, but %d", cpu, slot, c.Slot)
		}
		if err := p.objects.Cpus.Put(uint32(cpu), kernelCpu{}); err != nil {
			t.Fatal(err)
		}
		if err := p.firstTurn(cpu); err != nil {
			t.Fatal(err)
		}
	}
}
