// Package schedext keeps a sched_ext scheduler of our own in force while there is offline work beside online work, and adds
// what it counts to what the kernel does.
//
// # Problem
//
// A scheduler is loaded into a running kernel, which may refuse it or end it at any time, and each load lets all tasks stand
// still for a moment. While it is in force the kernel enforces no quota and no burst, counts no period and no throttle, and
// its programs report none: the scheduler enforces what the files hold.
//
// # Approach
//
// The scheduler is loaded when there is offline work, and stays for Lingers after the last of it. One that the kernel ends is
// loaded again after a pause that doubles, reloadMost times, until somebody asks anew; one that has lasted has all tries
// before it again. What a scheduler counts is kept when it goes.
package schedext

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Loader can put a scheduler of our own into the kernel. What takes long goes on beside the caller.
type Loader interface {
	// Preflight says whether that can be done here, and why not; the error is ErrNotYet while that is being found out. It
	// changes nothing.
	Preflight() (usable bool, why string, err error)
	// Open does it; the error is ErrNotYet while the kernel checks the programs.
	Open(Options) (Scheduler, error)
	// Cancel ends an Open that said ErrNotYet last.
	Cancel() error
}

// Options are what a scheduler is to be like.
type Options struct {
	Expel bool // there is online work beside which no offline task is to run on the same core
	strategy.SchedExt
}

// ErrNotYet asks to be called again later.
var ErrNotYet = errors.New("not yet")

// Side is where a group stands.
type Side struct {
	Offline bool
	Expels  bool // no offline task runs beside one of its tasks on the same core
}

// Totals are sums over all CPUs since a scheduler was loaded.
type Totals = report.SchedulerTotals

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
	Totals() (Totals, bool)
	// Pause is how long tasks stood still at the load.
	Pause() time.Duration
	// Close takes it out: all tasks are the fair class's again.
	Close() error
}

const (
	// ProbeEvery is how often it is found out whether what was in the way of a scheduler still is: another one may end.
	ProbeEvery = 30 * time.Second
	// ReloadFirst and ReloadMost: each load waits twice as long as the one before, and after the last none is tried.
	ReloadFirst = 10 * time.Second
	ReloadMost  = 5
	// Lasting is how long a scheduler must be in force to have all tries before it again.
	Lasting = time.Hour
	// Lingers is how long the scheduler stays without offline work: jobs come one after another, and at each load all tasks stand
	// still for a moment.
	Lingers = time.Minute
)

// Keeper keeps a scheduler in force.
type Keeper struct {
	Log *slog.Logger
	// Groups are the inodes of all groups, whose counts are kept when a scheduler goes.
	Groups func() []uint64
	// Changed is called when a scheduler comes into force or goes: whether a group is held at its limit is another question then.
	Changed func(now time.Time)

	Loader  Loader // nil: no scheduler is ever loaded
	now     Scheduler
	options Options
	since   time.Time
	sets    map[uint64]Side // by inode
	next    time.Time       // no load before that
	gap     time.Duration
	opening bool
	loads   int64
	tries   int    // loads since one lasted
	ended   string // why the last one ended
	probe
	offline time.Time // when there was offline work last
	problem string
	counted map[uint64]Counted // by schedulers that were in force, by inode
	totals  Totals             // of these
}

// probe is what the preflight found.
type probe struct {
	usable bool      // nothing is in the way, and no load has failed since
	at     time.Time // it is asked again then, where something was
}

// New makes a keeper of no scheduler.
func New(loader Loader, log *slog.Logger) *Keeper {
	return &Keeper{Loader: loader, Log: log, Groups: func() []uint64 { return nil }, Changed: func(time.Time) {}}
}

// Keep has the scheduler in force where it is the mechanism and there is offline work, with the levels' ranks, and else out. One
// that is to be otherwise is taken out and loaded anew. free says that it may be loaded at all, asked that the configuration
// names it. Keep returns the groups that were throttled, or no longer are.
func (k *Keeper) Keep(now time.Time, free, asked bool, mechanism strategy.Mechanism, options Options, levels []policy.Level) []uint64 {
	free = free && k.Loader != nil
	switch {
	case free && asked && mechanism != strategy.MechanismSchedExt && k.now == nil && !k.opening:
		return nil // something is in the way, for the moment or for good: nobody asks for it anew
	case !free || mechanism != strategy.MechanismSchedExt || !k.wanted(now, levels):
		k.End(now)
		return nil
	}
	if options != k.options {
		k.End(now)
		k.options = options
	}
	if k.now != nil {
		k.watch(now)
	}
	if k.now == nil && !now.Before(k.next) && (k.opening || k.tries < ReloadMost) {
		k.open(now)
	}
	if k.now == nil {
		return nil
	}
	k.assign(levels)
	return k.now.Changed()
}

// wanted says whether there is offline work, or was a moment ago. Without any the kernel's own scheduler does all the same for
// less, and it is the one under which throttles are ended.
func (k *Keeper) wanted(now time.Time, levels []policy.Level) bool {
	if slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Rank() == strategy.Offline }) {
		k.offline = now
	}
	return !k.offline.IsZero() && now.Sub(k.offline) < Lingers
}

// watch takes note when the kernel has ended the scheduler.
func (k *Keeper) watch(now time.Time) {
	why, err := k.now.Ended()
	if err != nil {
		k.problem = "the scheduler: " + err.Error()
		return
	}
	if why == "" {
		if now.Sub(k.since) >= Lasting {
			k.tries, k.gap = 0, 0
		}
		return
	}
	k.keepCounts()
	k.Log.Warn("the scheduler has ended: offline work stands back by cpu.idle", "why", why, "loads", k.loads)
	err = k.now.Close()
	k.now, k.ended, k.gap = nil, why, max(ReloadFirst, 2*k.gap)
	k.next = now.Add(k.gap)
	k.problem = "the scheduler has ended: " + why
	if err != nil {
		k.problem += "; " + err.Error()
	}
}

func (k *Keeper) open(now time.Time) {
	if !k.opening {
		k.loads++
		k.tries++
	}
	opened, err := k.Loader.Open(k.options)
	if k.opening = errors.Is(err, ErrNotYet); k.opening {
		return
	}
	if err != nil {
		k.Log.Warn("the scheduler cannot be loaded", "error", err)
		k.problem, k.gap = "the scheduler cannot be loaded: "+err.Error(), max(ReloadFirst, 2*k.gap)
		k.next, k.usable = now.Add(k.gap), false // something may be in the way by now
		return
	}
	k.now, k.since, k.sets, k.problem = opened, now, map[uint64]Side{}, ""
	k.Log.Info("the scheduler is in force: quotas and bursts are its own now", "pause", opened.Pause())
	k.Changed(now)
}

// assign tells the scheduler of the levels that are new or of another rank, and of those that are none any more.
func (k *Keeper) assign(levels []policy.Level) {
	want := map[uint64]Side{}
	for _, l := range levels {
		if !l.Inner && l.QOS.Rank() != strategy.Neutral {
			want[l.Inode] = Side{Offline: l.QOS.Rank() == strategy.Offline, Expels: l.QOS.Expels()}
		}
	}
	var faults error
	for group, side := range want {
		if now, known := k.sets[group]; known && now == side {
			continue
		}
		err := k.now.Set(group, side)
		if err == nil {
			k.sets[group] = side
		}
		faults = errors.Join(faults, err)
	}
	for group := range k.sets {
		if _, wanted := want[group]; !wanted {
			faults = errors.Join(faults, k.now.Forget(group))
			delete(k.sets, group)
		}
	}
	k.problem = ""
	if faults != nil {
		k.problem = faults.Error()
		k.Log.Debug("scheduler", "error", faults)
	}
}

// End takes the scheduler out. Who asks for it anew finds all tries left.
func (k *Keeper) End(now time.Time) {
	if k.opening {
		if err := k.Loader.Cancel(); err != nil {
			k.Log.Warn("a scheduler was being loaded", "error", err)
		}
	}
	if k.now != nil {
		k.keepCounts()
		err := k.now.Close()
		k.Log.Info("the scheduler is out", "error", err)
		k.Changed(now)
	}
	*k = Keeper{Log: k.Log, Groups: k.Groups, Changed: k.Changed, Loader: k.Loader, probe: k.probe, offline: k.offline, counted: k.counted,
		totals: k.totals}
}

// InForce says whether a scheduler of ours is in force.
func (k *Keeper) InForce() bool { return k.now != nil }

// Busy says whether one is in force or being loaded.
func (k *Keeper) Busy() bool { return k.now != nil || k.opening }

// Probe finds out whether a scheduler can be loaded, and why not.
func (k *Keeper) Probe(now time.Time, m *policy.Machine) {
	if k.Loader == nil || k.usable || now.Before(k.at) {
		return
	}
	usable, why, err := k.Loader.Preflight()
	switch {
	case !errors.Is(err, ErrNotYet):
		m.SchedExt, m.SchedExtWhy = usable, why
		k.usable, k.at = usable, now.Add(ProbeEvery)
	case k.at.IsZero():
		m.SchedExtWhy = "it is being found out"
	}
}

// Status is what a status says of the scheduler; nil where none was wanted.
func (k *Keeper) Status() *report.Scheduler {
	if k.loads == 0 || k.opening && k.loads == 1 {
		return nil
	}
	r := &report.Scheduler{InForce: k.now != nil, Loads: k.loads, Groups: len(k.sets), Ended: k.ended, Problem: k.problem, Expel: k.options.Expel,
		FloorPercent: k.options.FloorPercent, WatchdogSeconds: k.options.WatchdogSeconds, Totals: k.totals}
	if k.now != nil {
		since := k.since
		r.Since, r.Pause = &since, k.now.Pause()
		if t, ok := k.now.Totals(); ok {
			r.Totals = r.Totals.Plus(t)
		}
	}
	return r
}

// Counted is what schedulers have counted of a group.
type Counted struct {
	Counters  cpu.Counters
	Throttles report.Throttles
}

// Counted is what all of them have counted of a group.
func (k *Keeper) Counted(group uint64) Counted {
	c := k.counted[group]
	if k.now != nil {
		c = Counted{c.Counters.Plus(k.now.Counters(group)), c.Throttles.Plus(k.now.Throttles(group))}
	}
	return c
}

// keepCounts keeps what the scheduler has counted beyond its end.
func (k *Keeper) keepCounts() {
	kept := map[uint64]Counted{}
	for _, group := range k.Groups() {
		if c := k.Counted(group); c.Counters != (cpu.Counters{}) || c.Throttles.Begun > 0 {
			c.Throttles.Last = 0 // there is no period of it any more
			kept[group] = c
		}
	}
	k.counted = kept
	if t, ok := k.now.Totals(); ok {
		k.totals = k.totals.Plus(t)
	}
}
