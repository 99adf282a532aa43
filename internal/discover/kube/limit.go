package kube

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/cpu"
)

// milli is an amount of CPU in thousandths, 0 where none is said.
type milli int64

func (m milli) cpus() float64 { return float64(m) / 1000 }

// leastQuota is the kubelet's minQuotaPeriod (pkg/kubelet/cm/helpers_linux.go).
const leastQuota = time.Millisecond

// bandwidth is the kubelet's MilliCPUToQuota over the period that the group has.
func (m milli) bandwidth(period time.Duration) cpu.Bandwidth {
	return cpu.Bandwidth{Quota: max(leastQuota, (time.Duration(m) * period / 1000).Truncate(time.Microsecond)),
		Period: period}
}

// course is a limit during a resize: the present one, by the status, and the next one, by the spec.
type course struct{ is, to milli }

// changes says whether the two are different quotas. For a limit below the least quota the kubelet reports the least,
// which depends on the period: at 10 ms, 50m is reported as 100m.
func (c course) changes(period time.Duration) bool {
	return c.is != c.to && (period == 0 || c.is.bandwidth(period) != c.to.bandwidth(period))
}

func cpuOf(list corev1.ResourceList) milli {
	q, ok := list[corev1.ResourceCPU]
	if !ok {
		return 0
	}
	return milli(q.MilliValue())
}

// putOff says whether the kubelet has deferred or refused a resize in place. The pod's conditions show it (1.33 and
// later), or the older field of the status.
func putOff(o *corev1.Pod) bool {
	for _, c := range o.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == corev1.PodResizePending {
			return true
		}
	}
	return o.Status.Resize == corev1.PodResizeStatusDeferred || o.Status.Resize == corev1.PodResizeStatusInfeasible
}

// size is what a container has of CPU.
type size struct {
	limit   course
	request milli
	always  bool // an init container that runs beside the others
}

// sizesOf lists the sizes of a pod's containers by name. What the kubelet has put off is not to be.
func sizesOf(o *corev1.Pod) map[string]size {
	actual, off := map[string]milli{}, putOff(o)
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
			limit := cpuOf(c.Resources.Limits)
			z := size{limit: course{limit, limit}, request: cpuOf(c.Resources.Requests),
				always: c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways}
			if is := actual[c.Name]; is > 0 && limit > 0 {
				z.limit.is = is
				if off {
					z.limit.to = is
				}
			}
			sizes[c.Name] = z
		}
	}
	return sizes
}

// podSize is the limit that the kubelet writes to the pod's group, 0 for none, and what the pod has reserved
// (ResourceConfigForPod; k8s.io/component-helpers/resource, PodLimits and PodRequests).
func podSize(o *corev1.Pod, own course, sizes map[string]size) (limit course, request milli) {
	return course{podLimit(o, own.is, sizes, func(c course) milli { return c.is }),
			podLimit(o, own.to, sizes, func(c course) milli { return c.to })},
		podRequest(o, sizes)
}

// ownLimit is the limit of a pod for all its containers together. The status has the limit in force since pods can be
// resized in place (InPlacePodLevelResourcesVerticalScaling), but the kubelet reads it from the pod's group
// (kubelet_pods.go, convertToAPIPodLevelResourcesStatus), where a raise of ours may be. So the status is believed where
// it has what the spec has or had before: then a resize is under way, or over. Where a resize is put off that adds the
// limit, the status has none.
//
// Known limits: what the spec had before the agent started is not known. A resize that is under way then counts as
// done, and one that is put off has the status believed.
func ownLimit(o *corev1.Pod, before course) course {
	if o.Spec.Resources == nil {
		return course{}
	}
	to, off, is := cpuOf(o.Spec.Resources.Limits), putOff(o), milli(0)
	if o.Status.Resources != nil {
		is = cpuOf(o.Status.Resources.Limits)
	}
	switch {
	case to == 0:
		return course{}
	case is == 0 && off:
		is = before.is
	case is == 0, before.to == 0 && !off:
		is = to
	case before.to > 0 && is != to && is != before.is && is != before.to:
		is = before.is
	}
	if off {
		to = is
	}
	return course{is, to}
}

// podLimit: a container without a limit leaves the pod without one.
func podLimit(o *corev1.Pod, own milli, sizes map[string]size, of func(course) milli) milli {
	extra := cpuOf(o.Spec.Overhead)
	if own > 0 {
		return own + extra
	}
	limit, all := sum(o, sizes, func(z size) milli { return of(z.limit) })
	if !all || limit == 0 {
		return 0
	}
	return limit + extra
}

// initOnly says whether only init containers have a limit: neither the pod nor one of its main containers has one.
func initOnly(o *corev1.Pod, own course, sizes map[string]size) bool {
	limited := func(c corev1.Container) bool { return sizes[c.Name].limit.to > 0 }
	return own.to == 0 && !slices.ContainsFunc(o.Spec.Containers, limited) &&
		slices.ContainsFunc(o.Spec.InitContainers, limited)
}

func podRequest(o *corev1.Pod, sizes map[string]size) milli {
	request, _ := sum(o, sizes, func(z size) milli { return z.request })
	if own := o.Spec.Resources; own != nil && cpuOf(own.Requests) > 0 {
		request = cpuOf(own.Requests)
	}
	return request + cpuOf(o.Spec.Overhead)
}

// sum is what the containers need together at most: those that run, with the side-cars, or an init container with the
// side-cars before it. all says whether there is always something to add.
func sum(o *corev1.Pod, sizes map[string]size, of func(size) milli) (total milli, all bool) {
	all = true
	for _, c := range o.Spec.Containers {
		m := of(sizes[c.Name])
		all = all && m > 0
		total += m
	}
	var sides, most milli
	for _, c := range o.Spec.InitContainers {
		z := sizes[c.Name]
		m := sides + of(z)
		if z.always {
			total += of(z)
			sides = m
		}
		all = all && m > 0
		most = max(most, m)
	}
	return max(total, most), all
}
