package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"plimsoll/internal/agent"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sysfs"
)

// reserving is what the agent must know of this machine to give containers CPUs of their own.
func reserving(file *config.File) agent.Reserving {
	k := kubelet{"/var/lib/kubelet"}
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

// kubelet is the directory in which a kubelet keeps its state.
type kubelet struct{ dir string }

// owner says whether its CPU manager shares out CPUs. The policy none writes a state file too
// (pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpoint).
func (k kubelet) owner() string {
	data, err := os.ReadFile(filepath.Join(k.dir, "cpu_manager_state"))
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
	data, err := os.ReadFile(filepath.Join(k.dir, "config.yaml"))
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
