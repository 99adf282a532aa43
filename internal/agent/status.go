package agent

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
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
		if until, released, paused := a.Pauses.Until(c.Cgroup, now); paused {
			c.Paused, c.Released = &until, released
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
	events := a.record.Events(report.Events{Subscribed: e.active, Why: e.why, Lost: e.lost})
	if e.active {
		events.Priority, events.Missing = a.Events.Priority(), a.Missing
	}
	return events
}

func (a *Agent) self() report.Self {
	self := a.record.Self(report.Self{Looks: a.reader.Looks})
	self.CPU, self.RSS = a.Host.Self()
	self.Rescans, self.EventsLost = a.Discover.Counts()
	return self
}

// throttles are what the kernel's programs count of a group; false where they do not.
func (a *Agent) throttles(g *record.Group) (t report.Throttles, watched bool) {
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

// why is the reason for what is in a group's files, in words that say which rule it was: the policy does not know why a
// group is to stay at its limit.
func (a *Agent) why(g *group, decided string, now time.Time) string {
	switch {
	case g == nil:
	case strings.HasSuffix(decided, policy.WhyAtLimit) && g.Paused:
		return strings.TrimSuffix(decided, policy.WhyAtLimit) + a.whyAtLimit(g, now)
	case decided == "" && !g.Class.Burstable():
		return fmt.Sprintf("class %s: the limit is left alone", g.Class)
	}
	return decided
}

// whyAtLimit says who keeps a group at its limit.
func (a *Agent) whyAtLimit(g *group, now time.Time) string {
	_, released, paused := a.Pauses.Until(g.Path, now)
	switch {
	case paused && released:
		return "released: held at the limit for another writer"
	case paused:
		return "paused: held at the limit"
	case a.scheduler.InForce():
		return "held at the limit: the scheduler of mechanism schedExt runs all tasks"
	case a.overruled.by != "":
		return fmt.Sprintf("held at the limit: the sched_ext scheduler %s runs all tasks", a.overruled.by)
	case a.resizes.open(g.Path, now):
		return "held at the limit: the container runtime is about to resize it"
	case a.colocation.Suppresses(g.Path):
		return "suppressed: offline work is held at its limit"
	}
	return "held at the limit: a resize of its pod is under way"
}
