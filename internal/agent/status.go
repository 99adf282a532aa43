package agent

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Status is a snapshot for people and metrics.
func (a *Agent) Status() report.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Clock()
	a.refresh(now)
	return a.status(now)
}

// refresh has all groups looked at for who asks, where they are looked at rarely.
func (a *Agent) refresh(now time.Time) {
	if !a.subscription.active || a.reader.Turn() == 0 || now.Sub(a.fresh) < observe.IdleEvery {
		return
	}
	a.fresh = now
	a.reader.Refresh()
	a.asked = true
	a.tick(now)
	a.asked = false
	signal(a.sooner)
}

func (a *Agent) status(now time.Time) report.Status {
	s := report.Status{Schema: report.StatusSchema, Version: a.Version, Started: a.started, Now: now, Mode: a.mode(),
		Kernel: a.Kernel, Cgroup: a.Tree.Version().String(), ConfigOK: a.config == nil, Node: a.record.Node(),
		Writes: a.record.Writes(), Events: a.events(), Self: a.self(), LastTurn: a.record.LastTurn(), Problems: a.record.Problems()}
	if a.config != nil {
		s.ConfigMsg = a.config.Error()
	}
	if s.Mode == report.Held {
		s.HeldReason, s.HeldSince = a.whyHeld()
	}
	var risky string
	s.Node.Risk, risky = a.risk.Status()
	s.Reserve = a.cpus.Status()
	s.Problems = append(s.Problems, a.cpus.Problems()...)
	s.Colocation = a.colocation.Status(now, a.Strategy.Colocation)
	s.Problems = append(s.Problems, s.Colocation.Problems()...)
	for _, problem := range []string{risky, a.overruled.problem()} {
		if problem != "" {
			s.Problems = append(s.Problems, problem)
		}
	}
	if a.failed != nil {
		s.Problems = append(s.Problems, a.failed.Error())
	}
	s.Containers = a.record.Containers(now, a.throttles, func(g *record.Group) report.Throttles { return a.scheduler.Counted(g.Inode).Throttles })
	for i := range s.Containers {
		c := &s.Containers[i]
		if until, ok := a.Pauses.until[c.Cgroup]; ok && until.After(now) {
			c.Paused, c.Released = &until, a.Pauses.released[c.Cgroup]
		}
		c.Why = a.why(a.at(c.Cgroup), c.Why, now)
	}
	return s
}

func (a *Agent) mode() report.Mode {
	if a.held() {
		return report.Held
	}
	return report.Active
}

// whyHeld tells of the hold, or where there is none of the retirement.
func (a *Agent) whyHeld() (reason string, since *time.Time) {
	if reason, at := a.Switch.Why(); !at.IsZero() {
		return reason, &at
	}
	if at := a.retired; !at.IsZero() {
		return "retired until it is stopped", &at
	}
	return "", nil // its file has just been removed
}

func (a *Agent) events() report.Events {
	e := &a.subscription
	told := a.record.Events(report.Events{Subscribed: e.active, Why: e.why, Lost: e.lost})
	if e.active {
		told.Priority, told.Missing = a.Events.Priority(), a.Missing
	}
	return told
}

func (a *Agent) self() report.Self {
	self := a.record.Self(report.Self{Looks: a.reader.Looks})
	self.CPU, self.RSS = a.Host.Self()
	self.Rescans, self.EventsLost = a.Discover.Counts()
	return self
}

// throttles are what the kernel's programs count of a group; false where they do not.
func (a *Agent) throttles(g *record.Group) (t report.Throttles, told bool) {
	if a.subscription.active {
		return a.Events.Totals(g.Inode)
	}
	return t, false
}

// LastTurn is when the loop last turned: the sign of life.
func (a *Agent) LastTurn() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.record.LastTurn()
}

// Hold stops writing, and first puts everything back if restore is set.
func (a *Agent) Hold(_ context.Context, restore bool, reason string) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Switch.Hold(reason, a.Clock()); err != nil {
		return nil, err
	}
	a.Writer.SetHold(true)
	a.Log.Warn("held: nothing is written until `plimsoll resume`", "reason", reason, "restore", restore)
	if !restore {
		return nil, nil
	}
	return a.putBack()
}

func (a *Agent) putBack() ([]plan.Result, error) {
	a.scheduler.End(a.Clock())
	begin := a.Clock()
	results := a.Writer.Restore(nil, false)
	a.record.Results(results)
	a.restored(begin, results)
	a.tick(a.Clock()) // writes nothing, and has the status tell what stands now
	return results, a.record.Restored(results)
}

// restored takes what was put back as it stands now.
func (a *Agent) restored(begin time.Time, results []plan.Result) {
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	a.cpus.Again()
	a.cpus.Unshielded(results)
	a.reader.Learn(results)
}

// Resume writes again.
func (a *Agent) Resume(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Switch.Resume(); err != nil {
		return err
	}
	a.retired = time.Time{}
	a.Log.Info("resumed")
	a.wake()
	return nil
}

// Pause holds a container at its limit for a while; 0 ends it.
func (a *Agent) Pause(_ context.Context, container string, d time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.pause(container, d, false)
	return err
}

func (a *Agent) pause(container string, d time.Duration, release bool) ([]plan.Result, error) {
	now := a.Clock()
	found, err := report.Find(a.status(now).Containers, container)
	if err != nil {
		return nil, err
	}
	if d < 0 {
		return nil, fmt.Errorf("pause for %v: not a time", d)
	}
	a.colocation.Again() // suppression makes way
	for _, path := range a.family(found) {
		if err := a.Pauses.set(path, now.Add(d), now, release); err != nil {
			return nil, err
		}
		a.at(path).MarkDue()
	}
	return a.tick(now).Results, nil
}

// family is the container, or a pod's containers and the pod.
func (a *Agent) family(c report.Container) []string {
	paths := []string{c.Cgroup}
	if c.Level != string(observe.LevelPod) {
		return paths
	}
	for _, g := range a.groups {
		if g.Level == observe.LevelContainer && g.Pod == c.Pod && workload.Under(g.Path, c.Cgroup) {
			paths = append(paths, g.Path)
		}
	}
	sort.Strings(paths)
	return paths
}

// errNotReleased says that something of ours still stands.
var errNotReleased = errors.New("not everything could be put back")

// Release puts a container's files back for a while, so that its owner can set a lower limit: a burst above the new
// quota would make the kernel refuse it.
func (a *Agent) Release(_ context.Context, container string, d time.Duration) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	results, err := a.pause(container, d, true)
	for _, r := range results {
		if r.Outcome == plan.Refused && err == nil {
			err = fmt.Errorf("%w: %s %s: %s", errNotReleased, r.Change.Cgroup.Path, r.Change.Knob, r.Err)
		}
	}
	return results, err
}
