package features

import (
	"plimsoll/internal/cgroup"
	"plimsoll/internal/kubelet"
)

// featureReserve is the doctor's name for exclusive CPUs.
const featureReserve = "exclusive-cpus"

// reserve finds out whether containers can have exclusive CPUs here.
func reserve(dir *cgroup.Dir, k kubelet.Files) cgroup.Feature {
	f := cgroup.Feature{Name: featureReserve, State: cgroup.No, Source: "kernel/cgroup/cpuset.c"}
	tree, err := cgroup.Detect(dir)
	switch {
	case err != nil || !tree.HasCPUSets():
		f.Detail = "there is no cpuset controller"
	case k.Owner() != "":
		f.Detail = k.Owner() + ": left alone"
	case tree.Version() == cgroup.V1:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus; on v1 only reserve.shield keeps off tasks in the root of "+
			"the cpuset hierarchy"
	default:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus, and from 6.7 by partitions"
	}
	return f
}
