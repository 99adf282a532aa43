package agent

import (
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
