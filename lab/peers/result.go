// Package peers is the comparison of Plimsoll with what else is done against CPU throttling: what was measured, and the
// table of it. It is measured on a real kubelet by TestPeers of test/kube (make bench-peers),
// which builds koordlet by koordlet.sh.
package peers

import "time"

// Result is what one run found.
type Result struct {
	Machine  Machine `json:"machine"`
	Settings `json:"settings"`
	Ways     []Way `json:"ways"`
}

// Machine is where it was run, and with what.
type Machine struct {
	Kernel     string `json:"kernel"`
	Cgroup     string `json:"cgroup"`
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"`
	Kubernetes string `json:"kubernetes"`
	Containerd string `json:"containerd"`
	Koordlet   string `json:"koordlet"`
	Plimsoll   string `json:"plimsoll"`
}

// Settings are the same for all ways.
type Settings struct {
	Limit    time.Duration `json:"limit_ns"` // of the service, a period of 100 ms
	Rate     float64       `json:"requests_per_second"`
	Load     time.Duration `json:"load_ns"`
	Pods     int           `json:"pods"`          // of the full node
	Small    time.Duration `json:"small_ns"`      // limit of each of its pods
	Steps    int           `json:"steps"`         // pods of the full node that begin to spin, one after another
	Spin     time.Duration `json:"spin_ns"`       // for so long
	Resized  time.Duration `json:"resized_ns"`    // limit after the resize
	Patience time.Duration `json:"patience_ns"`   // how long a resize, and what comes after a kill, is watched
	Idle     time.Duration `json:"idle_ns"`       // for which the agent of the full node is measured
	Percent  int64         `json:"raise_percent"` // of the limit: most that both agents may give
}

// Way is one way to run the pod.
type Way struct {
	Name    string   `json:"name"`
	Service *Service `json:"service,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
	One     *Cost    `json:"one_pod,omitempty"`
	Many    *Cost    `json:"many_pods,omitempty"`
	Resize  *Resize  `json:"resize,omitempty"`
	Kill    *Kill    `json:"kill,omitempty"`
	Stopped *Left    `json:"stopped,omitempty"`
}

// Service is what became of the service under load.
type Service struct {
	P50, P90, P99, Mean time.Duration
	Requests            int
	Periods, Throttled  int64         // of the container, by cpu.stat
	Stood               time.Duration // wall time for which the container or its pod was throttled
	Throttles           int           // that began
	CPUs                float64       // that the service used
}

// Step is a container that begins to want a whole CPU.
type Step struct {
	Effect Effect        `json:"effect"`
	Stood  time.Duration `json:"stood_ns"` // in the while that it wanted it
}

// Cost is what the agent takes: all its processes.
type Cost struct {
	CPUs float64 `json:"cpus"`
	RSS  int64   `json:"rss_bytes"`
}

// Files are the quotas and bursts of a pod with one container.
type Files struct {
	Pod, Container           time.Duration // quotas; cpu.Unlimited for none
	PodBurst, ContainerBurst time.Duration
}

// Resize is what a smaller limit met while the container was raised.
type Resize struct {
	Raised Files         `json:"raised"`          // at that moment
	Error  string        `json:"error,omitempty"` // the first that the kubelet said of it
	Failed time.Duration `json:"failed_ns"`       // how long the kubelet said so
	Done   bool          `json:"done"`            // the kubelet says that the new limit is in force
	Took   time.Duration `json:"took_ns"`
	After  Files         `json:"after"` // when the load is gone, and the patience over
}

// Kill is what stands after kill -9.
type Kill struct {
	Raised Files `json:"raised"` // before
	At     Files `json:"at"`     // at once
	Later  Files `json:"later"`  // after the patience, without load
}

// Left is what stands when the agent was asked to end, on the full node.
type Left struct {
	Groups int `json:"groups"`
	Quotas int `json:"quotas"` // that are not those of the kubelet
	Bursts int `json:"bursts"`
}

// Kept says whether quotas are those of the limit, and whether no burst stands.
func (f Files) Kept(limit time.Duration) (quota, burst bool) {
	return f.Pod == limit && f.Container == limit, f.PodBurst == 0 && f.ContainerBurst == 0
}
