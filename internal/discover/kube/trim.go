package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll/internal/config"
)

// staticHash is the annotation of a mirror pod with the UID that its static pod has on the node, and so in the names of
// its control groups (k8s.io/kubernetes/pkg/kubelet/types, ConfigHashAnnotationKey).
const staticHash = "kubernetes.io/config.hash"

// staticMirror is the annotation by which a kubelet marks a mirror pod, with the same value
// (ConfigMirrorAnnotationKey).
const staticMirror = "kubernetes.io/config.mirror"

// trim is trimmed, as client-go wants it.
func trim(o any) (any, error) { return trimmed(o), nil }

// trimmed keeps only the fields of an object that are read, so that a list of large objects is never kept whole.
// Trimming is idempotent.
func trimmed(o any) any {
	switch x := o.(type) {
	case *corev1.Pod:
		return trimPod(x)
	case *corev1.Node:
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: x.Name, UID: x.UID, Labels: x.Labels,
			ResourceVersion: x.ResourceVersion}}
	case *corev1.ConfigMap:
		return trimConfigMap(x)
	}
	return o
}

func trimConfigMap(m *corev1.ConfigMap) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: bare(m.ObjectMeta),
		Data: only(m.Data, config.BurstKey, config.QOSKey, config.ThresholdKey, config.NamespaceKey, config.TenantsKey)}
}

func bare(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

func only(m map[string]string, keys ...string) map[string]string {
	var some map[string]string
	for _, k := range keys {
		if v, ok := m[k]; ok {
			if some == nil {
				some = map[string]string{}
			}
			some[k] = v
		}
	}
	return some
}

func trimPod(p *corev1.Pod) *corev1.Pod {
	t := &corev1.Pod{ObjectMeta: bare(p.ObjectMeta)}
	t.CreationTimestamp = p.CreationTimestamp
	t.Labels = only(p.Labels, config.ClassLabel, config.OldClassLabel)
	t.Annotations = only(p.Annotations, config.Annotation, config.OldAnnotation, config.QOSAnnotation,
		config.ExclusiveAnnotation, config.ReceiptsAnnotation, staticHash, staticMirror)
	for key, text := range t.Annotations {
		if len(text) > config.MaxAnnotation { // it is refused: that it is too long is enough to know
			t.Annotations[key] = strings.Clone(text[:config.MaxAnnotation+1])
		}
	}
	t.OwnerReferences = nodes(p.OwnerReferences)
	t.Spec = corev1.PodSpec{Resources: p.Spec.Resources, Overhead: p.Spec.Overhead,
		Containers: trimContainers(p.Spec.Containers), InitContainers: trimContainers(p.Spec.InitContainers)}
	s := &t.Status
	s.Resize, s.Resources = p.Status.Resize, p.Status.Resources
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	s.ContainerStatuses = trimStatuses(p.Status.ContainerStatuses)
	s.InitContainerStatuses = trimStatuses(p.Status.InitContainerStatuses)
	s.EphemeralContainerStatuses = trimStatuses(p.Status.EphemeralContainerStatuses)
	return t
}

// nodes are those owners that are nodes: of a mirror pod it is the node that it is on.
func nodes(owners []metav1.OwnerReference) []metav1.OwnerReference {
	var some []metav1.OwnerReference
	for _, o := range owners {
		if o.Kind == "Node" {
			some = append(some, metav1.OwnerReference{Kind: o.Kind, Name: o.Name, UID: o.UID, Controller: o.Controller})
		}
	}
	return some
}

func trimContainers(list []corev1.Container) []corev1.Container {
	var short []corev1.Container
	for _, c := range list {
		t := corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		if c.ReadinessProbe != nil || c.StartupProbe != nil {
			t.ReadinessProbe = &corev1.Probe{}
		}
		short = append(short, t)
	}
	return short
}

func trimStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	var short []corev1.ContainerStatus
	for _, c := range list {
		short = append(short, corev1.ContainerStatus{Name: c.Name, ContainerID: c.ContainerID, Resources: c.Resources,
			Ready: c.Ready})
	}
	return short
}
