package agent

import (
	"maps"
	"path"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// resizeFor is for how long a pod is left at its limits after its owner said that it will write others: the container's
// comes first, and the pod's follows.
const resizeFor = 2 * time.Second

// resizes are the groups that are kept at their limits because their owner is about to write others, and until when.
type resizes map[string]time.Time

func (w resizes) open(path string, now time.Time) bool { return now.Before(w[path]) }

// PrepareResize puts a group, and all of the pod that it is in, at their limits without a burst, now and for a while: its owner
// is about to write another limit, and the kernel refuses a quota below the burst, and on v1 one of a pod below those of
// its containers. Nothing is done where the limit is what it was. It says whether there was anything to put back.
func (a *Agent) PrepareResize(group string, limit cpu.Bandwidth) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.at(group)
	if g == nil {
		g = a.at(path.Join(group, workload.InScope))
	}
	if g == nil || g.limit.Quota == limit.Quota && g.limit.Period == limit.Period {
		return false
	}
	place := slices.IndexFunc(a.snapshot, func(p workload.Pod) bool { return slices.Contains(p.IDs(), g.ID) })
	if place < 0 {
		return false
	}
	now, ours := a.Clock(), false
	a.colocation.Again() // suppression makes way, too
	maps.DeleteFunc(a.resizes, func(_ string, until time.Time) bool { return !now.Before(until) })
	for _, id := range a.snapshot[place].IDs() {
		a.resizes[id.Path] = now.Add(resizeFor)
		if of := a.groups[id]; of != nil {
			of.Stale(now)
			ours = ours || a.ours(id)
		}
	}
	a.tick(now)
	return ours
}
