package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sysfs"
)

// reserving is what the agent must know of this machine to give containers CPUs of their own.
func reserving(file *config.File) agent.Reserving {
	k := hostKubelet()
	m := &layout{host: sysfs.NewHost("/")}
	return agent.Reserving{Topology: m.topology, Owner: k.owner, Kept: k.reserved, Rules: file.Reserve()}
}

// layout reads the topology anew when other CPUs are online.
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

// kubelet is where a kubelet keeps its state: the first directory that has what is looked for counts.
type kubelet []string

// hostKubelet is this node's. A pod that shares the node's processes sees it through the first of them.
func hostKubelet() kubelet { return kubelet{"/var/lib/kubelet", "/proc/1/root/var/lib/kubelet"} }

func (k kubelet) read(name string) ([]byte, error) {
	err := fs.ErrNotExist
	for _, dir := range k {
		data, readErr := os.ReadFile(filepath.Join(dir, name))
		if readErr == nil {
			return data, nil
		}
		err = readErr
	}
	return nil, err
}

// owner says whether its CPU manager shares out CPUs. The policy none writes a state file too
// (pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpoint).
func (k kubelet) owner() string {
	data, err := k.read("cpu_manager_state")
	var state struct {
		Policy string `json:"policyName"`
	}
	if err != nil || json.Unmarshal(data, &state) != nil || state.Policy == "" || state.Policy == "none" {
		return ""
	}
	return "the kubelet's CPU manager (policy " + state.Policy + ") shares out the CPUs of this node"
}

// reserved are the CPUs that the kubelet's configuration keeps for itself and the system (reservedSystemCPUs).
func (k kubelet) reserved() cpu.Set {
	data, err := k.read("config.yaml")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		text, is := strings.CutPrefix(line, "reservedSystemCPUs:")
		if !is {
			continue
		}
		set, err := cpu.ParseSet(strings.Trim(strings.TrimSpace(text), `"'`))
		if err == nil {
			return set
		}
	}
	return nil
}

// featureReserve is the doctor's name for CPUs of their own.
const featureReserve = "exclusive-cpus"

// probeReserve finds out whether containers can have CPUs of their own here.
func probeReserve(dir *cgroup.Dir, k kubelet) cgroup.Feature {
	f := cgroup.Feature{Name: featureReserve, State: cgroup.No, Source: "kernel/cgroup/cpuset.c"}
	tree, err := cgroup.Detect(dir)
	switch {
	case err != nil || !tree.HasCPUSets():
		f.Detail = "there is no cpuset controller"
	case k.owner() != "":
		f.Detail = k.owner() + ": left alone"
	case tree.Version() == cgroup.V1:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus; on v1 whoever is in the root of the cpuset hierarchy cannot be kept off"
	default:
		f.State, f.Detail = cgroup.Yes, "by cpuset.cpus, and from 6.7 by partitions"
	}
	return f
}
