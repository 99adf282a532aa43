package agent

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"
	"syscall"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const (
	levelPod       = "pod"
	levelContainer = "container"
)

// bandwidthEvery is how often limit files are read although inotify tells of no write. Where the kernel tells of throttles,
// and with each of the limit, it is heldEvery for a group that is raised or throttled, and rarelyEvery for one at rest.
const (
	bandwidthEvery = 2 * time.Second
	heldEvery      = 10 * time.Second
	rarelyEvery    = time.Minute
)

// group is what the agent keeps of one group that it looks after.
type group struct {
	workload.Container
	level      string
	pod        string
	disk       cpu.Bandwidth
	diskAt     time.Time // zero: to be read again
	ready      bool
	idle       bool // cpu.idle is set, of it or of a group above
	watched    bool // policy.View
	barred     bool // policy.View.SuppressEvents
	suppressed bool // so it sends no events
	capped     bool // throttled all the same
	reading    sample.Reading
	threads    threadMeter
	due        time.Time
	looked     bool      // in this turn
	seen       int64     // the last turn in which it was there
	stable     bool      // policy.View
	moved      time.Time // when its counters last were other ones than at the look before
	quiet      time.Time // it has used nothing since the last look until then
	top        *group    // the pod that is idle, or was at the last look
	// Of a pod: until when it may be skipped as idle, and the last turn in which it was.
	idleUntil time.Time
	skipped   int64
	held      bool // its files are kept open
	since     time.Time
	born      time.Time     // its first task was seen then; zero: it has none yet
	old       bool          // it was there before the agent
	above     time.Duration // used above the limit, as the kernel's programs had counted it at the last look
	status    standing
	saving    saving
	said      []string // outcomes that were logged
	throttles throttleBook
	undone    time.Duration // the quota that stands though its owner may have written another one; 0: none
	quotaOurs bool          // a value of ours stood in the file at the last look
	burstOurs bool
	late      time.Time      // when its owner's write of the limit counts as lost; zero: it is in force
	refill    *policy.Refill // the last one, as long as its effect is not known
}

// standing is what the status says of a group and nobody else keeps.
type standing struct {
	Limit      time.Duration
	Period     time.Duration
	Quota      report.Knob
	Burst      report.Knob
	BudgetLeft *time.Duration
	Why        string
	TooLow     bool
	RefillsOff *time.Time
	Totals     report.Totals
}

// Limited says whether the group has a limit at all.
func (s *standing) Limited() bool { return s.Limit != cpu.Unlimited }

// first says whether something is said of the group for the first time.
func (g *group) first(what string) bool {
	if slices.Contains(g.said, what) {
		return false
	}
	g.said = append(g.said, what)
	return true
}

// stale has everything of the group read at the next turn.
func (g *group) stale(now time.Time) {
	g.diskAt, g.due = time.Time{}, now
	g.markDue()
}

// interval is how long the group may go without a look.
func (a *Agent) interval(g *group) time.Duration {
	if !g.Class.Burstable() { // the guard counts on what it uses (policy/guard.go)
		return idleEvery
	}
	near := g.Strategy.Policy.Quota()
	if a.subscription.active {
		near = g.watched || g.ready && !g.stable
	}
	switch raised := g.status.Quota.Changed; {
	case !g.disk.Limited() || !near && !raised:
		return a.rest()
	case !near:
		return followEvery
	case a.subscription.active && g.barred && g.capped && g.status.BudgetLeft == nil:
		return cappedEvery
	}
	return lookEvery
}

// reread is how long what was read of a group's limit files holds.
func (a *Agent) reread(g *group) time.Duration {
	switch {
	case !a.subscription.active || !g.Class.Burstable():
		return bandwidthEvery
	case g.watched || g.status.Quota.Changed:
		return heldEvery
	}
	return rarelyEvery
}

// rest is how long a group may go without a look that nothing is to be decided for.
func (a *Agent) rest() time.Duration {
	if a.subscription.active {
		return quietEvery
	}
	return idleEvery
}

// lookGroup reads one group, when it is due, and makes of it what the policy wants; false when it is gone, or
// could never be read.
func (a *Agent) lookGroup(now time.Time, c workload.Container, level, pod string) (policy.Group, bool) {
	g := a.groups[c.ID]
	if g == nil {
		if _, known := a.paths[c.Path]; known { // another group of that name
			a.forgetFiles(c.Path)
		}
		g = &group{since: now, old: a.turn <= 1}
		a.groups[c.ID], a.paths[c.Path] = g, c.ID
	}
	c.Paused = c.Paused || a.Pauses.paused(c.Path, now) || a.scheduled() || a.overruled.by != "" || a.resizes.open(c.Path, now) ||
		a.priority.suppressor.suppresses(c.Path)
	if c.Strategy != g.Strategy || c.Paused != g.Paused {
		g.stale(now)
	}
	g.Container, g.level, g.pod = c, level, pod
	g.wakened()
	switch err := a.read(now, g); {
	case gone(err):
		return policy.Group{}, false
	case err != nil:
		// What was read last stands: a group that was forgotten with our quota in its file would be known again with
		// that for its limit.
		g.looked, g.due = false, now.Add(idleEvery) // soon: it may be a passing trouble
		a.account.problem(g, err)
	case g.looked:
		delete(a.account.problems, g.Path)
	}
	g.seen = a.turn
	a.present++
	share := a.reservations.shares[c.Path]
	group := policy.Group{ID: c.ID, Unlimited: share.Unlimited, CPUs: len(share.CPUs), Strategy: c.Strategy, Request: c.Request, Class: c.Class,
		Deprioritized: a.deprioritized(g), Paused: c.Paused, Disk: g.disk, Ready: g.ready, Quiet: g.quiet, Reading: g.reading, Looked: g.looked,
		Starting: g.starting(now)}
	if g.disk.Period > 0 {
		a.see(now, g, &group)
	}
	return group, g.disk.Period > 0
}

// offline says whether a group is to stand back.
func (g *group) offline() bool {
	return g.Class == workload.ClassBE || g.QOS.Rank() == strategy.Offline
}

// starting says whether a container is in its start. Of one that was there before the agent nobody knows how old it is.
func (g *group) starting(now time.Time) bool {
	return g.level == levelContainer && !g.old && !g.Started && !g.born.IsZero() &&
		now.Sub(g.born) < time.Duration(g.Strategy.StartupSeconds)*time.Second
}

// gone says whether an error means that the group was removed.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) }

// read brings what is known of a group up to date, as far as it is due.
func (a *Agent) read(now time.Time, g *group) error {
	g.looked = false
	if now.Sub(g.diskAt) >= a.reread(g) {
		disk, err := a.Tree.Bandwidth(g.Path)
		if err != nil {
			return err
		}
		if g.ready, err = a.Tree.Populated(g.Path); err != nil {
			return err
		}
		g.disk, g.diskAt = disk, now
		if g.ready && g.born.IsZero() {
			g.born = now
		}
		g.idle = g.offline() && a.idle(g.Path)
	}
	if now.Before(g.due) {
		return nil
	}
	counters, err := a.Tree.Stat(g.Path)
	if err != nil {
		return err
	}
	at := a.Clock()
	if err := a.readUsage(g, &counters, at); err != nil {
		return err
	}
	counters = plus(counters, a.withScheduler(g.Inode).counters)
	if counters != g.reading.Counters || g.reading.At.IsZero() {
		g.moved = at
	}
	g.looked, g.reading = true, sample.Reading{At: at, Counters: counters}
	a.account.self.Looks++
	return nil
}

// idle says whether the kernel keeps a group, or one above it, behind all others (cpu.idle).
func (a *Agent) idle(group string) bool {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if idle, err := a.Tree.Idle(group); err == nil && idle {
			return true
		}
	}
	return false
}

// readUsage completes a reading with the CPU time used, where cpu.stat does not have it. Nothing depends on that of a
// group at its limit whose period timer has not ticked: it has not been throttled, and what it has begun to use is
// read at the tick.
func (a *Agent) readUsage(g *group, c *cpu.Counters, at time.Time) error {
	last := g.reading.Counters
	switch {
	case c.HasUsage:
	case g.disk.Limited() && !g.watched && !g.reading.At.IsZero() && c.Periods == last.Periods:
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	default:
		usage, err := a.Tree.Usage(g.Path)
		if errors.Is(err, fs.ErrNotExist) { // a group of the cpu hierarchy alone
			c.Usage = g.threads.usage(a.Tree, a.Host, g.Path, at)
			return nil
		}
		c.Usage, c.HasUsage = usage, err == nil
		return err
	}
	return nil
}

// ceiling is the number of CPUs that the nearest ancestor with a finite quota allows.
func (a *Agent) ceiling(now time.Time, group string) float64 {
	if now.Sub(a.ceilingsAt) >= bandwidthEvery {
		a.ceilings, a.ceilingsAt = map[string]float64{}, now
	}
	return a.ceilingAt(path.Dir(group))
}

func (a *Agent) ceilingAt(dir string) float64 {
	if dir == "/" || dir == "." {
		return math.Inf(1)
	}
	cpus, known := a.ceilings[dir]
	if !known {
		if b, err := a.Tree.Bandwidth(dir); err == nil && b.Limited() {
			cpus = b.CPUs()
		} else {
			cpus = a.ceilingAt(path.Dir(dir))
		}
		a.ceilings[dir] = cpus
	}
	return cpus
}
