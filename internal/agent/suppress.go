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
	state    policy.Suppression
	at       time.Time
	busy     time.Duration
	used     map[workload.ID]time.Duration
	settings []policy.Setting
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

// suppress says what the quotas of the offline levels are to be, but for those in which a raise or burst still stands.
func (a *Agent) suppress(now time.Time, ask strategy.Suppress, levels []policy.Level) []policy.Setting {
	_, before := a.priority.suppressor.state.Room()
	list := a.suppressOffline(now, ask, levels)
	if _, after := a.priority.suppressor.state.Room(); after != before {
		a.markAllDue(now)
	}
	return slices.DeleteFunc(slices.Clone(list), func(s policy.Setting) bool {
		g := a.groups[s.ID]
		return s.Knob != plan.CPUs && g != nil && a.ours(g.ID)
	})
}

// suppressOffline measures, once a second, and says what the offline levels are bound to.
func (a *Agent) suppressOffline(now time.Time, ask strategy.Suppress, levels []policy.Level) []policy.Setting {
	s := &a.priority.suppressor
	if !ask.Enable {
		*s = suppressor{}
		return nil
	}
	elapsed := now.Sub(s.at)
	if elapsed < soonest {
		return s.settings
	}
	busy, err := a.Host.Busy()
	cpus, err2 := a.Host.Online()
	if err = errors.Join(err, err2); err != nil {
		a.Log.Debug("suppression of offline work", "error", err)
		return s.settings
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
		s.settings = s.state.Decide(now, ask, load)
	}
	return s.settings
}

// ownersLimit is what the owner of a group gave it, whatever stands in its files; without a burst where one of policy does.
func (a *Agent) ownersLimit(id workload.ID, limit cpu.Bandwidth) cpu.Bandwidth {
	limit.Quota, limit.Burst = a.timeBefore(id, plan.Quota, limit.Quota), a.timeBefore(id, plan.Burst, limit.Burst)
	g := a.groups[id]
	if g != nil && g.QuotaOurs {
		limit.Quota = g.limit.Quota
	}
	if g != nil && g.BurstOurs {
		limit.Burst = 0
	}
	return limit
}

// timeBefore is what stood in a quota or burst before the priority of online work wrote it, else what stands there.
func (a *Agent) timeBefore(id workload.ID, knob plan.Knob, held time.Duration) time.Duration {
	if before, ok := a.priority.knobs.Before(policy.Key{ID: id, Knob: knob}); ok {
		d, _ := before.Time() // it was a time when it was read
		return d
	}
	return held
}

// owns says whether the priority of online work holds a knob: what others find in it is ours.
func (p *priority) owns(id workload.ID, knob plan.Knob) bool {
	return p.knobs.Owns(policy.Key{ID: id, Knob: knob})
}
