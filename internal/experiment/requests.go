package experiment

import (
	"errors"
	"fmt"
	"math"

	"plimsoll/internal/cgroup"
)

// What is left when limits are removed.
//
// Problem: "why not just remove the limits?" An experiment that removes the limit of one service alone, on a machine
// that is idle or whose other work stands behind it, answers that a service is fast where nobody wants its CPUs. Limits
// that are removed are removed from the neighbours, too, and then the weights that the kubelet derives from CPU
// requests are all that divides the CPUs.
//
// Approach: in the mode requestsOnly nobody has a limit. The service requests as many CPUs as its limit was. Where the
// machine is loaded, the same work as in the other modes is ordinary work, whose requests are the rest of the machine,
// as a scheduler fills a node. Weights are in proportion to requests, as the kubelet writes them.
// What a mode changes is put back at its end.
//
// Known limits: the neighbours want every CPU all the time: that is the worst case, and the one in which a node without
// limits is when its services are busy together. What the service takes from them beyond its request is not measured.
// The levels of weight differ by container runtime on cgroup v2; only their proportion matters here,
// and it is the same.

// The weights of one CPU: the kernel's defaults, with which a group of one CPU is as heavy
// as one that nobody has weighed.
const (
	sharesOfCPU  = 1024 // cpu.shares
	weightOfCPU  = 100  // cpu.weight
	leastRequest = 0.01 // CPUs: heavier than the smallest weight, which offline work has
)

// WeightOf is the weight of a request.
func WeightOf(version cgroup.Version, cpus float64) int64 {
	cpus = max(cpus, leastRequest)
	if version == cgroup.V1 {
		return min(int64(math.Round(cpus*sharesOfCPU)), greatestShares)
	}
	return max(1, min(int64(math.Round(cpus*weightOfCPU)), greatestWeight))
}

// weigh gives the upper group the weight of a request. Calling what it gives back puts the former one back.
func (g *Groups) weigh(cpus float64) (back func() error, err error) {
	before, err := g.tree.Weight(g.base)
	if err == nil {
		err = g.tree.SetWeight(g.base, WeightOf(g.tree.Version(), cpus))
	}
	if err != nil {
		return nil, fmt.Errorf("weigh %s by its request: %w", g.base, err)
	}
	return func() error { return g.tree.SetWeight(g.base, before) }, nil
}

// compete makes ordinary work of the offline work, with a request.
// Calling what it gives back puts it behind all others again.
func (o *Offline) compete(cpus float64) (back func() error, err error) {
	if o.Behind {
		if err := o.groups.Tree().SetIdle(o.Base(), false); err != nil {
			return nil, fmt.Errorf("let offline work compete: %w", err)
		}
	}
	if _, err := o.groups.weigh(cpus); err != nil {
		return nil, errors.Join(err, o.stepBack())
	}
	return o.stepBack, nil
}

// removeLimits leaves the machine to requests. The caller removes the service's own limit.
func (r *run) removeLimits(cpus int) (back func() error, err error) {
	lighten, err := r.groups.weigh(r.limit.CPUs())
	if err != nil || r.offline == nil {
		return lighten, err
	}
	behind, err := r.offline.compete(float64(cpus) - r.limit.CPUs())
	if err != nil {
		return nil, errors.Join(err, lighten())
	}
	return func() error { return errors.Join(behind(), lighten()) }, nil
}
