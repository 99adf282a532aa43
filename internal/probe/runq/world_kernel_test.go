package runq

import (
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe"
)

const ms = time.Millisecond

// emulated says that the CPU is emulated, so that no bound on time applies.
func emulated() bool { return os.Getenv("PLIMSOLL_EMULATED") != "" }

// open starts a probe that is gone when the test ends.
func open(t testing.TB, o Options) *Probe {
	t.Helper()
	p := load(t, o)
	if err := p.Start(); err != nil {
		cgrouptest.Skip(t, "%v\nhint: %s", err, probe.Explain(err))
	}
	return p
}

func load(t testing.TB, o Options) *Probe {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		if v := (*ebpf.VerifierError)(nil); errors.As(err, &v) {
			t.Logf("%+v", v)
		}
		cgrouptest.Skip(t, "%v\nhint: %s", err, probe.Explain(err))
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// set numbers a group of a test.
func set(t testing.TB, p *Probe, g *cgrouptest.Group, request float64) Slot {
	t.Helper()
	id, err := g.Tree().Inode(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := p.Set(Group{Inode: id, Request: request, Watched: true})
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

func read(t testing.TB, p *Probe, slot Slot) Sums {
	t.Helper()
	s, err := p.Read(slot, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// during is what a group did for a while.
func during(t testing.TB, p *Probe, d time.Duration, slots ...Slot) []Sums {
	t.Helper()
	var list []Sums
	for _, slot := range slots {
		list = append(list, read(t, p, slot))
	}
	time.Sleep(d)
	for i, slot := range slots {
		list[i] = read(t, p, slot).minus(list[i])
	}
	return list
}

// minus is what was added since another reading; At is the time between.
func (s Sums) minus(o Sums) Sums {
	d := Sums{s.At - o.At, s.Running - o.Running, s.Waiting - o.Waiting, s.Own - o.Own, s.Above - o.Above,
		s.Idle - o.Idle, s.Self - o.Self, s.Behind - o.Behind, s.Phantom - o.Phantom, s.Forced - o.Forced,
		s.Waking - o.Waking, s.Unnamed - o.Unnamed, s.WaitsIRQ - o.WaitsIRQ, s.WaitsSteal - o.WaitsSteal, s.IRQ - o.IRQ,
		s.Steal - o.Steal, s.Beside, s.Waits - o.Waits}
	for i := range d.Beside {
		d.Beside[i] -= o.Beside[i]
	}
	return d
}

// explained is the part of the waits that has a cause.
func (s Sums) explained() time.Duration {
	return s.Own + s.Above + s.Idle + s.Self + s.Behind + s.Unnamed + s.WaitsIRQ + s.WaitsSteal
}

// slack is by how much waits that are over may differ from what others ran meanwhile: by the one that lasts.
func slack() float64 {
	if emulated() {
		return 0.9 // the virtual machine pauses for long
	}
	return 0.15
}

// near says whether two times differ by no more than a share of the larger one, and a little.
func near(a, b time.Duration, share float64) bool {
	return math.Abs(float64(a-b)) <= share*math.Max(float64(a), float64(b))+float64(2*ms)
}
