package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// crowd is the cost of an agent with throttle events beside many idle pods of one container each.
type crowd struct {
	Pods    int           `json:"pods"`
	Groups  int           `json:"groups"`
	Agent   rate          `json:"agent"`
	RSS     int64         `json:"rss_bytes"`
	Open    float64       `json:"descriptors_per_group"`
	TurnP50 time.Duration `json:"turn_p50_ns"`
	TurnP99 time.Duration `json:"turn_p99_ns"`
	Status  time.Duration `json:"status_ns"` // median of the time that a status takes over the agent's socket
}

// The aims for many idle pods. Growth is from one number of pods to the next, of what is used in parts of the growth of
// the pods: 1 is linear.
const (
	crowdPods      = 1000
	aimCrowdCPU    = 0.005 // CPUs, at crowdPods
	aimCrowdRSS    = 40.0  // MiB, at crowdPods
	aimCrowdGrowth = 1.0
)

// statusAsked is how often the status is read, more than a second apart: a sooner answer is the former one.
const (
	statusAsked = 5
	statusEvery = 1100 * time.Millisecond
)

// idlePods measures an agent beside a fleet in which nothing happens. The agent reads what is idle the less often the
// longer it is: what is measured are its first minutes, in which it costs most.
func (b *bench) idlePods(ctx context.Context, r *result) {
	r.Cgroup = b.Tree().Version().String()
	c := crowd{Pods: b.size.Pods, Groups: len(b.fleet.units)}
	b.Scope(ctx, func(f *frame.Bench) {
		a := b.startAgent(ctx, f, false)
		frame.Check(experiment.Pause(ctx, b.idleFor))
		b.Say("%d idle pods: measuring for %v", c.Pods, b.span)
		c.Agent = frame.Must(spends(ctx, a.Child(), b.span))
		c.RSS, c.Open = frame.Must(a.Child().Memory("VmRSS:")), b.openFiles(a.Child())
		c.ask(ctx, a)
	})
	r.Idle = append(r.Idle, c)
	b.Say("%d idle pods: %.2f %% of a CPU, %.1f MiB, %.3f descriptors a group, turns %v and %v, status %v", c.Pods,
		100*c.Agent.CPUs,
		float64(c.RSS)/(1<<20), c.Open, c.TurnP50, c.TurnP99, c.Status) // should a larger number fail
}

// ask reads the agent's status a few times.
func (c *crowd) ask(ctx context.Context, a *experiment.Agent) {
	var took []time.Duration
	for range statusAsked {
		begin := time.Now()
		s := status(ctx, a, true)
		took = append(took, time.Since(begin))
		if c.TurnP99 == 0 { // before the turns for a reader of the status
			c.TurnP50, c.TurnP99 = s.Self.TurnP50, s.Self.TurnP99
		}
		frame.Check(experiment.Pause(ctx, statusEvery))
	}
	slices.Sort(took)
	c.Status = took[len(took)/2]
}

func (c crowd) title() string { return fmt.Sprintf("%d idle pods", c.Pods) }

// growth is that of what is used from a smaller number of pods, in parts of the growth of the pods.
func (c crowd) growth(from crowd) []experiment.Figure {
	pods := float64(c.Pods) / float64(from.Pods)
	growth := func(what string, ratio float64) experiment.Figure {
		return experiment.Figure{Name: fmt.Sprintf("%s: %s / linear growth from %d", c.title(), what, from.Pods),
			Value: ratio / pods, AtMost: aimCrowdGrowth, Measured: ratio > 0}
	}
	return []experiment.Figure{growth("CPU", experiment.Ratio(c.Agent.CPUs, from.Agent.CPUs)),
		growth("memory", experiment.Ratio(c.RSS, from.RSS))}
}
