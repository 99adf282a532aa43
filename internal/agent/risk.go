package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// keptMinutes is how far back the demands go that the load line is computed from.
const keptMinutes = 10

// riskMeter keeps what containers have wanted of late, and what follows for their bursts.
type riskMeter struct {
	records map[workload.ID]*uses
	at      time.Time // of the last reading
	busy    time.Duration
	working bool // the risk is being computed
	cut     float64
	status  *report.Risk
	problem string
}

// uses is the use of a container's periods in the last minutes.
type uses struct {
	total   []int64
	minutes [][]int64 // oldest first
	used    time.Duration
}

// measureRisk has the bursts sized anew, once a minute. The computation takes a fraction of a second on a full node, so
// it is done beside the turns.
func (a *Agent) measureRisk(now time.Time) {
	m := &a.risk
	target := a.Strategy.LoadLinePercent
	switch {
	case target == 0:
		*m = riskMeter{}
		return
	case !a.subscription.active || a.Uncounted:
		*m = riskMeter{problem: "loadLinePercent: the kernel does not count the use of periods: " + a.subscription.why}
		return
	case m.working || now.Sub(m.at) < policy.LoadLineEvery:
		return
	}
	m.problem = ""
	busy, err := a.Host.Busy()
	if err != nil {
		m.problem = "loadLinePercent: " + err.Error()
		return
	}
	last, machine := m.at, busy-m.busy
	m.at, m.busy = now, busy
	if last.IsZero() {
		a.demands(now, now) // from now on
		return
	}
	span := now.Sub(last)
	demands, modelled := a.demands(now, last)
	others := max(0, machine-modelled).Seconds() / span.Seconds()
	m.working = true
	go a.computeRisk(now, float64(a.record.Node().CPUs)-others, demands, target)
}

// countBy has the use of a group's periods counted by its limit, raised or not.
func (a *Agent) countBy(g *group, limit time.Duration) {
	if !a.subscription.active || a.subscription.pods[g.Inode] == nil || g.counted == limit {
		return
	}
	g.counted = limit
	if err := a.Events.Limit(g.Inode, limit); err != nil {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}

// demands reads what the containers have used in their periods since the last reading, and returns what is known of
// them, and the CPU time that they used meanwhile. One that was there then and was not counted, for nobody asked yet or it
// had no limit, is so from now on.
func (a *Agent) demands(now, last time.Time) (list []policy.Demand, used time.Duration) {
	records := map[workload.ID]*uses{}
	for id, g := range a.groups {
		if g.Level != observe.LevelContainer || !g.Disk.Limited() {
			continue
		}
		t, ok := a.Events.Totals(id.Inode)
		if !ok {
			continue
		}
		r, begin := a.risk.records[id], last
		switch {
		case r == nil && g.Since.Before(last):
			records[id] = &uses{total: t.Uses, used: t.Usage}
			continue
		case r == nil:
			r, begin = &uses{used: t.Usage}, g.Since
		}
		r.add(t.Uses, int64(now.Sub(begin)/g.Disk.Period))
		used += t.Usage - r.used
		r.used, records[id] = t.Usage, r
		list = append(list, policy.Demand{
			Quota: cpu.Bandwidth{Quota: g.limit.Quota, Period: g.Disk.Period}.CPUs(), Asked: policy.AskedBurst(g.Strategy, a.Rules), Uses: r.sum()})
	}
	a.risk.records = records
	return list, used
}

// add takes the counts since the start, and keeps those of the last minute. Periods that the kernel has not counted are
// those in which nothing was used.
func (r *uses) add(total []int64, periods int64) {
	minute := make([]int64, len(total))
	for i, n := range total {
		minute[i] = n
		if i < len(r.total) {
			minute[i] -= r.total[i]
		}
		periods -= minute[i]
	}
	if len(minute) > 0 {
		minute[0] += max(0, periods)
	}
	r.total = total
	if r.minutes = append(r.minutes, minute); len(r.minutes) > keptMinutes {
		r.minutes = r.minutes[1:]
	}
}

func (r *uses) sum() []int64 {
	sum := make([]int64, len(r.total))
	for _, minute := range r.minutes {
		for i, n := range minute {
			sum[i] += n
		}
	}
	return sum
}

// computeRisk finds what the node can bear, and has everything decided anew when that has changed.
func (a *Agent) computeRisk(now time.Time, capacity float64, demands []policy.Demand, target float64) {
	risk, err := policy.LoadLine(capacity, demands, target)
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.risk
	m.working = false
	if err != nil {
		m.problem = err.Error()
		return
	}
	m.status = &report.Risk{Target: risk.Target, Asked: risk.Asked, Now: risk.Now, Share: risk.Share, Met: risk.Met,
		Containers: risk.Containers, Capacity: capacity, At: now}
	if !risk.Met {
		m.problem = "loadLinePercent: the demands coincide too often even without any burst; hint: fewer pods, or lower limits"
	}
	if cut := 1 - risk.Share; cut != m.cut {
		m.cut = cut
		a.Log.Info("load line", "share", risk.Share, "risk", risk.Now, "asked", risk.Asked, "target", risk.Target)
		a.lookAgain()
		a.wake()
	}
}
