package doctor

import (
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/policy"
)

// TasksOf says what the kernel can do with single tasks.
type TasksOf interface {
	HasSlices() (has bool, why string)
	HasCookies() (has bool, why string)
}

// Priorities are the facts about this machine by which the policy gives online work priority.
func Priorities(found cgroup.Features, tasks TasksOf) policy.Machine {
	m := policy.Machine{LeastWeight: 2, // MIN_SHARES, kernel/sched/sched.h
		SchedExtWhy: "not probed: schedExt is not requested"}
	if !strings.HasPrefix(found.Get(cgroup.FeatureVersion).Detail, cgroup.V1.String()) {
		m.LeastWeight = 1 // CGROUP_WEIGHT_MIN
	}
	m.Idle, m.IdleWhy = able(found, cgroup.FeatureIdle)
	m.Identity, m.IdentityWhy = able(found, cgroup.FeatureIdentity)
	m.Slice, m.SliceWhy = tasks.HasSlices()
	m.CoreSched, m.CoreSchedWhy = tasks.HasCookies()
	return m
}

// able says whether a feature is certainly there, in words.
func able(found cgroup.Features, name string) (bool, string) {
	f := found.Get(name)
	return f.State == cgroup.Yes, f.Detail
}
