// Package kubelet reads what a kubelet keeps on disk: whether it shares out CPUs itself, and which it reserves.
package kubelet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
)

// Var names the kubelet's folder, where that is another one. The chart sets it.
const Var = "PLIMSOLL_KUBELET_DIR"

// Files is where a kubelet keeps its state.
type Files struct {
	Dirs  []string // the first one with the file counts, and the error is that of the first
	Given bool     // there is a kubelet: a state that is not there is elsewhere
	last  *decoded // nil: each time anew
}

// decoded is the last configuration that was read: it is asked for every other second, and hardly ever changes.
type decoded struct {
	mu   sync.Mutex
	data []byte
	file configuration
	err  error
}

// configuration is what counts of the kubelet's.
type configuration struct {
	CPUs   any            `yaml:"reservedSystemCPUs"`
	Kube   map[string]any `yaml:"kubeReserved"`
	System map[string]any `yaml:"systemReserved"`
}

func (d *decoded) of(data []byte) (configuration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data == nil || !bytes.Equal(data, d.data) {
		d.data, d.file = data, configuration{}
		// Of two equal keys the kubelet takes the last (pkg/kubelet/kubeletconfig/util/codec,
		// DecodeKubeletConfiguration).
		if d.err = yaml.UnmarshalWithOptions(data, &d.file, yaml.AllowDuplicateMapKey()); d.err != nil {
			d.err = errors.New(configFile + " is no configuration of a kubelet")
		}
	}
	return d.file, d.err
}

// OfHost is this node's. By default, a container sees it through process 1, if it has CAP_SYS_PTRACE
// (fs/proc/base.c, proc_pid_get_link).
func OfHost() Files {
	if dir := os.Getenv(Var); dir != "" {
		return Files{Dirs: []string{dir}, Given: true, last: &decoded{}}
	}
	return Files{Dirs: []string{"/var/lib/kubelet", "/proc/1/root/var/lib/kubelet"}, last: &decoded{}}
}

func (k Files) read(name string) ([]byte, error) {
	var first error
	for _, dir := range k.Dirs {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			return data, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// The files that are read.
const (
	managerFile = "cpu_manager_state"
	configFile  = "config.yaml"
	flagsFile   = "kubeadm-flags.env"
)

// Owner says why the CPUs of this node are not ours to share out: because the kubelet's CPU manager does, or because it
// is not known whether it does, or what the kubelet keeps. The policy none writes a state file too
// (pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpoint).
func (k Files) Owner() string {
	var state struct {
		Policy string `json:"policyName"`
	}
	data, err := k.read(managerFile)
	if err == nil && json.Unmarshal(data, &state) != nil {
		err = errors.New(managerFile + " is no JSON")
	}
	switch absent := errors.Is(err, fs.ErrNotExist); {
	case absent && k.Given:
		return fmt.Sprintf("whether the kubelet shares out CPUs is not known: %v (mount its folder there: "+
			"docs/CONFIG.md, reserve)", err)
	case err != nil && !absent:
		return fmt.Sprintf("whether the kubelet shares out CPUs is not known: %v", err)
	case state.Policy != "" && state.Policy != "none":
		return "the kubelet's CPU manager (policy " + state.Policy + ") shares out the CPUs of this node"
	}
	if _, _, err := k.reserved(); err != nil {
		return fmt.Sprintf("which CPUs the kubelet keeps is not known: %v", err)
	}
	return ""
}

// Reserved is what the kubelet keeps for itself and the system: CPUs by their numbers, which make the amounts void
// (KubeletConfiguration, reservedSystemCPUs), or an amount. Flags come before the file. What is not known Owner says.
func (k Files) Reserved() (cpu.Set, float64) {
	set, amount, _ := k.reserved()
	return set, amount
}

func (k Files) reserved() (cpu.Set, float64, error) {
	data, err := k.read(configFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	last := k.last
	if last == nil {
		last = &decoded{}
	}
	file, err := last.of(data)
	if err != nil {
		return nil, 0, err
	}
	flags, err := k.flags()
	if err != nil {
		return nil, 0, err
	}
	text := func(flag string, otherwise any) string {
		if v, given := flags[flag]; given {
			return v
		}
		if otherwise == nil {
			return ""
		}
		return fmt.Sprint(otherwise)
	}
	if set, err := cpu.ParseSet(text("reserved-cpus", file.CPUs)); err != nil || len(set) > 0 {
		return set, 0, err
	}
	kube, bad := cpuOf(text("kube-reserved", asFlag(file.Kube)))
	system, bad2 := cpuOf(text("system-reserved", asFlag(file.System)))
	return nil, kube + system, errors.Join(bad, bad2)
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
func cpuOf(amounts string) (float64, error) {
	for part := range strings.SplitSeq(amounts, ",") {
		text, is := strings.CutPrefix(strings.TrimSpace(part), "cpu=")
		if !is {
			continue
		}
		v, ok := config.CPUs(text)
		if !ok {
			return 0, fmt.Errorf("%q is not an amount of CPU", text)
		}
		return v, nil
	}
	return 0, nil
}

// flags are those that kubeadm starts it with.
func (k Files) flags() (map[string]string, error) {
	data, err := k.read(flagsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	_, line, _ := strings.Cut(string(data), "=") // KUBELET_KUBEADM_ARGS="--a=b --c=d"
	flags := map[string]string{}
	for _, word := range strings.Fields(strings.Trim(strings.TrimSpace(line), `"`)) {
		if name, value, is := strings.Cut(strings.TrimLeft(word, "-"), "="); is {
			flags[name] = value
		}
	}
	return flags, nil
}
