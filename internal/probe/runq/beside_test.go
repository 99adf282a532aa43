package runq

import (
	"testing"
	"time"

	"plimsoll/internal/probe/probetest"
)

// A turn that lasts since 100: the sibling had run 40 of class 1 and 30 of class 2 when it began.
func TestLasting(t *testing.T) {
	const ours, theirs = First, First + 1
	turn := func(slot Slot, class uint32, begun, ran uint64, busy ...uint64) kernelSide {
		s := kernelSide{Turn: 3}
		f := &s.Faces[1]
		f.Slot, f.Class, f.Begun, f.Ran = uint32(slot), class, begun, ran
		copy(f.Busy[:], busy)
		return s
	}
	mine := turn(ours, 1, 100, 0)
	mine.Foreign = [Classes]uint64{0, 40, 30}
	for _, c := range []struct {
		name   string
		ours   kernelSide
		theirs kernelSide
		there  uint64 // that the group ran on the sibling, in turns that are over
		want   [Classes]time.Duration
	}{
		{"the same turn goes on there", mine, turn(theirs, 2, 90, 0, 0, 40, 20), 0, [Classes]time.Duration{2: 60}},
		{"it began later, after another", mine, turn(theirs, 2, 120, 0, 5, 40, 40), 0,
			[Classes]time.Duration{0: 5, 2: 50}},
		{"it does not run there", mine, turn(idle, 0, 120, 0, 0, 40, 45), 0, [Classes]time.Duration{2: 15}},
		{"the group's own turn there", mine, turn(ours, 1, 110, 25, 0, 65, 30), 25, [Classes]time.Duration{}},
		{"the group's own turn there is over", mine, turn(idle, 0, 130, 0, 0, 60, 30), 20, [Classes]time.Duration{}},
		{"no group was seen there yet", turn(ours, 1, 100, 0), turn(Others, 0, 0, 0), 0, [Classes]time.Duration{}},
		{"another group's turn", turn(theirs, 2, 100, 0), turn(theirs, 2, 90, 0), 0, [Classes]time.Duration{}},
		{"the class was changed", mine, turn(theirs, 2, 90, 0, 0, 9000, 20), 0, [Classes]time.Duration{1: 60, 2: 60}},
	} {
		got := lasting(c.ours, c.theirs, kernelCell{Ran: c.there}, ours, 160)
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The maps on a machine of 512 CPUs, by the threads that are there at the start. Those of package probe come to 8 MiB
// at most beside them: together 32 MiB, and 43 MiB with any number of threads.
func TestMemoryOnManyCPUs(t *testing.T) {
	const cpus = 512
	for threads, most := range map[int]int64{0: 24 << 20, 8192: 24 << 20, 100_000: 35 << 20, 4_000_000: 35 << 20} {
		spec, err := loadKernel()
		if err != nil {
			t.Fatal(err)
		}
		p := &Probe{}
		if err := p.fit(spec, Options{Tasks: tasks(threads)}, cpus); err != nil {
			t.Fatal(err)
		}
		got, by := probetest.Memory(spec, cpus, defaultGroups)
		t.Logf("%d threads: %.1f MiB: %v", threads, float64(got)/(1<<20), by)
		if got > most {
			t.Errorf("%d threads: %d bytes, want %d at most", threads, got, most)
		}
		if room := spec.Maps[kernelMapTasks].MaxEntries; int(room) < min(threads, mostTasks) {
			t.Errorf("%d threads: room for %d", threads, room)
		}
	}
}
