package agent

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/outcome"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Status is a snapshot of the agent for people and metrics.
func (a *Agent) Status() report.Status { return a.statusOf(nil, true) }

// Glance is a Status for who asks each second: the counters of quiet groups may be half a minute old. It overwrites the
// list with the containers, which are ordered by their paths.
func (a *Agent) Glance(list []report.Container) report.Status {
	return a.statusOf(list, false)
}

// Containers is what the agent knows of all groups. Nothing is read for it.
func (a *Agent) Containers() []report.Container {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.record.Estimated(a.Clock(), a.mu.Yield)
}

func (a *Agent) statusOf(list []report.Container, all bool) report.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	groups := a.record.Groups()
	a.mu.Outside(func() { list = slices.Grow(list[:0], groups) }) // megabytes: the collector may ask for help
	now := a.Clock()
	if a.subscription.active && a.reader.Refresh(now, all) { // else the groups are read often enough
		a.tick(now)
		signal(a.sooner)
	}
	return a.status(list, now)
}

func (a *Agent) status(list []report.Container, now time.Time) report.Status {
	s := report.Status{Schema: report.StatusSchema, Version: a.Version, Started: a.started, Now: now,
		Mode: report.Active, Kernel: a.Kernel, Cgroup: a.Tree.Version().String(), ConfigOK: a.config == nil,
		Node: a.record.Node(), Writes: a.record.Writes(), Events: a.events(), Self: a.self(),
		LastTurn: a.record.LastTurn(), Cuts: a.record.Cuts(now), ConfigMsg: report.Message(a.config)}
	if a.held() {
		s.Mode = report.Held
		reason, since := a.Switch.Why()
		if since.IsZero() && !a.retired.IsZero() {
			reason, since = "retired until it is stopped", a.retired
		}
		if !since.IsZero() { // else the hold has just ended
			s.HeldReason, s.HeldSince = reason, &since
		}
	}
	var risky string
	s.Node.Risk, risky = a.risk.Status()
	s.Reserve = a.cpus.Status()
	a.mu.Yield() // what follows looks at all files, twice
	s.Colocation = a.colocation.Status(now, a.Strategy.Colocation)
	a.mu.Yield()
	s.Problems = slices.Concat(a.faults(), a.record.Problems(), a.cpus.Problems(), s.Colocation.Problems())
	for _, problem := range []string{risky, a.otherScheduler.Problem()} {
		if problem != "" {
			s.Problems = append(s.Problems, problem)
		}
	}
	if a.Events != nil && a.Events.Unplaced() > 0 {
		s.Problems = append(s.Problems, report.ProblemUnplaced)
	}
	if a.failed != nil {
		s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemDiscovery, report.Message(a.failed)))
	}
	scheduled := func(g *outcome.Account) report.Throttles { return a.scheduler.Counts(g.Inode).Throttles }
	s.Containers = a.record.Containers(list, now, a.throttles, scheduled)
	a.record.Receipts(&s, a.state, a.Seed, a.mu.Yield)
	for i := range s.Containers {
		a.mu.Yield()
		c := &s.Containers[i]
		if until, released, paused := a.pause(c.Cgroup, now); paused {
			end := until // until itself would escape to the heap for each container
			c.Paused, c.Released = &end, released
		}
		if g := a.at(c.Cgroup); g != nil && c.Why == "" && !g.Class.Burstable() {
			c.Why = fmt.Sprintf("class %s: the limit is left alone", g.Class)
		}
	}
	return s
}

// faults are those of the configuration on disk: its error has one a line.
func (a *Agent) faults() (list []string) {
	if a.config == nil {
		return nil
	}
	for fault := range strings.SplitSeq(a.config.Error(), "\n") {
		list = append(list, fmt.Sprintf(report.ProblemConfig, fault))
	}
	return list
}

func (a *Agent) events() report.Events {
	e := &a.subscription
	events := a.record.Events(report.Events{Subscribed: e.active, Why: e.why, Lost: e.lost})
	if e.active {
		events.Priority, events.PriorityWhy = a.Events.Priority()
		events.Missing = a.Missing
	}
	return events
}

func (a *Agent) self() report.Self {
	self := a.record.Self(report.Self{Looks: a.reader.Looks, Goroutines: runtime.NumGoroutine()})
	self.CPU, self.RSS = a.Host.Self()
	self.Rescans, self.EventsLost = a.Discover.Counts()
	return self
}

// throttles are the totals of a group by eBPF; false without them.
func (a *Agent) throttles(g *outcome.Account) (t report.Throttles, watched bool) {
	a.mu.Yield() // there may be thousands of groups
	if a.subscription.active {
		return a.Events.Totals(g.Inode)
	}
	return t, false
}

// Health is the part of Status that says whether the agent lives and is ready.
func (a *Agent) Health() report.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return report.Status{Started: a.started, LastTurn: a.record.LastTurn()}
}

// whyPaused says why a group is kept at its limit, whatever its strategy; "": it is not.
func (a *Agent) whyPaused(group string, now time.Time) string {
	switch _, released, paused := a.pause(group, now); {
	case paused && released:
		return "released: kept at the limit for another writer"
	case paused:
		return "paused: kept at the limit"
	case a.scheduler.InForce():
		return "kept at the limit: the scheduler of mechanism schedExt runs all tasks"
	case a.otherScheduler.Why() != "":
		return a.otherScheduler.Why()
	case a.resizes.Paused(group, now):
		return "kept at the limit: the container runtime is about to resize it"
	case a.colocation.Suppresses(group) && !a.share(group).Unlimited:
		return "suppressed: offline work is kept at its limit"
	}
	return ""
}

// pause is the pause of a group, or that of its pod: a container may be newer than the pause.
func (a *Agent) pause(group string, now time.Time) (until time.Time, released, paused bool) {
	until, released, paused = a.Pauses.Until(group, now)
	if paused {
		return until, released, paused
	}
	if pod := a.pausedPod(group, now); pod != "" {
		return a.Pauses.Until(pod, now)
	}
	return until, released, paused
}

// pausedPod is the paused pod that a group is in; "": none.
func (a *Agent) pausedPod(group string, now time.Time) string {
	if a.Pauses.Empty() {
		return ""
	}
	for above := range workload.Above(group) {
		if !a.Pauses.Paused(above, now) {
			continue
		}
		if g := a.reader.At(above); g != nil && g.Level == observe.LevelPod {
			return above
		}
	}
	return ""
}
