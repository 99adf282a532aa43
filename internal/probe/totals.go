package probe

import (
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/probe/programs"
)

// Buckets is the number of classes for lengths of throttles. The first counts those below 2 us, each further one twice
// as long ones, the last all from 8.4 s on.
const Buckets = 24

// Totals are the counters of a group since it is watched, whether its events were lost or not.
type Totals struct {
	Begins  int64
	Ends    int64
	Dropped int64          // begins of which no event was sent
	Wall    time.Duration  // from the begin until a task of the group ran again; of throttles that ended
	Since   time.Duration  // when the current throttle began, CLOCK_MONOTONIC; 0: there is none
	Lengths [Buckets]int64 // throttles that ended, by length
	Aheads  int64          // pools that were seen to run dry before their time; with Options.Ahead

	// With Options.Use, of a group with a limit: CPU time per period, to the last tick of each CPU.
	// Counted is false before the first period is over, and for good once a CPU found no room (Unplaced) or a task was
	// too far below the group: Uses and Above stand still from then on.
	Counted bool
	Used    time.Duration // in the last period that is over
	// when that was, CLOCK_MONOTONIC; 0: none is over since it has a limit. A group that sleeps has no periods
	PeriodEnd time.Duration
	Peak      time.Duration // the most in one period since the group is watched, and since periods are as long as now
	Second    time.Duration // the most in one second since the group is watched, of seconds without idle time
	Uses      [65]int64     // periods by their use: 0, and 64 sixteenths of the limit (Limit), the last one open
	Sum       time.Duration // CPU time used up to PeriodEnd
	// of it, in each period above the limit (Limit); what the next period pays back is none of it
	Above time.Duration
}

// Totals is false for a group that is not watched.
func (p *Probe) Totals(group uint64) (Totals, bool) {
	p.reading.Lock()
	defer p.reading.Unlock()
	g := &p.scratch
	if err := p.objects.Groups.Lookup(group, g); err != nil {
		return Totals{}, false
	}
	t := Totals{Begins: int64(g.Begins), Ends: int64(g.Ends), Dropped: int64(g.Dropped), Wall: time.Duration(g.Wall)}
	t.Aheads, t.Used, t.Counted = int64(g.Aheads), time.Duration(g.Used), g.Periods > 0 && g.Unplaced == 0
	if g.Periods > 0 {
		t.PeriodEnd = time.Duration(g.End)
	}
	t.Peak, t.Second = time.Duration(g.Peak), time.Duration(g.SecondPeak)
	for i, n := range g.Lengths {
		t.Lengths[i] = int64(n)
	}
	for i, n := range g.Uses {
		t.Uses[i] = int64(n)
	}
	t.Sum, t.Above = time.Duration(g.Sum+g.Outside), time.Duration(g.Above)
	if g.Begins == g.Ends {
		return t, true // none lasts
	}
	var s kernelThrottle
	if err := p.objects.Standing.Lookup(group, &s); err == nil {
		t.Since = time.Duration(s.Since)
	}
	return t, true
}

// Losses are events that did not reach the reader, by reason.
type Losses struct {
	Limited int64 // over the group's rate
	Full    int64 // the ring was full
	Broken  int64 // could not be decoded
}

// Losses since Open.
func (p *Probe) Losses() Losses {
	return Losses{Limited: count(p.objects.Limited), Full: count(p.objects.Full), Broken: p.ring.Broken()}
}

// Lost is the number of events that should have reached the reader. When it grows, a group may be throttled without an
// event. An event over its group's rate does not count: that group had an event a moment ago.
func (p *Probe) Lost() int64 {
	l := p.Losses()
	return l.Full + l.Broken
}

// Unplaced counts the times that a CPU of a group had no room in the map of queues. Such a group has no periods.
func (p *Probe) Unplaced() int64 { return count(p.objects.Unplaced) }

func count(v *ebpf.Variable) int64 {
	var n uint64
	if err := v.Get(&n); err != nil {
		return 0 // mapped memory, from 5.5 on
	}
	return int64(n)
}

// Cost is what each program has cost since Open. It needs Options.Stats.
func (p *Probe) Cost() ([]programs.Cost, error) { return p.programs.Cost() }
