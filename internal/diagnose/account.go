package diagnose

import (
	"time"

	"plimsoll/internal/report"
)

// Reading is what a container's threads have done so far, in thread time. Running and Waiting go up to At; the parts of
// waits are of those that are over.
type Reading struct {
	At      time.Duration
	Running time.Duration
	Waiting time.Duration
	Parts   Parts
	Lost    Lost          // of Running
	Beside  time.Duration // of Running: the core's other thread was busy with another group
}

func (r Reading) received() time.Duration { return r.Running - r.Lost.IRQ - r.Lost.Steal }

// Parts are causes of waits. Neighbours include kernel threads.
type Parts struct {
	Own, Above, Behind, Idle, Self, Unnamed time.Duration
	Lost
}

// Lost is what was taken away from a CPU.
type Lost struct{ IRQ, Steal time.Duration }

func (p Parts) sum() time.Duration { return p.outside() + p.Self + p.Unnamed }

// outside is what was not the container's own doing, as far as it is known.
func (p Parts) outside() time.Duration { return p.Own + p.Above + p.Behind + p.Idle + p.IRQ + p.Steal }

func (p Parts) each(o Parts, f func(a, b time.Duration) time.Duration) Parts {
	return Parts{f(p.Own, o.Own), f(p.Above, o.Above), f(p.Behind, o.Behind), f(p.Idle, o.Idle), f(p.Self, o.Self),
		f(p.Unnamed, o.Unnamed), Lost{f(p.IRQ, o.IRQ), f(p.Steal, o.Steal)}}
}

func (p Parts) plus(o Parts) Parts {
	return p.each(o, func(a, b time.Duration) time.Duration { return a + b })
}

func (p Parts) minus(o Parts) Parts {
	return p.each(o, func(a, b time.Duration) time.Duration { return a - b })
}

func (p Parts) times(x float64) Parts {
	return p.each(p, func(a, _ time.Duration) time.Duration { return time.Duration(float64(a) * x) })
}

// Account sums up a container. The zero Account is an empty one.
type Account struct {
	Reserved float64 // CPUs; 0: not known, and there is no shortfall

	started   bool
	first     Reading
	last      Reading
	shortfall Parts
	pending   time.Duration // shortfall of waits that are not over
	received  time.Duration // the most so far: of a turn that lasts Running is known already, and Lost is not
}

// Add adds a reading. The account begins at the first one.
func (a *Account) Add(r Reading) {
	if !a.started {
		a.started, a.first, a.last = true, r, r
		return
	}
	before := a.last
	// A reading in the middle of a switch may be ahead of the next one: these are shown as counters, which only grow.
	r.Running, r.Waiting, r.Beside = max(r.Running, before.Running), max(r.Waiting, before.Waiting), max(r.Beside,
		before.Beside)
	a.last = r
	a.received = max(a.received, r.received()-a.first.received())
	elapsed := r.At - before.At
	running, waiting := r.Running-before.Running, r.Waiting-before.Waiting
	lost := Lost{r.Lost.IRQ - before.Lost.IRQ, r.Lost.Steal - before.Lost.Steal}
	received, wanted := r.received()-before.received(), running+waiting
	if a.Reserved > 0 && elapsed > 0 {
		due := min(wanted, time.Duration(a.Reserved*float64(elapsed)))
		a.pending += max(due-received, 0)
	}
	parts := r.Parts.minus(before.Parts).plus(Parts{Lost: lost})
	a.assign(parts, max(r.Waiting-r.Parts.sum(), 0))
}

// assign divides the pending shortfall among the causes of the waits that have ended. The part that exceeds the waits
// that still last will find no cause later: it goes to the unnamed time first, and then to the container's own threads.
func (a *Account) assign(ended Parts, open time.Duration) {
	if outside := ended.outside(); outside > 0 && a.pending > 0 {
		outer := ended
		outer.Self, outer.Unnamed = 0, 0
		taken := min(a.pending, outside)
		a.shortfall = a.shortfall.plus(outer.times(float64(taken) / float64(outside)))
		a.pending -= taken
	}
	if rest := a.pending - open; rest > 0 {
		unnamed := min(rest, ended.Unnamed)
		a.shortfall.Unnamed += unnamed
		a.shortfall.Self += rest - unnamed
		a.pending = open
	}
}

// Split divides the time that a container wanted: Wanted is Received plus the sum of Waits.
type Split struct {
	Elapsed, Wanted, Received time.Duration
	Waits                     Parts
	Shortfall                 Parts
	Beside                    time.Duration
}

// Split is the account so far. What waits still last is without a name; waits that began before the account did are
// scaled out.
func (a *Account) Split() Split {
	f, l := a.first, a.last
	lost := Lost{l.Lost.IRQ - f.Lost.IRQ, l.Lost.Steal - f.Lost.Steal}
	s := Split{Elapsed: l.At - f.At, Wanted: l.Running - f.Running + l.Waiting - f.Waiting, Beside: l.Beside - f.Beside,
		Shortfall: a.shortfall}
	s.Received = l.received() - f.received()
	s.Waits = l.Parts.minus(f.Parts).plus(Parts{Lost: lost})
	s.Shortfall.Unnamed += a.pending
	waited := max(s.Wanted-s.Received, 0)
	if explained := s.Waits.sum(); explained > waited {
		s.Waits = s.Waits.times(float64(waited) / float64(explained))
	}
	s.Waits.Unnamed += waited - s.Waits.sum()
	return s
}

// list are the causes in the order of the bar; behind kernel threads was share kernel of what was behind others.
func list(waits, short Parts, kernel float64) []report.Wait {
	of := func(d time.Duration, x float64) time.Duration { return time.Duration(float64(d) * x) }
	all := []report.Wait{
		{Cause: report.CauseOwnLimit, Time: waits.Own, Short: short.Own},
		{Cause: report.CausePodLimit, Time: waits.Above, Short: short.Above},
		{Cause: report.CauseNeighbour, Time: waits.Behind - of(waits.Behind, kernel),
			Short: short.Behind - of(short.Behind, kernel)},
		{Cause: report.CauseKernel, Time: of(waits.Behind, kernel), Short: of(short.Behind, kernel)},
		{Cause: report.CauseInterrupts, Time: waits.IRQ, Short: short.IRQ},
		{Cause: report.CauseHypervisor, Time: waits.Steal, Short: short.Steal},
		{Cause: report.CauseIdle, Time: waits.Idle, Short: short.Idle},
		{Cause: report.CauseOwnThreads, Time: waits.Self, Short: short.Self},
		{Cause: report.CauseUnnamed, Time: waits.Unnamed, Short: short.Unnamed},
	}
	kept := []report.Wait{}
	for _, w := range all {
		if w.Time > 0 || w.Short > 0 {
			kept = append(kept, w)
		}
	}
	return kept
}

// Sum is the account for a counter: it only grows, so that waits that last are not in it.
// Kernel threads are neighbours.
func (a *Account) Sum() report.Waited {
	f, l := a.first, a.last
	lost := Lost{l.Lost.IRQ - f.Lost.IRQ, l.Lost.Steal - f.Lost.Steal}
	return report.Waited{Wanted: l.Running - f.Running + l.Waiting - f.Waiting, Received: a.received,
		Beside: l.Beside - f.Beside,
		Waits:  list(l.Parts.minus(f.Parts).plus(Parts{Lost: lost}), a.shortfall, 0)}
}
