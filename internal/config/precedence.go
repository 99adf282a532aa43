package config

import (
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Kubernetes is what the objects of a cluster say, all read.
//
// Precedence, weakest first: what Plimsoll's own file says (or the defaults), the cluster's strategy, the first node
// strategy that matches, the namespace, the annotation. Each lays only the fields that it names over what was there
// before. What an administrator allows to those who write pods comes last (tenants.go).
type Kubernetes struct {
	Cluster    Cluster
	QOS        Cluster // online and offline classes
	Threshold  Cluster // how much offline work may use
	Namespaces Namespaces
	Tenants    Tenants
	Own        Tenants // what the node's own file says of tenants
}

// Asked is the request of a pod, and the facts that decide on it.
type Asked struct {
	Namespace string
	Key       string // the name of its annotation; "": it has none
	Patch     strategy.Patch
	ClassKey  string // the name of its label
	Class     workload.Class
	Exclusive workload.Exclusive
	InitOnly  bool // of its containers only init containers have a limit
}

// Given is what a pod gets.
type Given struct {
	Strategy  strategy.Strategy
	Class     workload.Class
	Exclusive workload.Exclusive
	Cuts      []Cut // what it asked for in vain
}

// Node is what a node with these labels gets, over what its own file says.
func (k Kubernetes) Node(own strategy.Node, labels map[string]string) strategy.Node {
	for _, c := range []Cluster{k.Cluster, k.QOS, k.Threshold} {
		for _, p := range c.For(labels) {
			own = p.Over(own)
		}
	}
	own.Extra = k.Tenants.Extra.Over(own.Extra)
	return own
}

// Container is what a container on a node with these labels gets, over what the node's own file says of it, before its
// pod is asked.
func (k Kubernetes) Container(own strategy.Strategy, labels map[string]string) strategy.Strategy {
	for _, p := range k.Cluster.For(labels) { // QOS and Threshold say nothing of a single container
		own = p.Patch.Over(own)
	}
	return own
}

// Pod is what a pod gets. node is what its node gets.
func (k Kubernetes) Pod(object string, node strategy.Strategy, a Asked) (g Given) {
	own := k.Namespaces.For(a.Namespace).Over(node)
	tenants := k.Tenants.Over(k.Own)
	burst := tenants.reserved(object, a, &g)
	g.Strategy = a.Patch.Over(own)
	if a.Key != "" {
		var cut []Cut
		g.Strategy, cut = tenants.cut(object, g.Strategy, own, a)
		g.Cuts = append(g.Cuts, cut...)
	}
	if asked := a.Patch.Policy; a.InitOnly && asked != nil && *asked != strategy.None {
		g.Cuts = append(g.Cuts, Cut{object, a.Key, "policy", string(*asked), string(strategy.None),
			"neither the pod nor one of its main containers has a limit"})
	}
	if a.InitOnly || !burst {
		g.Strategy.Policy = strategy.None
	}
	return g
}
