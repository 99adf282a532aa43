package main

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/kubeapi"
)

// milli is an amount of CPU in thousandths, as Kubernetes counts.
type milli int

// The limits of containers: a few milliseconds a period, so that many can be throttled on a small machine.
const (
	leastLimit milli = 20
	mostLimit  milli = 100
)

// quota is what the kubelet writes for a limit (pkg/kubelet/cm, MilliCPUToQuota).
func (m milli) quota() time.Duration { return time.Duration(m) * cpu.DefaultPeriod / 1000 }

// container is one of a pod. A resize goes from the spec to the file, and is confirmed by the status.
type container struct {
	name      string
	id        string // of the runtime: the name of its group
	group     string
	busy      bool  // it does jobs that its limit is too small for
	spec      milli // what is to be
	written   milli // what the owner wrote last to the group's file
	confirmed milli // what the status says
	process   *experiment.Child
	settled   time.Time // since when the three are the same
}

// pod is one that the API server knows.
type pod struct {
	name, uid, group string
	containers       []*container
	written          milli     // of its own group
	asked            time.Time // when its spec changed last
	due              time.Time // when the kubelet tries to carry out a resize
}

// limit is the sum of its containers' in the spec, which is what the kubelet writes to the pod's group.
func (p *pod) limit() (sum milli) {
	for _, c := range p.containers {
		sum += c.spec
	}
	return sum
}

// resizes says whether a resize is under way.
func (p *pod) resizes() bool {
	for _, c := range p.containers {
		if c.spec != c.confirmed {
			return true
		}
	}
	return false
}

// listed is the pod as the API server has it. The annotation asks for all that the agent can do.
func (p *pod) listed() kubeapi.Pod {
	listed := kubeapi.Pod{Namespace: "soak", Name: p.name, UID: p.uid,
		Annotations: map[string]string{"koordinator.sh/cpuBurst": `{"policy": "auto"}`}}
	for _, c := range p.containers {
		listed.Containers = append(listed.Containers,
			kubeapi.Container{Name: c.name, ID: c.id, Limit: int(c.spec), Confirmed: int(c.confirmed)})
	}
	return listed
}
