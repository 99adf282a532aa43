package colocation

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
		if id.Path == group || workload.Under(group, id.Path) {
			return true
		}
	}
	return false
}

// soonest is how short a time a measurement may span: colocate may look more often than once a second.
const soonest = colocateEvery * 9 / 10

// suppress says what the quotas of the offline levels are to be, but for those in which a raise or burst still stands, and those
// that something of a higher priority is for.
func (c *Colocation) suppress(now time.Time, ask strategy.Suppress, levels []policy.Level) []plan.Intent {
	_, before := c.suppressor.state.Room()
	list := c.suppressOffline(now, ask, levels)
	if _, after := c.suppressor.state.Room(); after != before {
		c.Agent.Stale(now)
	}
	return slices.DeleteFunc(slices.Clone(list), func(in plan.Intent) bool {
		return in.Knob != plan.CPUs && (c.Agent.Outranked(now, in.Path) || c.raised(in.ID))
	})
}

// raised says whether a raise or a burst stands in a group.
func (c *Colocation) raised(id workload.ID) bool {
	quota, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: plan.Quota})
	burst, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: plan.Burst})
	return quota.Ours() && quota.By == plan.ForBandwidth || burst.Ours() && burst.By == plan.ForBandwidth
}

// suppressOffline measures, once a second, and says what the offline levels are bound to.
func (c *Colocation) suppressOffline(now time.Time, ask strategy.Suppress, levels []policy.Level) []plan.Intent {
	s := &c.suppressor
	if !ask.Enable {
		*s = suppressor{}
		return nil
	}
	elapsed := now.Sub(s.at)
	if elapsed < soonest {
		return s.intents
	}
	busy, err := c.Host.Busy()
	cpus, err2 := c.Host.Online()
	if err = errors.Join(err, err2); err != nil {
		c.Log.Debug("suppression of offline work", "error", err)
		return s.intents
	}
	load := policy.Load{CPUs: float64(cpus), Used: (busy - s.busy).Seconds() / elapsed.Seconds()}
	used := map[workload.ID]time.Duration{}
	for _, l := range levels {
		if l.Inner || l.QOS.Rank() != strategy.Offline {
			continue
		}
		usage, err := c.Tree.Usage(l.Path)
		b, err2 := c.Tree.Bandwidth(l.Path)
		if err := errors.Join(err, err2); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				c.Log.Debug("suppression of offline work", "cgroup", l.Path, "error", err)
			}
			continue
		}
		used[l.ID] = usage
		if before, known := s.used[l.ID]; known {
			load.Offline = append(load.Offline, policy.Suppressed{ID: l.ID, Used: (usage - before).Seconds() / elapsed.Seconds(),
				Limit: c.ownersLimit(l.ID, b)})
		}
	}
	if ask.Policy == strategy.SuppressCPUSet {
		var err error
		if load.Confined, load.Topology, err = c.confinable(levels); err != nil {
			c.Log.Debug("suppression of offline work by CPUs", "error", err)
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
func (c *Colocation) ownersLimit(id workload.ID, limit cpu.Bandwidth) cpu.Bandwidth {
	for knob, d := range map[plan.Knob]*time.Duration{plan.Quota: &limit.Quota, plan.Burst: &limit.Burst} {
		if e, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: knob}); e.Ours() {
			*d, _ = e.Baseline.Time() // it was a time when it was read
		}
	}
	return limit
}

// Suppresses says whether a group is an offline one whose use is bounded, or is in one.
func (c *Colocation) Suppresses(group string) bool { return c.suppressor.suppresses(group) }
