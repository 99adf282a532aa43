package agent

import (
	"fmt"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/risk"
)

// measureRisk sizes the bursts for the load line, once a minute.
func (a *Agent) measureRisk(now time.Time) {
	switch target := a.Strategy.LoadLinePercent; {
	case target == 0:
		a.risk.Off("")
	case !a.subscription.active || a.Uncounted:
		why := "the kernel does not count the use of periods: " + a.subscription.why
		a.risk.Off(fmt.Sprintf(report.ProblemLoadLine, why))
	case a.risk.Due(now):
		var groups []risk.Group
		for id, g := range a.groups {
			if g.Level == observe.LevelContainer && g.Disk.Limited() {
				groups = append(groups, risk.Group{ID: id, Limit: g.limit.Quota, Bandwidth: g.Disk, Since: g.Since,
					Asked: policy.AskedBurst(g.Strategy, a.Rules)})
			}
		}
		busy, err := a.Host.Busy()
		a.risk.Measure(now, target, groups, busy, err, a.record.Node().CPUs)
	}
}

// otherBursts requests new decisions on all bursts.
func (a *Agent) otherBursts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reader.DueAll()
	a.wake()
}

// countBy sets a group's limit as the quota by which eBPF classifies the use of its periods, raised or not.
func (a *Agent) countBy(g *group, limit time.Duration) {
	if !a.subscription.active || a.subscription.pods[g.Inode] == nil || g.counted == limit {
		return
	}
	g.counted = limit
	if err := a.Events.Limit(g.Inode, limit); err != nil {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}
