package kube

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// pod is what is kept of a pod.
type pod struct {
	about      Object
	claim      claim  // that it mirrors a static pod
	hash       string // of a mirror pod whose claim is believed: the UID of the static pod
	limit      course // that the kubelet gives its group
	own        course // that it has for all its containers together
	request    milli
	initOnly   bool                 // only its init containers have a limit
	containers map[string]container // by id

	annotations, labels map[string]string // those that are read
	requests
	rejected []*config.Rejected // of the annotations and labels
}

// requests are the contents of a pod's annotations and labels.
type requests struct {
	patch     strategy.Patch
	qos       strategy.CPUQOSPatch
	class     workload.Class
	exclusive workload.Exclusive
}

// container is one container of a pod, whatever its kind: an ordinary, init, side-car or ephemeral one.
type container struct {
	name    string
	limit   course
	request milli
	started bool // it has a probe, which says so
}

// resizes says whether the limit of the pod or of a container in it is being changed, or without a period, may be.
func (p *pod) resizes(period time.Duration) bool {
	if p.own.changes(period) {
		return true
	}
	for _, c := range p.containers {
		if c.limit.changes(period) {
			return true
		}
	}
	return false
}

// key is the UID that the pod's control group is named after.
func (p *pod) key() string {
	if p.hash != "" {
		return p.hash
	}
	return p.about.UID
}

// name is the pod's for people.
func (p *pod) name() string { return p.about.Namespace + "/" + p.about.Name }

// asked is what the pod requests by its annotations and labels.
func (p *pod) asked() config.Asked {
	key, _ := config.AnnotationOf(p.annotations)
	return config.Asked{Namespace: p.about.Namespace, Key: key, Patch: p.patch, ClassKey: config.ClassKey(p.labels),
		Class: p.class, Exclusive: p.exclusive, InitOnly: p.initOnly}
}

// newPod reads a pod but for its requests, which depend on what they were. before is the limit that it had for all its
// containers together, as far as that is known.
func newPod(o *corev1.Pod, before course) *pod {
	p := &pod{
		about: Object{Kind: "Pod", Namespace: o.Namespace, Name: o.Name, UID: string(o.UID)},
		claim: claimed(o), containers: map[string]container{},
		annotations: only(o.Annotations, config.Annotation, config.OldAnnotation, config.QOSAnnotation,
			config.ExclusiveAnnotation, config.ReceiptsAnnotation),
		labels: only(o.Labels, config.ClassLabel, config.OldClassLabel),
	}
	sizes, probes := sizesOf(o), probed(o)
	for _, list := range [][]corev1.ContainerStatus{o.Status.ContainerStatuses, o.Status.InitContainerStatuses,
		o.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			if id := containerID(s.ContainerID); id != "" {
				z := sizes[s.Name]
				p.containers[id] = container{name: s.Name, limit: z.limit, request: z.request,
					started: probes[s.Name] && s.Ready}
			}
		}
	}
	p.own = ownLimit(o, before)
	p.limit, p.request = podSize(o, p.own, sizes)
	p.initOnly = initOnly(o, p.own, sizes)
	return p
}

// real says whether the key is the pod's own UID.
func (p *pod) real() bool { return p.hash == "" }

// probed lists the containers with a readiness or startup probe. Others are ready from their first moment.
func probed(o *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, list := range [][]corev1.Container{o.Spec.Containers, o.Spec.InitContainers} {
		for _, c := range list {
			names[c.Name] = c.ReadinessProbe != nil || c.StartupProbe != nil
		}
	}
	return names
}

// containerID removes the runtime's name from "containerd://ID".
func containerID(s string) string {
	_, id, _ := strings.Cut(s, "://")
	return id
}

// read parses the pod's annotations and labels; old says that a deprecated annotation was read. A bad field keeps its
// last value.
func (p *pod) read() (old bool, bad []*config.Rejected) {
	object := "Pod " + p.name()
	var b, q, c, e []*config.Rejected
	p.patch, old, b = config.ParseAnnotations(object, p.annotations, p.patch)
	p.qos, q = config.ParseQOSAnnotation(object, p.annotations[config.QOSAnnotation], p.qos)
	p.class, c = config.ParseClass(object, p.labels, p.class)
	p.exclusive, e = config.ParseExclusive(object, p.annotations[config.ExclusiveAnnotation], p.exclusive)
	p.rejected = slices.Concat(b, q, c, e)
	return old, p.rejected
}
