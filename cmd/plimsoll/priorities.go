package main

import (
	"plimsoll/internal/cgroup"
	"plimsoll/internal/policy"
)

// priorities are what the policy must know of this machine to prefer online work.
func priorities(found cgroup.Features, tree *cgroup.Tree) policy.Machine {
	m := policy.Machine{LeastWeight: 2, // MIN_SHARES, kernel/sched/sched.h
		SchedExtWhy: "no scheduler of ours is loaded"}
	if tree.Version() == cgroup.V2 {
		m.LeastWeight = 1 // CGROUP_WEIGHT_MIN
	}
	m.Idle, m.IdleWhy = able(found, cgroup.FeatureIdle)
	m.IdentityWhy = "not driven yet"
	return m
}

// able says whether a feature is certainly there, in words.
func able(found cgroup.Features, name string) (bool, string) {
	f := found.Get(name)
	return f.State == cgroup.Yes, f.Detail
}
