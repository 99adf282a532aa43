package main

import (
	"errors"

	"plimsoll/internal/cgroup"
	"plimsoll/lab/experiment"
)

// parties are the groups of an experiment.
type parties struct {
	groups            *experiment.Groups
	target, neighbour string
}

// meet makes the groups. Target and neighbour get the weights that Kubernetes gives for what they have reserved, which
// is the request, in CPUs, for the neighbour.
func meet(root string, request float64) (p parties, err error) {
	if p.groups, err = experiment.NewPinnableGroups(root, "reservation"); err != nil {
		return p, err
	}
	if err := p.make(request); err != nil {
		return p, errors.Join(err, p.groups.Close())
	}
	return p, nil
}

func (p *parties) make(request float64) (err error) {
	if p.target, err = p.groups.Add("target"); err != nil {
		return err
	}
	if p.neighbour, err = p.groups.Add("neighbour"); err != nil {
		return err
	}
	tree, one := p.groups.Tree(), 1024.0
	if tree.Version() == cgroup.V2 {
		one = 100
	}
	return errors.Join(tree.SetWeight(p.target, int64(one*targetRequest)), tree.SetWeight(p.neighbour, int64(one*request)))
}
