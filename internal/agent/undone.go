package agent

import (
	"fmt"
	"time"

	"plimsoll/internal/plan"
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
		a.tellUndone(g, held, "another program wrote the quota in the midst of a refill")
	}
}

// tellUndone says that a quota may be another one than its owner has written.
func (a *Agent) tellUndone(g *group, held time.Duration, why string) {
	a.account.writes.Undone++
	g.undone = held
	a.account.problems[g.Path+" undone"] = fmt.Sprintf("%s: %s, and the quota is still %s: the kernel may have undone the write; hint: write it again",
		g.Path, why, plan.Time(held))
	a.Log.Warn("the kernel may have undone an owner's write of a quota", "cgroup", g.Path, "quota", held, "why", why, "hint", "write it again")
}

// writtenAgain forgets it when another value stands, or the limit is declared by now: then the ledger judges.
func (a *Agent) writtenAgain(g *group) {
	if g.undone != 0 && (g.Disk.Quota != g.undone || g.Declared != nil) {
		g.undone = 0
		delete(a.account.problems, g.Path+" undone")
	}
}
