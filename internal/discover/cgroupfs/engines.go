package cgroupfs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"plimsoll/internal/cpu"
)

// maxFile bounds a file of an engine: an OCI configuration has some 30 kB.
const maxFile = 4 << 20

// readFile reads and parses a file.
func readFile[T any](file string, parse func([]byte) (T, error)) (T, error) {
	var zero T
	f, err := os.Open(file)
	if err != nil {
		return zero, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return zero, err
	}
	v, err := parse(data)
	if err != nil {
		return zero, fmt.Errorf("parse %s: %w", file, err)
	}
	return v, nil
}

var errNoLimit = errors.New("the limit is not said there")

// bandwidth makes a limit of microseconds; a quota that is not positive sets none, and a period of 0 is the default.
func bandwidth(quota, period, burst int64) (cpu.Bandwidth, error) {
	if period < 0 || burst < 0 || period > maxMicros || quota > maxMicros || burst > maxMicros {
		return cpu.Bandwidth{}, fmt.Errorf("quota %d, period %d, burst %d: out of range", quota, period, burst)
	}
	b := cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod, Burst: time.Duration(burst) * time.Microsecond}
	if period > 0 {
		b.Period = time.Duration(period) * time.Microsecond
	}
	if quota > 0 {
		b.Quota = time.Duration(quota) * time.Microsecond
	}
	return b, nil
}

// maxMicros is far above every limit that the kernel accepts (kernel/sched/core.c, max_cfs_runtime).
const maxMicros = int64(1) << 50

// parseHostConfig reads Docker's hostconfig.json. Docker makes --cpus a quota per 100 ms (daemon/daemon_unix.go,
// getCPUResources).
func parseHostConfig(data []byte) (cpu.Bandwidth, error) {
	var h *struct {
		NanoCpus  int64
		CpuQuota  int64
		CpuPeriod int64
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return cpu.Bandwidth{}, err
	}
	if h == nil {
		return cpu.Bandwidth{}, errNoLimit
	}
	if h.NanoCpus > 0 {
		const period = int64(100_000)
		if h.NanoCpus > maxMicros {
			return cpu.Bandwidth{}, fmt.Errorf("NanoCpus %d: out of range", h.NanoCpus)
		}
		return bandwidth(h.NanoCpus/10_000, period, 0)
	}
	return bandwidth(h.CpuQuota, h.CpuPeriod, 0)
}

// parseDataRoot reads dockerd's daemon.json; "graph" is what the key was called until 17.05.
func parseDataRoot(data []byte) (string, error) {
	var c struct {
		DataRoot string `json:"data-root"`
		Graph    string `json:"graph"`
	}
	err := json.Unmarshal(data, &c)
	return cmp.Or(c.DataRoot, c.Graph), err
}

// parseDockerName reads the name from Docker's config.v2.json, where it begins with a slash.
func parseDockerName(data []byte) (string, error) {
	var c struct{ Name string }
	err := json.Unmarshal(data, &c)
	return strings.TrimPrefix(c.Name, "/"), err
}

// parseRuncState reads the limit from runc's state.json, which runc update rewrites
// (opencontainers/cgroups, Resources).
func parseRuncState(data []byte) (cpu.Bandwidth, error) {
	var s struct {
		Config struct {
			Cgroups *struct {
				Quota   int64             `json:"cpu_quota"`
				Period  int64             `json:"cpu_period"`
				Burst   int64             `json:"cpu_burst"`
				Unified map[string]string `json:"unified"`
			} `json:"cgroups"`
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return cpu.Bandwidth{}, err
	}
	c := s.Config.Cgroups
	if c == nil || saysLimit(c.Unified) {
		return cpu.Bandwidth{}, errNoLimit
	}
	return bandwidth(c.Quota, c.Period, c.Burst)
}

// saysLimit says whether the limit is given as the text of a file of cgroup v2, which overrides the numbers.
func saysLimit(unified map[string]string) bool {
	return unified["cpu.max"] != "" || unified["cpu.max.burst"] != ""
}

// spec is what we read of the OCI configuration (opencontainers/runtime-spec, config.json).
type spec struct {
	Annotations map[string]string `json:"annotations"`
}

func parseSpec(data []byte) (*spec, error) {
	s := &spec{}
	return s, json.Unmarshal(data, s)
}

// names reads the container's and the pod's name from the annotations of containerd (pkg/cri/annotations), of CRI-O,
// which passes the kubelet's labels on, and of nerdctl.
func (s *spec) names() (container, pod string) {
	a := s.Annotations
	if name := a["nerdctl/name"]; name != "" {
		return name, ""
	}
	namespace, name := a["io.kubernetes.cri.sandbox-namespace"], a["io.kubernetes.cri.sandbox-name"]
	container = a["io.kubernetes.cri.container-name"]
	if name == "" {
		namespace, name = a["io.kubernetes.pod.namespace"], a["io.kubernetes.pod.name"]
		container = a["io.kubernetes.container.name"]
	}
	if s.sandbox() {
		container = "pause"
	}
	if name == "" || container == "" {
		return "", ""
	}
	pod = namespace + "/" + name
	return pod + "/" + container, pod
}

// sandbox says whether it is the process that keeps a pod's namespaces, in the words of containerd, and of CRI-O.
func (s *spec) sandbox() bool {
	return s.Annotations["io.kubernetes.cri.container-type"] == "sandbox" ||
		s.Annotations["io.kubernetes.container.name"] == "POD"
}

// parseStorage reads the names that containers/storage keeps: a list of {"id", "names"}.
func parseStorage(data []byte) (map[string]string, error) {
	var list []struct {
		ID    string   `json:"id"`
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	names := make(map[string]string, len(list))
	for _, c := range list {
		if len(c.Names) > 0 {
			names[c.ID] = c.Names[0]
		}
	}
	return names, nil
}
