package config

import "plimsoll/internal/strategy"

// Kubernetes is what the objects of a cluster say, all read.
//
// Precedence, weakest first: what Plimsoll's own file says (or the defaults), the cluster's strategy, the first node
// strategy that matches, the namespace, the annotation. Each lays only the fields that it names over what was there before.
// The maxima come last, and bind pods with an annotation only. Without maxima too, an annotation's startupBurstPercent is
// bound by what the pod would get without the annotation.
type Kubernetes struct {
	Cluster    Cluster
	QOS        Cluster // online and offline classes
	Threshold  Cluster // how much offline work may use
	Namespaces Namespaces
	Maxima     Maxima
}

// Asked is the request of a pod, and the facts that decide on it.
type Asked struct {
	Annotated bool
	Patch     strategy.Patch
	Share     Share
}

// Node is what a node with these labels gets, over what its own file says.
func (k Kubernetes) Node(own strategy.Strategy, labels map[string]string) strategy.Strategy {
	for _, c := range []Cluster{k.Cluster, k.QOS, k.Threshold} {
		for _, p := range c.For(labels) {
			own = p.Over(own)
		}
	}
	return own
}

// Unbounded is what a pod would get without maxima. node is what its node gets.
func (k Kubernetes) Unbounded(node strategy.Strategy, a Asked) strategy.Strategy {
	return a.Patch.Over(k.administrators(node, a))
}

// administrators is what a pod would get without its annotation.
func (k Kubernetes) administrators(node strategy.Strategy, a Asked) strategy.Strategy {
	return k.Namespaces.For(a.Share.Namespace).Over(node)
}

// Pod is what a pod gets, and what was cut.
func (k Kubernetes) Pod(object string, node strategy.Strategy, a Asked) (strategy.Strategy, []*Rejected) {
	s := k.Unbounded(node, a)
	if !a.Annotated {
		return s, nil
	}
	return k.Maxima.Bound(object, s, k.administrators(node, a), a)
}
