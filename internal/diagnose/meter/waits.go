package meter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/hint"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/workload"
)

// Discoverer knows the containers of the node.
type Discoverer interface {
	Pods() ([]workload.Pod, error)
}

// Waits measures beside the agent what its containers wait for (run --waits).
type Waits struct {
	found Discoverer
	tree  *cgroup.Tree
	log   *slog.Logger
	begun time.Time

	mu      sync.Mutex
	meter   *Meter
	problem string
	looks   uint64
	missing int // containers without a number
	ranks   map[strategy.Rank]*rankWaits
	node    diagnose.Node
	paired  time.Time // when the pairs were read
	behind  map[runq.Slot][]diagnose.Behind
	minutes minutes[report.Waited]
}

// rankWaits sums up a rank, with the containers that are gone.
type rankWaits struct{ waited, beside time.Duration }

// ranked are the ranks that are measured, and their classes in the programs' tables.
func ranked() map[strategy.Rank]runq.Class {
	return map[strategy.Rank]runq.Class{strategy.Online: 1, strategy.Offline: 2}
}

// rankOf is the side of the priority on which a container is: where none is configured, by its class.
func rankOf(c workload.Container) strategy.Rank {
	switch {
	case c.QOS.Enable:
		return c.QOS.Rank()
	case c.Class == workload.ClassBE:
		return strategy.Offline
	case c.Class == workload.ClassLS || c.Class == workload.ClassLSR || c.Class == workload.ClassLSE:
		return strategy.Online
	}
	return strategy.Neutral
}

// NewWaits measures nothing before it is run.
func NewWaits(tree *cgroup.Tree, found Discoverer, log *slog.Logger) *Waits {
	return &Waits{found: found, tree: tree, log: log, begun: time.Now(), problem: "the programs are being loaded",
		ranks: map[strategy.Rank]*rankWaits{strategy.Online: {}, strategy.Offline: {}}}
}

// open loads the programs, which the agent need not wait for.
func (w *Waits) open() bool {
	m, err := open(w.tree, sysfs.NewHost("/"), nil, nil, runq.Options{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.problem = hint.Line(hint.With(err, probe.Explain(err)))
		w.log.Warn("what containers wait for is not measured", "error", w.problem)
		return false
	}
	w.meter, w.problem = m, ""
	return true
}

// Run reads slice by slice until the context ends. None where waits are not measured (nil).
func (w *Waits) Run(ctx context.Context) error {
	if w == nil || !w.open() {
		return nil
	}
	defer w.meter.probe.Close()
	tick := time.NewTicker(Slice)
	defer tick.Stop()
	var looked time.Time
	for {
		if time.Since(looked) >= lookEvery {
			looked = time.Now()
			w.follow()
		}
		if err := w.read(); err != nil {
			w.log.Error("what containers wait for is not measured any more", "error", err)
			w.mu.Lock()
			w.problem = err.Error()
			w.mu.Unlock()
			return nil // the agent does without
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// follow updates the measured containers to the present ones.
func (w *Waits) follow() {
	pods, err := w.found.Pods()
	if err != nil {
		return // the next time
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing, w.meter.tableFull = 0, false
	w.looks++
	there := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Containers {
			there[c.Path] = true
			one := report.Container{Cgroup: c.Path, Name: c.Name, Request: c.Request}
			if w.meter.taken(one, c.Inode, rankOf(c), w.looks) {
				continue
			}
			if err := w.meter.take(one, c.Inode, rankOf(c)); err != nil {
				w.missing++
				w.log.Debug("not measured", "cgroup", c.Path, "error", err)
			}
		}
	}
	w.meter.keep(there)
	w.meter.numberNeighbours()
}

func (w *Waits) read() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.meter.read(func(s *subject, sums runq.Sums) {
		if r := w.ranks[s.rank]; r != nil && s.last.At > 0 {
			other := ranked()[strategy.Online] + ranked()[strategy.Offline] - ranked()[s.rank]
			r.waited += queued(sums) - queued(s.last)
			// a reading in the middle of a switch may be ahead of the next one
			sums.Beside[other] = max(sums.Beside[other], s.last.Beside[other])
			r.beside += sums.Beside[other] - s.last.Beside[other]
		}
		if s.rank != strategy.Offline && s.last.At > 0 {
			w.node.Add(readingOf(s.last), readingOf(sums))
		}
		s.last = sums
		s.account.Add(readingOf(sums))
	})
	if err != nil {
		return err
	}
	w.node.At(time.Since(w.begun))
	w.cut(time.Now())
	return nil
}

// cut ends the minute of the clock, where it is over.
func (w *Waits) cut(now time.Time) {
	if !w.minutes.over(now) {
		return
	}
	w.minutes.of = map[string]report.Waited{}
	for _, s := range w.meter.subjects {
		sum := s.account.Sum()
		w.minutes.of[s.container.Cgroup] = sum.Less(s.minute)
		s.minute = sum
	}
}

// Minute is what each group waited for in a minute that has just ended; nil where that is not known. It is read only.
func (w *Waits) Minute(start time.Time) map[string]report.Waited {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.minutes.ended(start)
}

// queued are waits that are over, without what limits took.
func queued(s runq.Sums) time.Duration {
	return s.Idle + s.Self + s.Behind + s.Unnamed + s.WaitsIRQ + s.WaitsSteal
}

// Report lays what was measured over a status.
func (w *Waits) Report(s *report.Status) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Waits = &report.Waits{Problem: w.problem, Ranks: []report.RankWaits{}}
	if w.problem != "" {
		return
	}
	if w.missing > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemWaitsMissing, w.missing))
	} else if w.meter.tableFull {
		s.Problems = append(s.Problems, report.ProblemWaitsNames)
	}
	if s.Now.Sub(w.paired) >= pairEvery {
		w.paired = s.Now
		w.pair()
	}
	by := map[string]*subject{}
	for _, one := range w.meter.subjects {
		by[one.container.Cgroup] = one
	}
	sums := map[strategy.Rank]*report.RankWaits{strategy.Online: {}, strategy.Offline: {}}
	for i := range s.Containers {
		if one := by[s.Containers[i].Cgroup]; one != nil {
			sum := one.account.Sum()
			sum.Neighbours = diagnose.Named(w.behind[one.slot], sum, mostNeighbours)
			s.Containers[i].Totals.Waited = &sum
			if r := sums[one.rank]; r != nil {
				r.Add(sum, one.container.Request > 0)
			}
		}
	}
	s.Waits.Lost, s.Waits.Unnamed = w.meter.probe.Lost()
	contention := w.node.Sum()
	s.Waits.Contention = &contention
	for _, rank := range []strategy.Rank{strategy.Online, strategy.Offline} {
		counts, err := w.meter.probe.Lengths(ranked()[rank])
		if err != nil {
			s.Waits.Problem = err.Error()
			return
		}
		r := *sums[rank]
		r.Rank, r.Time, r.Beside, r.Lengths = rank, w.ranks[rank].waited, w.ranks[rank].beside, []report.Length{}
		for i, n := range counts {
			if r.Waits += n; i < len(counts)-1 { // the last class has no end
				r.Lengths = append(r.Lengths, report.Length{UpTo: time.Microsecond << (i + 1), N: n})
			}
		}
		s.Waits.Ranks = append(s.Waits.Ranks, r)
	}
}
