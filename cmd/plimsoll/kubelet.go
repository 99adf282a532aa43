package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
)

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

// reserved is what the kubelet keeps for itself and the system: CPUs by their numbers, which make the amounts void
// (KubeletConfiguration, reservedSystemCPUs), or an amount. Flags come before the file.
func (k kubelet) reserved() (cpu.Set, float64) {
	var file struct {
		CPUs   any            `yaml:"reservedSystemCPUs"`
		Kube   map[string]any `yaml:"kubeReserved"`
		System map[string]any `yaml:"systemReserved"`
	}
	if data, err := k.read("config.yaml"); err == nil {
		_ = yaml.Unmarshal(data, &file) // what the kubelet itself does not understand it does not start with
	}
	flags := k.flags()
	text := func(flag string, otherwise any) string {
		if v, given := flags[flag]; given {
			return v
		}
		if otherwise == nil {
			return ""
		}
		return fmt.Sprint(otherwise)
	}
	if set, err := cpu.ParseSet(text("reserved-cpus", file.CPUs)); err == nil && len(set) > 0 {
		return set, 0
	}
	return nil, cpuOf(text("kube-reserved", asFlag(file.Kube))) + cpuOf(text("system-reserved", asFlag(file.System)))
}

// asFlag spells amounts as the flags have them.
func asFlag(amounts map[string]any) string {
	var parts []string
	for name, v := range amounts {
		parts = append(parts, fmt.Sprintf("%s=%v", name, v))
	}
	return strings.Join(parts, ",")
}

// cpuOf is the CPU of amounts such as cpu=500m,memory=1Gi.
func cpuOf(amounts string) float64 {
	for part := range strings.SplitSeq(amounts, ",") {
		text, is := strings.CutPrefix(strings.TrimSpace(part), "cpu=")
		if v, ok := config.CPUs(text); is && ok {
			return v
		}
	}
	return 0
}

// flags are those that kubeadm starts it with.
func (k kubelet) flags() map[string]string {
	data, err := k.read("kubeadm-flags.env")
	if err != nil {
		return nil
	}
	_, line, _ := strings.Cut(string(data), "=") // KUBELET_KUBEADM_ARGS="--a=b --c=d"
	flags := map[string]string{}
	for _, word := range strings.Fields(strings.Trim(strings.TrimSpace(line), `"`)) {
		if name, value, is := strings.Cut(strings.TrimLeft(word, "-"), "="); is {
			flags[name] = value
		}
	}
	return flags
}
