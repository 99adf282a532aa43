package main

import (
	"errors"

	"plimsoll/internal/cgroup"
	"plimsoll/lab/frame"
)

// parties are the groups of an experiment.
type parties struct {
	*frame.Bench
	target, neighbour string
}

// meet makes the groups. Target and neighbour get the weights that Kubernetes gives for what they have reserved, which
// is the request, in CPUs, for the neighbour.
func meet(f *frame.Bench, request float64) (p parties, err error) {
	p.Bench = f
	if p.target, err = f.Add("target"); err != nil {
		return p, err
	}
	if p.neighbour, err = f.Add("neighbour"); err != nil {
		return p, err
	}
	tree, one := f.Tree(), 1024.0
	if tree.Version() == cgroup.V2 {
		one = 100
	}
	return p, errors.Join(tree.SetWeight(p.target, int64(one*targetRequest)), tree.SetWeight(p.neighbour, int64(one*request)))
}
