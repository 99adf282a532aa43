// Package dryrun takes turns of an agent whose changes are collected and not made.
package dryrun

import (
	"context"
	"slices"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Collect takes turns of an agent of its own, whose changes are collected and not made. left is what another agent has
// written.
func Collect(ctx context.Context, o agent.Options, left []journal.Entry, watch time.Duration) ([]plan.Change, error) {
	a := agent.New(o)
	if left != nil {
		a.Adopt(left)
	}
	var all []plan.Change
	at := map[plan.Key]int{} // of several changes of a knob the last one is kept
	for end := time.Now().Add(watch); ; {
		changes, next := a.Plan(time.Now())
		plan.Order(changes)
		for _, c := range changes {
			if i, known := at[c.Key()]; known {
				all[i] = c
				continue
			}
			at[c.Key()] = len(all)
			all = append(all, c)
		}
		if !next.Before(end) {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(next)):
		}
	}
}

// Discoverer sees the containers that another agent manages, and takes no event from that agent.
type Discoverer struct {
	agent.Discoverer
	Policy strategy.Policy // in place of each one's own, if not ""
	seen   []workload.Pod
	made   []workload.Pod
}

// Touched is none: the running agent hears of them.
func (*Discoverer) Touched() []string { return nil }

// Wake never comes.
func (*Discoverer) Wake() <-chan struct{} { return nil }

// Pods are those of the running agent, with the policy.
func (v *Discoverer) Pods() ([]workload.Pod, error) {
	pods, err := v.Discoverer.Pods()
	if err != nil || v.Policy == "" {
		return pods, err
	}
	if workload.Same(pods, v.seen) {
		return v.made, nil
	}
	v.seen, v.made = pods, slices.Clone(pods)
	for i := range v.made {
		v.made[i].Containers = slices.Clone(v.made[i].Containers)
		for j := range v.made[i].Containers {
			if c := &v.made[i].Containers[j]; c.Class.Burstable() {
				c.Strategy.Policy = v.Policy
			}
		}
	}
	return v.made, nil
}
