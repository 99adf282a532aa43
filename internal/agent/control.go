package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
	"slices"
	"sort"
	"time"
)

// Hold stops writing, and first puts everything back if restore is set.
func (a *Agent) Hold(_ context.Context, restore bool, reason string) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Switch.Hold(reason, a.Clock()); err != nil {
		return nil, err
	}
	a.Writer.SetHold(true)
	a.Log.Warn("held: nothing is written until `plimsoll resume`", "reason", reason, "restore", restore)
	if !restore {
		return nil, nil
	}
	return a.putBack()
}

// Resume writes again.
func (a *Agent) Resume(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Switch.Resume(); err != nil {
		return err
	}
	a.retired = time.Time{}
	a.Log.Info("resumed")
	a.wake()
	return nil
}

// Pause holds a container at its limit for a while; 0 ends it.
func (a *Agent) Pause(_ context.Context, container string, d time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.pause(container, d, false)
	return err
}

func (a *Agent) pause(container string, d time.Duration, release bool) ([]plan.Result, error) {
	now := a.Clock()
	found, err := report.Find(a.status(now).Containers, container)
	if err != nil {
		return nil, err
	}
	if d < 0 {
		return nil, fmt.Errorf("pause for %v: not a time", d)
	}
	a.colocation.Again() // suppression makes way
	for _, path := range a.family(found) {
		if err := a.Pauses.Set(path, now.Add(d), now, release); err != nil {
			return nil, err
		}
		a.at(path).MarkDue()
	}
	return a.tick(now).Results, nil
}

// family is the container, or a pod's containers and the pod.
func (a *Agent) family(c report.Container) []string {
	paths := []string{c.Cgroup}
	if c.Level != string(observe.LevelPod) {
		return paths
	}
	for _, g := range a.groups {
		if g.Level == observe.LevelContainer && g.Pod == c.Pod && workload.Under(g.Path, c.Cgroup) {
			paths = append(paths, g.Path)
		}
	}
	sort.Strings(paths)
	return paths
}

// errNotReleased says that something of ours still stands.
var errNotReleased = errors.New("not everything could be put back")

// Release puts a container's files back for a while, so that its owner can set a lower limit: a burst above the new
// quota would make the kernel refuse it.
func (a *Agent) Release(_ context.Context, container string, d time.Duration) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	results, err := a.pause(container, d, true)
	for _, r := range results {
		if r.Outcome == plan.Refused && err == nil {
			err = fmt.Errorf("%w: %s %s: %s", errNotReleased, r.Change.Cgroup.Path, r.Change.Knob, r.Err)
		}
	}
	return results, err
}

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
