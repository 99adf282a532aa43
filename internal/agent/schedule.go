package agent

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Schedulers can put a scheduler of our own into the kernel. What takes long goes on beside the turns.
type Schedulers interface {
	// Preflight says whether that can be done here, and why not; the error is ErrNotYet while that is being found out. It
	// changes nothing.
	Preflight() (usable bool, why string, err error)
	// Open does it; the error is ErrNotYet while the kernel checks the programs.
	Open(SchedulerOptions) (Scheduler, error)
	// Cancel ends an Open that said ErrNotYet last.
	Cancel() error
}

// SchedulerOptions are what a scheduler is to be like.
type SchedulerOptions struct {
	Expel bool // there is online work beside which no offline task is to run on the same core
	strategy.SchedExt
}

// ErrNotYet asks to be called again at the next turn.
var ErrNotYet = errors.New("not yet")

// Side is where a group stands.
type Side struct {
	Offline bool
	Expels  bool // no offline task runs beside one of its tasks on the same core
}

// Scheduler is one in force. It ends with this process, however that ends.
type Scheduler interface {
	// Set says on which side a group, by inode, and what is below it, stands.
	Set(group uint64, to Side) error
	Forget(group uint64) error
	// Ended says why it is no longer in force; "" while it is.
	Ended() (string, error)
	// Counters are what it has counted of a group: periods, throttles and bursts.
	Counters(group uint64) cpu.Counters
	// Throttles are those of a group, which nobody else knows of.
	Throttles(group uint64) report.Throttles
	// Changed names the groups that were throttled, or no longer are, since the last call.
	Changed() []uint64
	// Totals are its sums over all CPUs; false when they cannot be read.
	Totals() (SchedulerTotals, bool)
	// Pause is how long tasks stood still at the load.
	Pause() time.Duration
	// Close takes it out: all tasks are the fair class's again.
	Close() error
}

// schedule is what the agent keeps of the scheduler. While it is in force the kernel enforces no quota and no burst, and
// counts no throttle: the scheduler enforces what stands in the files, and the agent holds all containers at their limits.
type schedule struct {
	now     Scheduler
	options SchedulerOptions
	since   time.Time
	sets    map[uint64]Side // by inode
	next    time.Time       // no load before that
	gap     time.Duration
	opening bool
	loads   int64
	tries   int       // loads since one lasted
	ended   string    // why the last one ended
	usable  bool      // the preflight found nothing in the way, and no load has failed since
	probeAt time.Time // it is asked again then, where something was
	offline time.Time // when there was offline work last
	problem string
}

// probeEvery is how often it is found out whether what was in the way of a scheduler still is: another one may end.
const probeEvery = 30 * time.Second

// patience with a scheduler that the kernel ends: each load waits twice as long as the one before, and after the last no
// further one is tried until somebody asks for it anew. One that has lasted has all tries before it again.
const (
	reloadFirst = 10 * time.Second
	reloadMost  = 5
	lasting     = time.Hour
)

// lingers is how long the scheduler stays without offline work: jobs come one after another, and at each load all tasks
// stand still for a moment.
const lingers = time.Minute

// wanted says whether there is offline work, or was a moment ago. Without any the kernel's own scheduler does all the same for
// less, and it is the one under which throttles are ended.
func (s *schedule) wanted(now time.Time, levels []policy.Level) bool {
	if slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Rank() == strategy.Offline }) {
		s.offline = now
	}
	return !s.offline.IsZero() && now.Sub(s.offline) < lingers
}

// schedules has the scheduler in force where it is the mechanism and there is offline work, with the levels' ranks, and else
// out. One that is to be otherwise is taken out and loaded anew.
func (a *Agent) schedules(now time.Time, mechanism strategy.Mechanism, options SchedulerOptions, levels []policy.Level) {
	s := &a.priority.schedule
	asked := a.Strategy.Colocation.Mechanism == strategy.MechanismSchedExt
	switch free := a.Schedulers != nil && !a.DryRun && !a.held(); {
	case free && asked && mechanism != strategy.MechanismSchedExt && s.now == nil && !s.opening:
		return // something is in the way, for the moment or for good: nobody asks for it anew
	case !free || mechanism != strategy.MechanismSchedExt || !s.wanted(now, levels):
		a.unschedule()
		return
	}
	if options != s.options {
		a.unschedule()
		s.options = options
	}
	if s.now != nil {
		a.watchScheduler(now)
	}
	if s.now == nil && !now.Before(s.next) && (s.opening || s.tries < reloadMost) {
		a.openScheduler(now)
	}
	if s.now != nil {
		s.assign(a, levels)
		a.hearScheduler(now)
	}
}

// watchScheduler takes note when the kernel has ended the scheduler.
func (a *Agent) watchScheduler(now time.Time) {
	s := &a.priority.schedule
	why, err := s.now.Ended()
	if err != nil {
		s.problem = "the scheduler: " + err.Error()
		return
	}
	if why == "" {
		if now.Sub(s.since) >= lasting {
			s.tries, s.gap = 0, 0
		}
		return
	}
	a.keepCounts(s.now)
	a.Log.Warn("the scheduler has ended: offline work stands back by cpu.idle", "why", why, "loads", s.loads)
	err = s.now.Close()
	s.now, s.ended, s.gap = nil, why, max(reloadFirst, 2*s.gap)
	s.next = now.Add(s.gap)
	s.problem = "the scheduler has ended: " + why
	if err != nil {
		s.problem += "; " + err.Error()
	}
}

func (a *Agent) openScheduler(now time.Time) {
	s := &a.priority.schedule
	if !s.opening {
		s.loads++
		s.tries++
	}
	opened, err := a.Schedulers.Open(s.options)
	if s.opening = errors.Is(err, ErrNotYet); s.opening {
		return
	}
	if err != nil {
		a.Log.Warn("the scheduler cannot be loaded", "error", err)
		s.problem, s.gap = "the scheduler cannot be loaded: "+err.Error(), max(reloadFirst, 2*s.gap)
		s.next, s.usable = now.Add(s.gap), false // something may be in the way by now
		return
	}
	s.now, s.since, s.sets, s.problem = opened, now, map[uint64]Side{}, ""
	a.Log.Info("the scheduler is in force: quotas and bursts are its own now", "pause", opened.Pause())
	a.markAllDue(now)
}

// expels says whether some group is to have no offline task beside it, whatever its class: a pod may ask for that itself.
func expels(levels []policy.Level) bool {
	return slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Expels() })
}

// assign tells the scheduler of the levels that are new or another rank's, and of those that are none any more.
func (s *schedule) assign(a *Agent, levels []policy.Level) {
	want := map[uint64]Side{}
	for _, l := range levels {
		if !l.Inner && l.QOS.Rank() != strategy.Neutral {
			want[l.Inode] = Side{Offline: l.QOS.Rank() == strategy.Offline, Expels: l.QOS.Expels()}
		}
	}
	var faults error
	for group, side := range want {
		if now, known := s.sets[group]; known && now == side {
			continue
		}
		err := s.now.Set(group, side)
		if err == nil {
			s.sets[group] = side
		}
		faults = errors.Join(faults, err)
	}
	for group := range s.sets {
		if _, wanted := want[group]; !wanted {
			faults = errors.Join(faults, s.now.Forget(group))
			delete(s.sets, group)
		}
	}
	s.problem = ""
	if faults != nil {
		s.problem = faults.Error()
		a.Log.Debug("scheduler", "error", faults)
	}
}

// unschedule takes the scheduler out. Who asks for it anew finds all tries left.
func (a *Agent) unschedule() {
	s := &a.priority.schedule
	if s.opening {
		if err := a.Schedulers.Cancel(); err != nil {
			a.Log.Warn("a scheduler was being loaded", "error", err)
		}
	}
	if s.now != nil {
		a.keepCounts(s.now)
		err := s.now.Close()
		a.Log.Info("the scheduler is out", "error", err)
		a.markAllDue(a.Clock())
	}
	a.priority.schedule = schedule{usable: s.usable, probeAt: s.probeAt, offline: s.offline}
}

// markAllDue has every group looked at: whether it is held at its limit is another question now.
func (a *Agent) markAllDue(now time.Time) {
	for _, g := range a.groups {
		g.Stale(now)
	}
}

// scheduled says whether a scheduler of ours is in force.
func (a *Agent) scheduled() bool { return a.priority.schedule.now != nil }

// machine is what this machine has. Whether a scheduler can be loaded is asked when somebody wants it.
func (a *Agent) machine(now time.Time, asked strategy.Mechanism) policy.Machine {
	s := &a.priority.schedule
	if asked == strategy.MechanismSchedExt && a.Schedulers != nil && !s.usable && !now.Before(s.probeAt) {
		usable, why, err := a.Schedulers.Preflight()
		switch {
		case !errors.Is(err, ErrNotYet):
			a.Machine.SchedExt, a.Machine.SchedExtWhy = usable, why
			s.usable, s.probeAt = usable, now.Add(probeEvery)
		case s.probeAt.IsZero():
			a.Machine.SchedExtWhy = "it is being found out"
		}
	}
	a.cookie(asked)
	a.Machine.IdentitySysctl = a.identitySysctl()
	return a.Machine
}

// identitySysctl is the root group where the machine has a switch of Group Identity, which is a knob of it.
func (a *Agent) identitySysctl() (root workload.ID) {
	if !a.Machine.Identity {
		return root
	}
	if _, err := a.Tree.IdentityEnabled(); errors.Is(err, fs.ErrNotExist) {
		return root
	}
	inode, err := a.Tree.Inode("/")
	if err != nil {
		return root
	}
	return workload.ID{Path: "/", Inode: inode}
}

// scheduler is what the status says of it; nil where none was wanted.
func (a *Agent) scheduler() *report.Scheduler {
	s := &a.priority.schedule
	if s.loads == 0 || s.opening && s.loads == 1 {
		return nil
	}
	r := &report.Scheduler{InForce: s.now != nil, Loads: s.loads, Groups: len(s.sets), Ended: s.ended, Problem: s.problem, Expel: s.options.Expel,
		FloorPercent: s.options.FloorPercent, WatchdogSeconds: s.options.WatchdogSeconds, Totals: a.priority.enforced.totals}
	if s.now != nil {
		since := s.since
		r.Since, r.Pause = &since, s.now.Pause()
		if t, ok := s.now.Totals(); ok {
			r.Totals = r.Totals.Plus(t)
		}
	}
	return r
}
