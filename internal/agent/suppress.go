package agent

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// suppressor measures what offline groups and the node use from second to second, and bounds the former.
type suppressor struct {
	state   policy.Suppression
	at      time.Time
	busy    time.Duration
	used    map[workload.ID]time.Duration
	intents []plan.Intent
}

// suppresses says whether a group is an offline one whose use is bounded, or is in one. It is held at its owner's limit
// meanwhile: nothing is raised of what is to be kept small, and nobody takes a raise for the owner's quota.
func (s *suppressor) suppresses(group string) bool {
	if _, bounded := s.state.Room(); !bounded {
		return false
	}
	for id := range s.used {
		if id.Path == group || under(group, id.Path) {
			return true
		}
	}
	return false
}

// soonest is how short a time a measurement may span: colocate may look more often than once a second.
const soonest = colocateEvery * 9 / 10

// suppress says what the quotas of the offline levels are to be, but for those in which a raise or burst still stands, and those
// that something of a higher priority is for.
func (a *Agent) suppress(now time.Time, ask strategy.Suppress, levels []policy.Level) []plan.Intent {
	_, before := a.priority.suppressor.state.Room()
	list := a.suppressOffline(now, ask, levels)
	if _, after := a.priority.suppressor.state.Room(); after != before {
		a.markAllDue(now)
	}
	return slices.DeleteFunc(slices.Clone(list), func(in plan.Intent) bool {
		g := a.groups[in.ID]
		return in.Knob != plan.CPUs && (a.outranks(now, in.Path) || g != nil && (g.QuotaOurs || g.BurstOurs))
	})
}

// outranks says whether something that goes before suppression is for the quota of a group: it is paused, its owner is about to
// write another limit, or it has CPUs of its own.
func (a *Agent) outranks(now time.Time, group string) bool {
	return a.Pauses.paused(group, now) || a.resizes.open(group, now) || a.reservations.shares[group].Unlimited
}

// suppressOffline measures, once a second, and says what the offline levels are bound to.
func (a *Agent) suppressOffline(now time.Time, ask strategy.Suppress, levels []policy.Level) []plan.Intent {
	s := &a.priority.suppressor
	if !ask.Enable {
		*s = suppressor{}
		return nil
	}
	elapsed := now.Sub(s.at)
	if elapsed < soonest {
		return s.intents
	}
	busy, err := a.Host.Busy()
	cpus, err2 := a.Host.Online()
	if err = errors.Join(err, err2); err != nil {
		a.Log.Debug("suppression of offline work", "error", err)
		return s.intents
	}
	load := policy.Load{CPUs: float64(cpus), Used: (busy - s.busy).Seconds() / elapsed.Seconds()}
	used := map[workload.ID]time.Duration{}
	for _, l := range levels {
		if l.Inner || l.QOS.Rank() != strategy.Offline {
			continue
		}
		usage, err := a.Tree.Usage(l.Path)
		b, err2 := a.Tree.Bandwidth(l.Path)
		if err := errors.Join(err, err2); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				a.Log.Debug("suppression of offline work", "cgroup", l.Path, "error", err)
			}
			continue
		}
		used[l.ID] = usage
		if before, known := s.used[l.ID]; known {
			load.Offline = append(load.Offline, policy.Suppressed{ID: l.ID, Used: (usage - before).Seconds() / elapsed.Seconds(),
				Limit: a.ownersLimit(l.ID, b)})
		}
	}
	if ask.Policy == strategy.SuppressCPUSet {
		var err error
		if load.Confined, load.Topology, err = a.confinable(levels); err != nil {
			a.Log.Debug("suppression of offline work by CPUs", "error", err)
		}
	}
	first := s.at.IsZero()
	s.at, s.busy, s.used = now, busy, used
	if !first {
		s.intents = s.state.Decide(now, ask, load)
	}
	return s.intents
}

// ownersLimit is what the owner of a group gave it, whatever stands in its files.
func (a *Agent) ownersLimit(id workload.ID, limit cpu.Bandwidth) cpu.Bandwidth {
	for knob, d := range map[plan.Knob]*time.Duration{plan.Quota: &limit.Quota, plan.Burst: &limit.Burst} {
		if e, _ := a.ledger.Entry(plan.Key{ID: id, Knob: knob}); e.Ours() {
			*d, _ = e.Baseline.Time() // it was a time when it was read
		}
	}
	return limit
}
