// Package workload says what runs on the node, whoever started it: containers, and the pods that hold them.
package workload

import (
	"iter"
	"path"
	"slices"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// ID is the identity of one control group. A group that is deleted and made again under the same path is another
// one: its inode differs.
type ID struct {
	Path  string `json:"cgroup"` // below the cpu hierarchy (v1) or the root (v2); begins with `/`
	Inode uint64 `json:"inode"`  // a group that is made again under the same path has another one
}

// InScope is the name of the group that crun made in a container's systemd scope, and to which it gave the limit.
const InScope = "container"

// Class is the priority class of a container, in Koordinator's terms.
type Class string

// The classes. A container without a class is latency sensitive, as at the peer.
const (
	ClassLSE    Class = "LSE"    // latency sensitive, exclusive CPUs
	ClassLSR    Class = "LSR"    // latency sensitive, reserved CPUs
	ClassLS     Class = "LS"     // latency sensitive
	ClassBE     Class = "BE"     // best effort: offline work
	ClassSystem Class = "SYSTEM" // of the node itself: neither online nor offline
	ClassNone   Class = ""       // not said
)

// Classes lists those that can be said.
func Classes() []Class { return []Class{ClassLSE, ClassLSR, ClassLS, ClassBE, ClassSystem} }

// QOS is what a class gets. A container without a class gets nothing.
func (c Class) QOS(node strategy.Colocation) strategy.CPUQOS {
	switch c {
	case ClassLSE, ClassLSR:
		return node.LSR
	case ClassLS:
		return node.LS
	case ClassBE:
		return node.BE
	case ClassSystem:
		return node.System
	}
	return strategy.CPUQOS{}
}

// Burstable says whether a container of this class may burst: the peer excludes LSE, LSR and BE.
func (c Class) Burstable() bool { return c != ClassLSE && c != ClassLSR && c != ClassBE }

// Declared is the limit that the owner of a container has declared outside the cgroup (a systemd property, the
// runtime's state, the pod's spec). It is the baseline, and what a restore goes to.
type Declared struct {
	Bandwidth cpu.Bandwidth
	Next      cpu.Bandwidth // what its owner is about to write, and has not confirmed; zero: nothing
	Source    string        // for people: "systemd CPUQuota= of nginx.service", "runc state"
	Rounded   bool          // systemd's, of a container or pod: runtimes round a limit up before systemd gets it
}

// RoundedUp is a limit as runc and crun hand it to systemd: in microseconds a second, rounded up to 10 ms
// (opencontainers/cgroups, systemd, addCPUQuota).
func RoundedUp(b cpu.Bandwidth) int64 {
	const step = 10_000
	return (int64(b.CPUs()*1e6+0.5) + step - 1) / step * step
}

// LeastRequest stands for a request of 0 CPUs, which would be one that is not known. It is the share of a CPU that the
// kubelet gives a container that requests none (MinShares of 1024).
const LeastRequest = 2.0 / 1024

// Container is one group whose limit hurts or not: a container, a service, a plain folder.
type Container struct {
	ID
	Scope     ID     // the systemd scope around the group (InScope), where it has the same limit; zero: there is none
	Name      string // for people: "default/web/nginx", "nginx.service", the path where nothing is known
	Runtime   string // containerd, docker, cri-o, podman, systemd, cgroup
	Class     Class
	Request   float64           // reserved CPUs; 0 when not known (never derived from a weight)
	Declared  *Declared         // nil when nobody but the cgroup itself knows
	Strategy  strategy.Strategy // what is to be done for it, all configuration merged
	Exclusive Exclusive         // whether it is to have exclusive CPUs
	Paused    bool              // held at its limit by an operator
	Started   bool              // its owner says that its start is over; false: it is not, or nobody says
	// in the place of a container, but none of its pod's: the pause process, or one that has no name yet
	Sandbox bool
	QOS     strategy.CPUQOS // online or offline, of its class or its own
}

// Pod is a group that holds containers and has a limit of its own. A container without a pod stands in a Pod whose
// ID is zero.
type Pod struct {
	ID
	Name       string
	Namespace  string // "" where nothing tells of one
	Request    float64
	Declared   *Declared
	Own        bool // its limit is one for all its containers together, and not the sum of theirs
	Delegated  bool // its groups are in one that a user owns, who chose their names
	Containers []Container
}

// IDs lists the groups of a pod: its own, if it has one, and those of its containers, each after its scope.
func (p Pod) IDs() []ID {
	list := make([]ID, 0, 1+len(p.Containers))
	if p.Path != "" {
		list = append(list, p.ID)
	}
	for _, c := range p.Containers {
		if c.Scope.Path != "" {
			list = append(list, c.Scope)
		}
		list = append(list, c.ID)
	}
	return list
}

// Groups is how many groups the pod has.
func (p Pod) Groups() int {
	n := len(p.Containers)
	if p.Path != "" {
		n++
	}
	for i := range p.Containers {
		if p.Containers[i].Scope.Path != "" {
			n++
		}
	}
	return n
}

// Passive says whether nothing is to be done for any container of the pod.
func (p Pod) Passive() bool {
	return !slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Strategy.Policy != strategy.None })
}

// Refillable lists the groups that may be refilled: those whose limit nobody but the group itself knows, and those
// whose limit is declared.
func Refillable(pods []Pod) (undeclared, declared []ID) {
	add := func(id ID, d *Declared) {
		switch {
		case id.Inode == 0: // a container without a pod
		case d == nil:
			undeclared = append(undeclared, id)
		default:
			declared = append(declared, id)
		}
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			if c.Strategy.Policy != strategy.None {
				add(c.ID, c.Declared)
			}
		}
		if !p.Passive() {
			add(p.ID, p.Declared)
		}
	}
	return undeclared, declared
}

// Above lists the groups above a group, the nearest first, without the root.
func Above(group string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := path.Dir(group); at != "/" && at != "." && yield(at); {
			at = path.Dir(at)
		}
	}
}

// Under says whether a group is below another one.
func Under(group, above string) bool {
	return len(group) > len(above) && group[:len(above)+1] == above+"/"
}
