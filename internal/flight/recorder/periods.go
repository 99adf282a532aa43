package recorder

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/flight"
	"plimsoll/internal/plan"
	"plimsoll/internal/probe"
	"plimsoll/internal/recent"
	"plimsoll/internal/workload"
)

// Periods are what the programs in the kernel record of the groups' periods, with the refills that the agent wrote, for
// two readers: the page, and the flight recorder. While neither asks for them, nothing is kept.
type Periods struct {
	probe Probe // nil: there is none
	why   string
	found Discoverer
	clock func() (monotonic time.Duration, now time.Time)

	Watch func(all bool) // has the groups watched that nobody else needs

	mu     sync.Mutex
	groups map[uint64]group // by inode
	before map[uint64]group // as groups was until the last search: of those that have just gone
	looked time.Time
	strays []probe.Period // of groups that are not known: they wait for the next search
	ahead  time.Duration  // from the kernel's clock to ours, in Unix time
	batch  []probe.Period
	ended  map[string][]recent.Period // for the page; nil: it does not ask
	flown  []flight.Period            // for the flight recorder
	full   int64                      // periods that are in neither: its reader was late, or their group is not known

	turning sync.Mutex // held while a reader comes or goes
	page    bool
	flies   bool

	on      atomic.Bool
	writing sync.Mutex             // for a moment only: the thread that answers throttles takes it
	wrote   map[uint64][]time.Time // refills that are in no period yet
}

// group is a control group of a pod.
type group struct {
	path   string
	around bool // it has no work of its own: the pod's group, or a container's scope
}

// Discoverer knows the groups of the node.
type Discoverer interface {
	Pods() ([]workload.Pod, error)
}

// Probe is the part of a probe that records periods.
type Probe interface {
	Record(on bool) error
	Periods(list []probe.Period) ([]probe.Period, error)
	Unrecorded() int64
}

const (
	lookAgain = time.Second // between two searches for groups that are not known
	// a smaller difference of the two clocks is taken for the time between their readings
	clockJumps  = 20 * time.Millisecond
	mostRefills = 4096 // of one group that wait for the end of their period
	// periods of one group that wait for the page, whose reader waits for the agent's loop
	mostWaiting = 600
	mostFlown   = 1 << 16         // periods that wait for the flight recorder
	lateRefill  = 3 * time.Second // a refill whose period is not recorded
)

// NewPeriods are of a probe; nil where there is none, and why says why.
func NewPeriods(p Probe, why string, found Discoverer) *Periods {
	return &Periods{probe: p, found: found, why: why, groups: map[uint64]group{}, wrote: map[uint64][]time.Time{},
		clock: func() (time.Duration, time.Time) { return probe.Monotonic(), time.Now() }, Watch: func(bool) {}}
}

// Record begins or ends the recording for the page.
func (p *Periods) Record(on bool) error {
	p.turning.Lock()
	defer p.turning.Unlock()
	if err := p.turn(on || p.flies); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page, p.ended = on, nil; on {
		p.ended = map[string][]recent.Period{}
	}
	return nil
}

// Fly begins or ends the recording for the flight recorder.
func (p *Periods) Fly(on bool) error {
	p.turning.Lock()
	defer p.turning.Unlock()
	if err := p.turn(on || p.page); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flies, p.flown = on, nil
	return nil
}

// turn has the kernel record, or not any more.
func (p *Periods) turn(on bool) error {
	if p.probe == nil {
		return errors.New(p.why)
	}
	if on == p.on.Load() {
		return nil
	}
	if err := p.probe.Record(on); err != nil {
		if errors.Is(err, probe.ErrNoPeriods) && p.why != "" {
			return errors.New(p.why)
		}
		return err
	}
	p.Watch(on)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on.Store(on)
	p.writing.Lock()
	clear(p.wrote)
	p.writing.Unlock()
	if !on {
		clear(p.groups)
		p.before, p.strays, p.batch = nil, nil, nil
	}
	return nil
}

// Take returns what has ended since the last call, for the page.
func (p *Periods) Take() (map[string][]recent.Period, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.drain(); err != nil {
		return nil, 0, err
	}
	ended := p.ended
	p.ended = map[string][]recent.Period{}
	return ended, p.probe.Unrecorded() + p.full, nil
}

// Flown appends what has ended since the last call, for the flight recorder,
// and says how many periods were lost in all.
func (p *Periods) Flown(list []flight.Period) ([]flight.Period, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.drain(); err != nil {
		return list, 0, err
	}
	list = append(list, p.flown...)
	p.flown = p.flown[:0]
	return list, p.probe.Unrecorded() + p.full, nil
}

// drain reads the kernel's ring, for whoever asks.
func (p *Periods) drain() error {
	var err error
	if p.batch, err = p.probe.Periods(append(p.batch[:0], p.strays...)); err != nil {
		return err
	}
	p.strays = p.strays[:0]
	monotonic, now := p.clock()
	if ahead := time.Duration(now.UnixNano()) - monotonic; (ahead - p.ahead).Abs() > clockJumps {
		p.ahead = ahead
	}
	for _, one := range p.batch {
		g, known := p.group(one.Group, now)
		switch {
		case known:
			end := time.Unix(0, int64(one.End+p.ahead))
			p.pass(g, one, end, p.refills(one.Group, end))
		case p.looked.Equal(now) || len(p.strays) >= mostFlown:
			p.full += int64(one.Count) // it lived for less than lookAgain
		default:
			p.strays = append(p.strays, one)
		}
	}
	p.forgetRefills(now)
	return nil
}

// pass gives a period to those who ask. The flight recorder has rows of containers only: theirs say all.
func (p *Periods) pass(g group, one probe.Period, end time.Time, refills uint16) {
	if p.page {
		if list := p.ended[g.path]; len(list) < mostWaiting {
			p.ended[g.path] = append(list, recent.Period{End: end.UnixMilli(),
				Used: recent.Us(one.Used / time.Duration(one.Count)), Quota: recent.Us(one.Quota),
				Burst: recent.UnknownBurst, Lost: recent.Us(one.Lost / time.Duration(one.Count)),
				Throttles: uint16(one.Throttles), Refills: refills})
		} else {
			p.full++
		}
	}
	if !p.flies || g.around {
		return
	}
	if len(p.flown) >= mostFlown {
		p.full += int64(one.Count)
		return
	}
	p.flown = append(p.flown, flight.Period{Cgroup: g.path, End: end.UnixMilli(), Used: one.Used.Microseconds(),
		Quota: one.Quota.Microseconds(), Throttled: one.Lost.Microseconds(), Throttles: int32(one.Throttles),
		Refills: int32(refills), Count: int32(one.Count)})
}

// group is that of an inode; false where it is not known.
func (p *Periods) group(inode uint64, now time.Time) (g group, known bool) {
	if g, known = p.groups[inode]; known {
		return g, true
	}
	if g, known = p.before[inode]; known || now.Sub(p.looked) < lookAgain {
		return g, known
	}
	p.looked = now
	pods, err := p.found.Pods()
	if err != nil {
		return g, false
	}
	p.before, p.groups = p.groups, map[uint64]group{}
	for i := range pods {
		for _, id := range pods[i].IDs() {
			p.groups[id.Inode] = group{id.Path, true}
		}
		for _, c := range pods[i].Containers {
			p.groups[c.Inode] = group{path: c.Path}
		}
	}
	g, known = p.groups[inode]
	return g, known
}

// refills counts the refills that were written up to the end of a period.
func (p *Periods) refills(group uint64, end time.Time) uint16 {
	p.writing.Lock()
	defer p.writing.Unlock()
	list := p.wrote[group]
	n := 0
	for n < len(list) && !list[n].After(end) {
		n++
	}
	if n > 0 {
		p.wrote[group] = list[n:]
	}
	return uint16(n)
}

func (p *Periods) forgetRefills(now time.Time) {
	p.writing.Lock()
	defer p.writing.Unlock()
	for group, list := range p.wrote {
		if len(list) == 0 || now.Sub(list[len(list)-1]) > lateRefill {
			delete(p.wrote, group)
		}
	}
}

// Note notes the refills among the results of writes.
func (p *Periods) Note(results []plan.Result) {
	if !p.on.Load() {
		return
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	for _, r := range results {
		inode := r.Change.Cgroup.Inode
		if r.Change.Refill && r.Outcome == plan.Applied && len(p.wrote[inode]) < mostRefills {
			p.wrote[inode] = append(p.wrote[inode], r.At)
		}
	}
}
