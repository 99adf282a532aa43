package main

import (
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/kubelet"
	"plimsoll/internal/sysfs"
)

// reserving are the facts about this machine that the agent needs to give containers CPUs of their own.
func reserving(file *config.File) exclusive.Options {
	k, host := kubelet.OfHost(), sysfs.NewHost("/")
	m := &layout{host: host}
	return exclusive.Options{Topology: m.topology, Owner: k.Owner, Kept: k.Reserved, Isolated: host.Isolated(), Rules: file.Reserve()}
}

// layout reads the topology again when other CPUs are online.
type layout struct {
	host *sysfs.Host
	last cpu.Topology
}

func (l *layout) topology() (cpu.Topology, error) {
	online, err := l.host.Online()
	if err != nil || len(online) > 0 && l.last.Set().Equal(online) {
		return l.last, err
	}
	l.last, err = l.host.Topology()
	return l.last, err
}

// featureReserve is the doctor's name for CPUs of their own.
const featureReserve = "exclusive-cpus"

// probeReserve finds out whether containers can have CPUs of their own here.
func probeReserve(dir *cgroup.Dir, k kubelet.Files) cgroup.Feature {
	f := cgroup.Feature{Name: featureReserve, State: cgroup.No, Source: "kernel/cgroup/cpuset.c"}
	tree, err := cgroup.Detect(dir)
	switch {
	case err != nil || !tree.HasCPUSets():
		f.Detail = "there is no cpuset controller"
	case k.Owner() != "":
		f.Detail = k.Owner() + ": left alone"
	case tree.Version() == cgroup.V1:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus; on v1 only reserve.shield keeps off tasks in the root of the cpuset hierarchy"
	default:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus, and from 6.7 by partitions"
	}
	return f
}
