package kube

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mirrors says which pod at the API server stands for a static pod of this node.
//
// Problem: the control groups of a static pod are named after a UID that only its mirror pod has, in an annotation.
// Anybody who may make pods may write annotations and owner references, and could so put the name, class, annotations
// and limits of a pod of theirs in the place of those of a static pod.
//
// Approach: a claim is believed if this node controls the pod, by its name and UID, as the kubelet writes it
// (pkg/kubelet/pod/mirror_client.go). And it is believed of one pod name only, for as long as the agent lives: no two
// live pods have one name, so another object of the same name is the kubelet's next mirror of the same static pod, and
// an object of another name is none. Of the claims of one list the oldest counts; the API server dates objects.
//
// Known limits: the UID of a node is hard to learn, but no secret. Who knows it and the UID of a static pod, and is
// there before the kubelet's own mirror, is believed. A kubelet deletes mirror pods that it has not made, within
// seconds.
type mirrors struct {
	node   owner
	bound  map[string]string // by UID of a static pod: the name of the pod that may mirror it
	claims map[string]string // by UID of a pod at the API server: that of the static pod; only claims that are believed
}

// owner is a node that controls a pod.
type owner struct{ name, uid string }

// claim is what a pod says of itself: which static pod it mirrors, and which node has made it.
type claim struct {
	hash string
	by   owner
	made time.Time
}

// maxBound bounds the names that are remembered of static pods that are gone.
const maxBound = 1024

func newMirrors(node string) mirrors {
	return mirrors{node: owner{name: node}, bound: map[string]string{}, claims: map[string]string{}}
}

// claimed reads a claim; the zero one where the pod makes none.
func claimed(o *corev1.Pod) claim {
	hash, by := o.Annotations[staticHash], metav1.GetControllerOfNoCopy(o)
	if hash == "" || o.Annotations[staticMirror] != hash || by == nil || by.Kind != "Node" {
		return claim{}
	}
	return claim{hash, owner{by.Name, string(by.UID)}, o.CreationTimestamp.Time}
}

// judge returns the UID of the static pod that a pod mirrors, "" for none, and then why its claim is not believed.
// other is the pod that has the UID now.
func (m *mirrors) judge(p, other *pod) (hash, why string) {
	c := p.claim
	name, known := m.bound[c.hash]
	switch {
	case c.hash == "" || m.node.uid == "": // none, or none that could be judged yet
		return "", ""
	case other != nil && other.real():
		return "", "the UID is that of pod " + other.name()
	case m.claims[p.about.UID] == c.hash: // it was believed: the node may have another UID by now
		return c.hash, ""
	case c.by != m.node:
		return "", "it was not made by this node"
	case known && name != p.name():
		return "", "that pod is " + name
	}
	return c.hash, ""
}

// believe binds a static pod to the name of its mirror pod.
func (m *mirrors) believe(p *pod, alive map[string]*pod) {
	if len(m.bound) >= maxBound {
		maps.DeleteFunc(m.bound, func(hash, _ string) bool { return alive[hash] == nil })
	}
	m.bound[p.hash], m.claims[p.about.UID] = p.name(), p.hash
}

// key is the UID in the groups of a pod, by its UID at the API server.
func (m *mirrors) key(uid string) string {
	if hash, ok := m.claims[uid]; ok {
		return hash
	}
	return uid
}
