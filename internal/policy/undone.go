package policy

import "time"

// A declared limit that its owner has written, and that a refill may have undone.
//
// Problem: the kernel reads the quota before it takes the mutex when a burst is written, so a refill that overlaps the
// owner's write of the quota sets the old one again (apply/undone.go). The owner's write has succeeded, so it is not repeated.
//
// Approach: where the limit is declared (a pod's status, an OCI configuration, a property of systemd), the declared limit
// and the file's differ then, what stands is what was declared before, and nothing of ours stands there. That is reported
// when it has lasted for staleAfter and a refill was made about when the limit was declared.
//
// Known limits: an owner may declare a limit up to undoneBefore after it has written it; of one that takes longer nothing
// is said. A pod's limit is also repaired (stale.go).

// undoneBefore is how long before the new limit is declared it may have been written.
const undoneBefore = 5 * time.Second

// awaited notes since when the declared limit is not in force, and has the group looked at when that can be judged.
func (u *candidate) awaited(now time.Time, out *Output) {
	m, h := u.m, &u.m.quota
	if u.Declared == nil || h.ours || h.foreign || u.Disk.Quota != h.base || u.Declared.Bandwidth.Over(u.period()) == u.Disk.Quota {
		m.differs, m.undone = time.Time{}, undoneNot
		return
	}
	if m.differs.IsZero() {
		m.differs = now
	}
	switch due := m.differs.Add(staleAfter); {
	case now.Before(due):
		if at, ok := out.Looks[u.ID]; !ok || due.Before(at) {
			out.Looks[u.ID] = due
		}
	case m.undone == undoneNot && m.rewritten.After(m.differs.Add(-undoneBefore)):
		m.undone = undoneIs
	case m.undone == undoneNot:
		m.undone = undoneNever
	}
}

// awaits says whether it is not known yet what becomes of a declared limit.
func (u *candidate) awaits(now time.Time) bool {
	return !u.m.differs.IsZero() && now.Sub(u.m.differs) < staleAfter
}

// verdict is whether a refill may have undone the owner's write. It is found once.
type verdict int

const (
	undoneNot   verdict = iota // nothing is known
	undoneIs                   // it may have
	undoneNever                // none was made then
)
