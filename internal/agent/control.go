package agent

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Hold turns the kill switch on, and restores everything if restore is set. A restore needs no disk: where the switch
// cannot be kept there, this agent writes nothing until it ends, and the error says so.
//
// As the other methods here it does nothing once its context has ended: the caller, who waited for the lock, was told
// that it failed, and may have done something else.
func (a *Agent) Hold(ctx context.Context, restore bool, reason string) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err := a.Switch.Hold(reason, a.Clock())
	if err != nil && !restore {
		return nil, err
	}
	if err != nil {
		a.retired = a.Clock()
		a.Log.Warn("the hold is not kept on disk: the next agent will write", "error", err)
		err = fmt.Errorf("%w; this agent has put back what it could, and writes nothing until `plimsoll resume`, but "+
			"the next one would", err)
	}
	a.Writer.SetHold(true)
	a.Log.Warn("held: nothing is written until `plimsoll resume`", "reason", reason, "restore", restore)
	if !restore {
		return nil, nil
	}
	return a.putBack(), err
}

// Resume turns the kill switch off.
func (a *Agent) Resume(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.Switch.Resume(); err != nil {
		return err
	}
	a.retired = time.Time{}
	a.Log.Info("resumed")
	a.wake()
	return nil
}

// Pause keeps a container at its limit for a time; 0 ends the pause.
func (a *Agent) Pause(ctx context.Context, container string, d time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, _, err := a.setPause(container, d, false)
	return err
}

func (a *Agent) setPause(container string, d time.Duration, release bool) (groups []string, results []plan.Result,
	err error) {
	now := a.Clock()
	found, err := report.Find(a.status(nil, now).Containers, container)
	if err != nil {
		return nil, nil, err
	}
	if d < 0 {
		return nil, nil, fmt.Errorf("pause for %v: not a time", d)
	}
	if pod := a.pausedPod(found.Cgroup, now); pod != "" && !release {
		if until, _, _ := a.Pauses.Until(pod, now); now.Add(d).Before(until) {
			return nil, nil, fmt.Errorf("its pod is paused until %s; resume %s", until.Format(time.TimeOnly), pod)
		}
	}
	a.colocation.Again() // suppression ends
	groups = a.reader.Family(found.Cgroup)
	for _, path := range groups {
		err := a.Pauses.Set(path, now.Add(d), now, release)
		if err != nil && !release { // a release is in force all the same
			return nil, nil, err
		}
		if g := a.at(path); g != nil { // else it could never be read
			g.MarkDue()
		}
	}
	return groups, a.tick(now).Results, nil
}

// Release restores a container's files for a time, so that its owner can set a lower limit: the kernel would refuse a
// quota below our burst.
func (a *Agent) Release(ctx context.Context, container string, d time.Duration) ([]plan.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	groups, results, err := a.setPause(container, d, true)
	for _, path := range groups {
		if g := a.at(path); g != nil && err == nil {
			err = a.unrestored(g)
		}
	}
	return results, err
}

// unrestored is an error if a value of ours is in a file of a group that is released: its restore was refused, now or
// so lately that it waits for its next attempt.
func (a *Agent) unrestored(g *group) error {
	for _, knob := range []plan.Knob{plan.Quota, plan.Burst} {
		if e, _ := a.ledger.Entry(plan.Key{ID: g.ID, Knob: knob}); e.Ours() {
			why := cmp.Or(e.Problem, string(e.Blocked(a.Clock())), "try again")
			return fmt.Errorf("not everything could be restored: %s %s: %s", g.Path, knob, why)
		}
	}
	return nil
}

// resizeFor is for how long a pod is kept at its limits after its owner announced others: the owner writes the
// container's limit first, then the pod's.
const resizeFor = 2 * time.Second

// PrepareResize restores the limits of a group and of its whole pod, without a burst, now and for resizeFor: its owner
// is about to write another limit, and the kernel refuses a quota below the burst, and on v1 a pod's quota below those
// of its containers. It does nothing if the limit is unchanged. It says whether there was a value of ours.
func (a *Agent) PrepareResize(group string, limit cpu.Bandwidth) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := cmp.Or(a.at(group), a.at(path.Join(group, workload.InScope)))
	if g == nil || g.limit.Quota == limit.Quota && g.limit.Period == limit.Period {
		return false
	}
	place := slices.IndexFunc(a.snapshot, func(p workload.Pod) bool { return slices.Contains(p.IDs(), g.ID) })
	if place < 0 {
		return false
	}
	now, ours := a.Clock(), false
	a.colocation.Again() // suppression ends
	for _, id := range a.snapshot[place].IDs() {
		_ = a.resizes.Set(id.Path, now.Add(resizeFor), now, false) // in memory: it does not fail
		if of := a.groups[id]; of != nil {
			of.Stale(now)
			ours = ours || a.ours(id)
		}
	}
	a.tick(now)
	return ours
}
