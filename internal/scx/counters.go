package scx

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// Group is what the scheduler has counted of a group since it was loaded, and what is in force.
type Group struct {
	Offline   bool
	Used      time.Duration // by its tasks; while it has a limit, also by those of the groups below
	Periods   int64
	Throttled int64         // periods at whose end the group was throttled
	Begins    int64         // throttles
	Wall      time.Duration // time for which the group was throttled
	Bursts    int64
	BurstTime time.Duration
	Quota     time.Duration // 0: none
	Period    time.Duration
	Burst     time.Duration
	Standing  bool // the group is throttled now
}

// Group reads the counters of a group.
func (s *Scheduler) Group(id uint64) (Group, error) {
	var g kernelGroup
	if err := s.parts.Groups.Lookup(id, &g); errors.Is(err, ebpf.ErrKeyNotExist) {
		return Group{}, fmt.Errorf("scheduler: group %d: %w", id, ErrNoGroup)
	} else if err != nil {
		return Group{}, fmt.Errorf("scheduler: read group %d: %w", id, err)
	}
	return g.counted(), nil
}

func (g *kernelGroup) counted() Group {
	return Group{
		Offline: g.Offline == 1, Used: time.Duration(g.Used), Periods: int64(g.Periods), Throttled: int64(g.Throttled),
		Begins: int64(g.Begins), Wall: time.Duration(g.Wall), Bursts: int64(g.Bursts),
		BurstTime: time.Duration(g.BurstTime),
		Quota:     time.Duration(g.Now.Quota), Period: time.Duration(g.Now.Period), Burst: time.Duration(g.Now.Burst),
		Standing: g.Standing == 1,
	}
}

// Totals are sums over all CPUs since the scheduler was loaded.
type Totals struct {
	Online  time.Duration // CPU time of online tasks
	Offline time.Duration // and of offline ones
	Floor   time.Duration // of that: given although online tasks waited
	Floors  int64         // times that it was given
	Beside  time.Duration // of the offline time: beside an online task on the same core
	Yields  int64         // offline tasks that an online task preempted
	Expels  int64         // and for one that began on another thread of the core
}

// cpuState is struct cpu of bpf/cpu.h.
type cpuState struct {
	Began, Last, Vtime, Since, Looked, Beside, Floored, Floors, Owed, Yields, Expels, Online, Offline uint64
	Runs, Floor, Ordered, Late                                                                        uint32
}

// Totals reads the sums.
func (s *Scheduler) Totals() (Totals, error) {
	var all [maxCPUs]cpuState
	if err := s.parts.Cpu.Get(&all); err != nil {
		return Totals{}, fmt.Errorf("scheduler: read the totals: %w", err)
	}
	var t Totals
	for _, c := range all {
		t.Online += time.Duration(c.Online)
		t.Offline += time.Duration(c.Offline)
		t.Floor += time.Duration(c.Floored)
		t.Beside += time.Duration(c.Beside)
		t.Floors += int64(c.Floors)
		t.Yields += int64(c.Yields)
		t.Expels += int64(c.Expels)
	}
	return t, nil
}

// Exit is what the kernel said when it ended the scheduler.
type Exit struct {
	Kind    int // enum scx_exit_kind; 0: it has not ended
	Reason  string
	Message string
}

// Exit reads it.
func (s *Scheduler) Exit() (Exit, error) {
	var kind uint32
	var reason [128]byte
	var message [256]byte
	v := s.parts.kernelVariables
	if err := errors.Join(v.ExitKind.Get(&kind), v.ExitReason.Get(&reason), v.ExitMessage.Get(&message)); err != nil {
		return Exit{}, fmt.Errorf("scheduler: read why it ended: %w", err)
	}
	text := func(b []byte) string { s, _, _ := bytes.Cut(b, []byte{0}); return string(s) }
	return Exit{Kind: int(kind), Reason: text(reason[:]), Message: text(message[:])}, nil
}

// Groups reads the counters of all groups that have a limit or had one.
func (s *Scheduler) Groups() (map[uint64]Group, error) {
	all := map[uint64]Group{}
	var id uint64
	var raw kernelGroup
	entries := s.parts.Groups.Iterate()
	for entries.Next(&id, &raw) {
		if g := raw.counted(); g.Periods > 0 {
			all[id] = g
		}
	}
	if err := entries.Err(); err != nil {
		return all, fmt.Errorf("scheduler: read the groups: %w", err)
	}
	return all, nil
}
