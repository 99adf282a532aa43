package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// keeper is the agent that gives the target exclusive CPUs, and takes them back.
type keeper struct {
	*experiment.Agent
	parties parties
	node    cpu.Set // CPUs that the target does not get
}

func startKeeper(p parties, node cpu.Set) *keeper {
	return &keeper{p.Agent(experiment.Setup{}), p, node}
}

// configuration says what the target has reserved, and whether its CPUs are its own. Strict: it has no limit, and would
// have the shared CPUs besides. The node's own programs keep their CPUs, and on cgroup v1 are kept off the target's.
func configuration(target string, policy strategy.ReservePolicy, node cpu.Set) string {
	return fmt.Sprintf("strategy: {policy: none}\nreserve: {policy: %s, reservedCPUs: %q, shield: "+
		"true}\noverrides:\n  - {cgroup: %q, request: %g, exclusive: strict}\n", policy, node, target, targetRequest)
}

// keep has the agent reserve, or put everything back, and waits until the groups show it.
func (k *keeper) keep(ctx context.Context, reserve bool) {
	policy := strategy.ReserveNone
	if reserve {
		policy = strategy.ReserveCPUSet
	}
	frame.Check(k.Follow(ctx, configuration(k.parties.target, policy, k.node), func() error {
		own, err := k.parties.Tree().CPUs(k.parties.target)
		others, failed := k.parties.Tree().CPUs(k.parties.neighbour)
		return cmp.Or(err, failed, separated(own, others, reserve))
	}))
}

// separated says what is missing until the CPUs of the two are separate.
func separated(own, others cpu.Set, reserve bool) error {
	kept := len(own) > 0 && len(others) > 0 && len(own.And(others)) == 0
	switch {
	case reserve && !kept:
		return fmt.Errorf("the target may use CPUs %q and its neighbour %q: they are to share none", own, others)
	case reserve && len(own) != int(targetRequest):
		return fmt.Errorf("the target has CPUs %q: it has reserved %g", own, targetRequest)
	case !reserve && kept:
		return errors.New("the target's CPUs are not given back yet")
	}
	return nil
}

// parties are the groups of an experiment.
type parties struct {
	*frame.Bench
	target, neighbour string
}

// meet makes the groups. Target and neighbour get the weights that Kubernetes gives for what they have reserved, which
// is the request, in CPUs, for the neighbour.
func meet(f *frame.Bench, request float64) parties {
	p := parties{f, frame.Must(f.Add("target")), frame.Must(f.Add("neighbour"))}
	for group, cpus := range map[string]float64{p.target: targetRequest, p.neighbour: request} {
		frame.Check(f.Tree().SetWeight(group, experiment.WeightOf(f.Tree().Version(), cpus)))
	}
	return p
}
