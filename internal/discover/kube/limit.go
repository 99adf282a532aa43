package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/cpu"
)

// milli is an amount of CPU in thousandths, 0 where none is said.
type milli int64

func (m milli) cpus() float64 { return float64(m) / 1000 }

// leastQuota is the kubelet's minQuotaPeriod (pkg/kubelet/cm/helpers_linux.go).
const leastQuota = time.Millisecond

// leastLimit is the least limit that is in force: the kubelet reports that of a smaller one (MinMilliCPULimit there).
const leastLimit milli = 10

// differs says whether one of two limits is in force where the other is not.
func (m milli) differs(other milli) bool { return max(m, leastLimit) != max(other, leastLimit) }

// bandwidth is the kubelet's MilliCPUToQuota over the period that the group has.
func (m milli) bandwidth(period time.Duration) cpu.Bandwidth {
	return cpu.Bandwidth{Quota: max(leastQuota, (time.Duration(m) * period / 1000).Truncate(time.Microsecond)), Period: period}
}

func cpuOf(list corev1.ResourceList) milli {
	q, ok := list[corev1.ResourceCPU]
	if !ok {
		return 0
	}
	return milli(q.MilliValue())
}

// resize is how far a resize in place has come.
type resize int

const (
	settled  resize = iota // or the kubelet has not seen it yet
	putOff                 // it cannot be done, now or ever: what is, stays
	underWay               // the kubelet has agreed to it
)

// resizeOf reads the pod's conditions (1.33 and later), or the field that was there before them.
func resizeOf(o *corev1.Pod) resize {
	now := settled
	for _, c := range o.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.PodResizePending:
			return putOff
		case c.Type == corev1.PodResizeInProgress:
			now = underWay
		}
	}
	switch o.Status.Resize {
	case corev1.PodResizeStatusDeferred, corev1.PodResizeStatusInfeasible:
		return putOff
	case corev1.PodResizeStatusInProgress:
		return underWay
	}
	return now
}

// size is what a container has of CPU.
type size struct {
	limit   milli
	request milli
	shrinks bool
	always  bool // an init container that runs beside the others
}

// sizesOf lists the sizes of a pod's containers by name: those that are to be, unless the kubelet has put them off. While
// it has not said anything yet, the smaller counts: it can only be granted.
func sizesOf(o *corev1.Pod, r resize) map[string]size {
	actual := map[string]milli{}
	for _, list := range [][]corev1.ContainerStatus{o.Status.ContainerStatuses, o.Status.InitContainerStatuses} {
		for _, s := range list {
			if s.Resources != nil && cpuOf(s.Resources.Limits) > 0 {
				actual[s.Name] = cpuOf(s.Resources.Limits)
			}
		}
	}
	sizes := map[string]size{}
	for _, list := range [][]corev1.Container{o.Spec.Containers, o.Spec.InitContainers} {
		for _, c := range list {
			z := size{limit: cpuOf(c.Resources.Limits), request: cpuOf(c.Resources.Requests),
				always: c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways}
			if is := actual[c.Name]; is > 0 && z.limit > 0 && is.differs(z.limit) {
				switch {
				case r == putOff, r == settled && is < z.limit:
					z.limit = is
				default:
					z.shrinks = z.limit < is
				}
			}
			sizes[c.Name] = z
		}
	}
	return sizes
}

// podSize is the limit that the kubelet writes to the pod's group, 0 for none, and what the pod has reserved
// (ResourceConfigForPod; k8s.io/component-helpers/resource, PodLimits and PodRequests). A container without a limit leaves
// the pod without one.
func podSize(o *corev1.Pod, sizes map[string]size) (limit, request milli) {
	unlimited := false
	var sides, most size
	for _, c := range o.Spec.Containers {
		z := sizes[c.Name]
		unlimited = unlimited || z.limit == 0
		limit += z.limit
		request += z.request
	}
	for _, c := range o.Spec.InitContainers {
		z := sizes[c.Name]
		if z.always {
			limit += z.limit
			request += z.request
			sides.limit += z.limit
			sides.request += z.request
			z = sides
		} else {
			z.limit += sides.limit
			z.request += sides.request
		}
		unlimited = unlimited || z.limit == 0
		most.limit, most.request = max(most.limit, z.limit), max(most.request, z.request)
	}
	limit, request = max(limit, most.limit), max(request, most.request)
	if own := o.Spec.Resources; own != nil {
		if l := cpuOf(own.Limits); l > 0 {
			limit, unlimited = l, false
		}
		if r := cpuOf(own.Requests); r > 0 {
			request = r
		}
	}
	extra := cpuOf(o.Spec.Overhead)
	if unlimited || limit == 0 {
		return 0, request + extra
	}
	return limit + extra, request + extra
}
