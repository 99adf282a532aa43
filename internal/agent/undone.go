package agent

import (
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
	"time"
)

// An owner's write of a quota that a refill may have undone is found in two ways: by what is declared (ledger.WasLost), and
// by what inotify reports of the file (apply/undone.go). The latter is only reported, and what stands is left alone.

// undone takes what inotify told. Where the limit is declared that decides: it may be the same value that its owner wrote
// again, and else the two differ from then on.
func (a *Agent) undone(now time.Time) {
	if a.Undone == nil {
		return
	}
	found, err := a.Undone()
	if err != nil && !a.blind {
		a.blind = true
		a.Log.Warn("not all owners' writes that a refill undoes are seen", "error", err)
	}
	for _, u := range found {
		g := a.groups[u.ID]
		if g == nil {
			continue
		}
		g.Stale(now)
		held, err := u.Held.Time()
		if err != nil || g.Declared != nil {
			continue
		}
		a.record.Undone(g.Group, held)
	}
}

// expectRefills names the groups that may be refilled, so that writes to their quotas are seen before the first refill.
func (a *Agent) expectRefills(pods []workload.Pod) {
	if a.Refillable == nil || !a.Rules.Refill {
		return
	}
	var undeclared, declared []workload.ID
	add := func(id workload.ID, d *workload.Declared) {
		switch {
		case id.Inode == 0: // a container without a pod
		case d == nil:
			undeclared = append(undeclared, id)
		default:
			declared = append(declared, id)
		}
	}
	for _, p := range pods {
		passive := true
		for _, c := range p.Containers {
			if c.Strategy.Policy != strategy.None {
				passive = false
				add(c.ID, c.Declared)
			}
		}
		if !passive {
			add(p.ID, p.Declared)
		}
	}
	a.Refillable(undeclared, declared)
}
