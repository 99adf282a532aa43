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
	"plimsoll/internal/suppress"
	"plimsoll/internal/workload"
)

// suppressor measures the use of offline groups and of the node every second, and bounds the former.
type suppressor struct {
	state   suppress.State
	at      time.Time
	busy    time.Duration
	used    map[workload.ID]time.Duration
	intents []plan.Intent
	taken   string // why offline work may be bound to no CPUs although the configuration asks for it
}

// suppresses says whether a group is an offline one whose use is bounded, or is in one. It is kept at its owner's limit
// meanwhile: a raise would counteract the suppression, and could be taken for the owner's quota.
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

// soonest is the shortest time between two measurements: decisions may be more frequent than one a second.
const soonest = colocateEvery * 9 / 10

// suppress makes the intents for the offline levels, except for groups with a raise or burst of ours, and those with a
// reason of a higher priority.
func (c *Colocation) suppress(now time.Time, ask strategy.Suppress, levels []policy.Level) []plan.Intent {
	_, before := c.suppressor.state.Room()
	list := c.suppressOffline(now, ask, levels)
	if _, after := c.suppressor.state.Room(); after != before {
		c.Reader.StaleAll(now) // which groups are kept at their limits has changed
	}
	return slices.DeleteFunc(slices.Clone(list), func(in plan.Intent) bool {
		return in.Knob != plan.CPUs && (c.Agent.Outranked(now, in.Path) || c.raised(in.ID))
	})
}

// raised says whether a raise or a burst of ours is in force in a group.
func (c *Colocation) raised(id workload.ID) bool {
	quota, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: plan.Quota})
	burst, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: plan.Burst})
	return quota.Ours() && quota.By == plan.ForBandwidth || burst.Ours() && burst.By == plan.ForBandwidth
}

// suppressOffline measures once a second, and decides on the offline levels.
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
	load := suppress.Load{CPUs: float64(cpus), Used: (busy - s.busy).Seconds() / elapsed.Seconds()}
	used, known := map[workload.ID]time.Duration{}, 0
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
		before, old := s.used[l.ID]
		if !old {
			before = usage
		} else {
			known++
		}
		load.Offline = append(load.Offline, suppress.Group{ID: l.ID,
			Used: (usage - before).Seconds() / elapsed.Seconds(), Limit: c.ownersLimit(l.ID, b)})
	}
	load.Partial = known < max(len(used), len(s.used))
	s.taken = ""
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

// ownersLimit is the limit that the owner of a group set, also while values of ours are in its files.
func (c *Colocation) ownersLimit(id workload.ID, limit cpu.Bandwidth) cpu.Bandwidth {
	for knob, d := range map[plan.Knob]*time.Duration{plan.Quota: &limit.Quota, plan.Burst: &limit.Burst} {
		if e, _ := c.Ledger.Entry(plan.Key{ID: id, Knob: knob}); e.Ours() {
			*d, _ = e.Baseline.Time() // the ledger has it from a time
		}
	}
	return limit
}

// Suppresses says whether a group is an offline one whose use is bounded, or is in one.
func (c *Colocation) Suppresses(group string) bool { return c.suppressor.suppresses(group) }
