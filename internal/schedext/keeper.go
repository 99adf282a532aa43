// Package schedext keeps our sched_ext scheduler in force while there is offline work, and adds its counters to those
// of the kernel.
//
// # Problem
//
// A scheduler is loaded into a running kernel, which may refuse it or end it at any time, and each load stalls all
// tasks for a moment. While the scheduler is in force, the kernel enforces no quota and no burst, counts no periods and
// no throttles, and reports no throttle events: the scheduler enforces the values of the files instead.
//
// # Approach
//
// The scheduler is loaded when there is offline work, and unloaded Lingers after the last of it. A scheduler that the
// kernel ends is loaded again after a back-off that doubles, at most ReloadMost times, until the configuration requests
// it anew; after Lasting in force without a fault the count begins anew. A scheduler that is unloaded for lack of
// offline work does not count. The counters of a scheduler are kept after its end.
package schedext

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// Loader loads our scheduler into the kernel. Lengthy work is done in the background.
type Loader interface {
	// Preflight says whether a scheduler can be loaded here, and why not; the error is ErrNotYet until that is known.
	// It changes nothing.
	Preflight() (usable bool, why string, err error)
	// Open loads a scheduler; the error is ErrNotYet while the kernel verifies its programs.
	Open(Options) (Scheduler, error)
	// Cancel ends an Open whose last error was ErrNotYet, and does not wait for its end.
	Cancel()
}

// Options configure a scheduler.
type Options struct {
	Expel bool // some online work expels offline tasks from its cores
	strategy.SchedExt
}

// ErrNotYet means that the caller has to call again later.
var ErrNotYet = errors.New("not yet")

// Side is the scheduling class of a group.
type Side struct {
	Offline bool
	Expels  bool // no offline task runs on the same core as one of its tasks
}

// Totals are sums over all CPUs since a scheduler was loaded.
type Totals = report.SchedulerTotals

// Scheduler is a scheduler in force. It ends with this process, even if that is killed.
type Scheduler interface {
	// Set assigns a group, by inode, and the groups below it to a side.
	Set(group uint64, to Side) error
	Forget(group uint64) error
	// Ended says why it is no longer in force; "" while it is.
	Ended() (string, error)
	// Counters returns its counters of a group: periods, throttles and bursts.
	Counters(group uint64) cpu.Counters
	// Throttles returns the throttles of a group, which only this scheduler counts.
	Throttles(group uint64) report.Throttles
	// Changed lists the groups whose throttle began or ended since the last call.
	Changed() []uint64
	// Totals returns its sums over all CPUs; false if they cannot be read.
	Totals() (Totals, bool)
	// Stall is how long loading it stalls all tasks.
	Stall() time.Duration
	// Close unloads it: the fair class schedules all tasks again.
	Close() error
}

const (
	// ProbeEvery is how often the preflight is repeated after it has failed: another scheduler may end.
	ProbeEvery = 30 * time.Second
	// ReloadFirst is the first back-off between loads, which then doubles; ReloadMost bounds the loads.
	ReloadFirst = 10 * time.Second
	ReloadMost  = 5
	// Lasting is how long schedulers must be in force without a fault for the count of loads to begin anew.
	Lasting = time.Hour
	// Lingers is how long the scheduler stays loaded without offline work: jobs often follow one another, and each load
	// stalls all tasks for a moment.
	Lingers = time.Minute
)

// Keeper keeps a scheduler in force.
type Keeper struct {
	Log *slog.Logger
	// Groups returns the inodes of all groups, whose counters are kept after a scheduler ends.
	Groups func() []uint64
	// Changed is called when a scheduler comes into force or ends: that decides whether groups are kept at their
	// limits.
	Changed func(now time.Time)

	Loader  Loader // nil: no scheduler is loaded
	now     Scheduler
	since   time.Time
	sets    map[uint64]Side // by inode
	opening bool
	paused  bool // unloaded for lack of offline work
	attempts
	probe
	offline time.Time         // when there was last offline work
	counts  map[uint64]Counts // by inode: of schedulers that have ended
	totals  Totals            // of schedulers that have ended
}

// attempts are what is known of the loads since the configuration requested the scheduler.
type attempts struct {
	options Options
	next    time.Time // no load before that
	gap     time.Duration
	loads   int64
	tries   int           // loads since schedulers were in force for Lasting
	lasted  time.Duration // for which those before this one were in force since the last fault
	ended   string        // why the last one ended
	problem string
}

// probe is what the preflight found.
type probe struct {
	usable bool      // the preflight has succeeded, and no load has failed since
	at     time.Time // when the preflight is repeated, if it failed
}

// New makes a keeper without a scheduler.
func New(loader Loader, log *slog.Logger) *Keeper {
	return &Keeper{Loader: loader, Log: log, Groups: func() []uint64 { return nil }, Changed: func(time.Time) {}}
}

// Keep loads the scheduler if it is the mechanism and there is offline work, and assigns the levels to sides; else it
// unloads it. With other options the scheduler is loaded anew. free says that a scheduler may be loaded at all,
// requested that the configuration names it. Keep returns the groups whose throttle began or ended.
func (k *Keeper) Keep(now time.Time, free, requested bool, mechanism strategy.Mechanism, options Options,
	levels []policy.Level) []uint64 {
	free = free && k.Loader != nil
	switch {
	case free && requested && mechanism != strategy.MechanismSchedExt && k.now == nil && !k.opening:
		return nil // it is not usable, for now or for good; the count of loads is kept
	case !free || mechanism != strategy.MechanismSchedExt:
		k.End(now)
		return nil
	case !k.wanted(now, levels):
		k.pause(now)
		return nil
	}
	if options != k.options {
		k.End(now)
	}
	k.options, k.paused = options, false
	var fault error
	if k.now != nil {
		fault = k.watch(now)
	}
	if k.now == nil && !now.Before(k.next) && (k.opening || k.tries < ReloadMost) {
		k.open(now)
	}
	if k.now == nil {
		return nil
	}
	k.assign(levels, fault)
	return k.now.Changed()
}

// wanted says whether there is offline work, or was within Lingers. Without offline work the kernel's own scheduler is
// cheaper, and under it throttles are ended.
func (k *Keeper) wanted(now time.Time, levels []policy.Level) bool {
	if slices.ContainsFunc(levels, func(l policy.Level) bool { return l.QOS.Rank() == strategy.Offline }) {
		k.offline = now
	}
	return !k.offline.IsZero() && now.Sub(k.offline) < Lingers
}

// watch records that the kernel has ended the scheduler. The error says why it is not known whether it has.
func (k *Keeper) watch(now time.Time) error {
	why, err := k.now.Ended()
	if err != nil {
		return err
	}
	if why == "" {
		if k.lasted+now.Sub(k.since) >= Lasting {
			k.tries, k.gap = 0, 0
		}
		return nil
	}
	k.keepCounts()
	k.Log.Warn("the scheduler has ended: offline work is deprioritized by cpu.idle", "why", why, "loads", k.loads)
	err = k.now.Close()
	k.now, k.ended = nil, why
	k.failed(now, fmt.Sprintf(report.ProblemSchedulerEnded, why))
	if err != nil {
		k.problem += "; " + err.Error()
	}
	k.Changed(now)
	return nil
}

// failed delays the next load.
func (k *Keeper) failed(now time.Time, problem string) {
	k.problem, k.lasted, k.gap = problem, 0, max(ReloadFirst, 2*k.gap)
	k.next = now.Add(k.gap)
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
		k.failed(now, fmt.Sprintf(report.ProblemSchedulerNotLoaded, err))
		k.usable = false // repeat the preflight
		return
	}
	k.now, k.since, k.sets, k.problem = opened, now, map[uint64]Side{}, ""
	k.Log.Info("the scheduler is in force and enforces quotas and bursts", "stall", opened.Stall())
	k.Changed(now)
}

// assign updates the scheduler's groups: new levels, changed ones, and those that no longer exist. It reports what
// failed, together with earlier faults.
func (k *Keeper) assign(levels []policy.Level, faults error) {
	want := map[uint64]Side{}
	for _, l := range levels {
		if !l.Inner && l.QOS.Rank() != strategy.Neutral {
			want[l.Inode] = Side{Offline: l.QOS.Rank() == strategy.Offline, Expels: l.QOS.Expels()}
		}
	}
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
		k.problem = fmt.Sprintf(report.ProblemScheduler, faults)
		k.Log.Debug("scheduler", "error", faults)
	}
}

// End unloads the scheduler. The count of loads begins anew.
func (k *Keeper) End(now time.Time) {
	if k.opening {
		k.Loader.Cancel()
	}
	if k.now != nil {
		k.keepCounts()
		err := k.now.Close()
		k.Log.Info("the scheduler is unloaded", "error", err)
		k.Changed(now)
	}
	*k = Keeper{Log: k.Log, Groups: k.Groups, Changed: k.Changed, Loader: k.Loader, probe: k.probe, offline: k.offline,
		counts: k.counts, totals: k.totals}
}

// pause unloads the scheduler, and keeps the count of loads: without the last one, unless that one failed.
func (k *Keeper) pause(now time.Time) {
	if k.now != nil {
		_ = k.watch(now) // it is unloaded in either case
	}
	kept := k.attempts
	if k.Busy() {
		kept.tries, kept.problem = max(0, kept.tries-1), ""
	}
	if k.now != nil {
		kept.lasted += now.Sub(k.since)
	}
	k.End(now)
	k.attempts, k.paused = kept, true
}

// InForce says whether a scheduler of ours is in force.
func (k *Keeper) InForce() bool { return k.now != nil }

// Busy says whether one is in force or being loaded.
func (k *Keeper) Busy() bool { return k.now != nil || k.opening }

// Probe sets in m whether a scheduler can be loaded, and why not.
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
		m.SchedExtWhy = "the preflight is not finished"
	}
}

// Status is the status of the scheduler; nil if none was loaded, or there is no offline work.
func (k *Keeper) Status() *report.Scheduler {
	if k.loads == 0 || k.opening && k.loads == 1 || k.paused {
		return nil
	}
	r := &report.Scheduler{InForce: k.now != nil, Loads: k.loads, Groups: len(k.sets), Ended: k.ended,
		Problem: k.problem, Expel: k.options.Expel,
		FloorPercent: k.options.FloorPercent, WatchdogSeconds: k.options.WatchdogSeconds, Totals: k.totals}
	if k.now != nil {
		since := k.since
		r.Since, r.Stall = &since, k.now.Stall()
		if t, ok := k.now.Totals(); ok {
			r.Totals = r.Totals.Plus(t)
		}
	}
	return r
}

// Counts are the counters and throttles of one group.
type Counts struct {
	Counters  cpu.Counters
	Throttles report.Throttles
}

// Counts returns what all schedulers so far have counted for a group.
func (k *Keeper) Counts(group uint64) Counts {
	c := k.counts[group]
	if k.now != nil {
		c = Counts{c.Counters.Plus(k.now.Counters(group)), c.Throttles.Plus(k.now.Throttles(group))}
	}
	return c
}

// keepCounts keeps the counts of the scheduler after its end.
func (k *Keeper) keepCounts() {
	kept := map[uint64]Counts{}
	for _, group := range k.Groups() {
		if c := k.Counts(group); c.Counters != (cpu.Counters{}) || c.Throttles.Begun > 0 {
			c.Throttles.Last = 0 // its last period has ended
			kept[group] = c
		}
	}
	k.counts = kept
	if t, ok := k.now.Totals(); ok {
		k.totals = k.totals.Plus(t)
	}
}
