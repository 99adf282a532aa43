package colocation

import (
	"fmt"
	"time"

	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// rankUsage sums the CPU time of the containers on each side of the priority.
type rankUsage struct {
	total map[strategy.Rank]time.Duration
	past  []rankSample // oldest first
}

type rankSample struct {
	at    time.Time
	total map[strategy.Rank]time.Duration
}

// rankSpan is the span of the mean use of a rank. Idle groups are read rarely, and use almost nothing.
const rankSpan = 10 * time.Second

func newRankUsage() rankUsage { return rankUsage{total: map[strategy.Rank]time.Duration{}} }

// add adds the CPU time of a container since its last reading.
func (u *rankUsage) add(r strategy.Rank, used time.Duration) { u.total[r] += used }

// mark keeps the current sums, to compute the use since then.
func (u *rankUsage) mark(now time.Time) {
	for len(u.past) > 1 && now.Sub(u.past[1].at) >= rankSpan {
		u.past = u.past[1:]
	}
	s := rankSample{now, map[strategy.Rank]time.Duration{}}
	for r, total := range u.total {
		s.total[r] = total
	}
	u.past = append(u.past, s)
}

// cpus is how many CPUs a rank has recently used.
func (u *rankUsage) cpus(now time.Time, r strategy.Rank) float64 {
	if len(u.past) == 0 || !now.After(u.past[0].at) {
		return 0
	}
	return (u.total[r] - u.past[0].total[r]).Seconds() / now.Sub(u.past[0].at).Seconds()
}

// Status is the status of colocation; nil where it is not configured and no file is claimed.
func (c *Colocation) Status(now time.Time, requested strategy.Colocation) *report.Colocation {
	keys := c.Ledger.Claimed(plan.ForColocation)
	if !requested.Enabled() && len(keys) == 0 {
		return nil
	}
	r := &report.Colocation{Asked: requested.Mechanism, Mechanism: c.mechanism, Why: c.why, Exposed: c.exposed,
		Missing: c.missing}
	if taken := c.suppressor.taken; taken != "" {
		r.Why += "; offline work is bounded by quotas, not by CPUs: " + taken
	}
	r.Scheduler = c.Scheduler.Status()
	if room, bounded := c.suppressor.state.Room(); bounded {
		r.Room = &room
	}
	for _, v := range policy.Preflight(c.Machine) {
		r.Mechanisms = append(r.Mechanisms, report.Mechanism{Name: v.Mechanism, Usable: v.Usable, Why: v.Why})
	}
	for _, key := range keys {
		e, _ := c.Ledger.Entry(key)
		r.Knobs = append(r.Knobs, knobStatus(key, e))
	}
	for _, rank := range []strategy.Rank{strategy.Online, strategy.Offline, strategy.Neutral} {
		n := 0
		for _, g := range c.Reader.Groups() {
			if g.Level == observe.LevelContainer && g.QOS.Rank() == rank {
				n++
			}
		}
		r.Ranks = append(r.Ranks, report.Rank{Rank: rank, Containers: n, Usage: c.usage.total[rank],
			Used: c.usage.cpus(now, rank)})
	}
	return r
}

func knobStatus(key plan.Key, e ledger.Entry) report.Priority {
	k := report.Priority{Cgroup: key.Path, Knob: key.Knob, Want: e.Intended, Have: e.InFile, Original: e.Baseline,
		InForce: e.InForce(),
		Since:   e.Since, Resets: e.Resets, Refused: e.Refused, Foreign: e.State == ledger.Foreign, Problem: e.Problem}
	switch {
	case k.Foreign:
		k.Problem = fmt.Sprintf(report.ProblemPriorityForeign, e.InFile)
	case e.Unread:
		k.Problem = string(plan.Unread)
	}
	return k
}
