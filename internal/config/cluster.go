package config

import (
	"fmt"

	"plimsoll/internal/strategy"
)

// The keys of the ConfigMaps that Plimsoll reads. All others are other programs'.
const (
	BurstKey     = "cpu-burst-config" // of slo-controller-config and ack-slo-config
	NamespaceKey = "cpu-burst"        // of ack-slo-pod-config
)

// Cluster is the configuration by the administrator of a cluster, node by node. The zero Cluster sets nothing.
type Cluster struct {
	all   strategy.NodePatch
	nodes []nodeStrategy
}

// nodeStrategy is what some nodes get in place of others.
type nodeStrategy struct {
	name     string
	selector Selector
	patch    strategy.NodePatch
}

// For is what a node with these labels gets: the cluster's strategy, and over it that of the first entry that chooses
// the node.
func (c Cluster) For(labels map[string]string) []strategy.NodePatch {
	for _, n := range c.nodes {
		if n.selector.Matches(labels) {
			return []strategy.NodePatch{c.all, n.patch}
		}
	}
	return []strategy.NodePatch{c.all}
}

// ParseCluster reads the key cpu-burst-config. What is bad keeps its value of last: a field, an entry of nodeStrategies
// whose selector cannot be read, or the whole, where the text is no JSON.
func ParseCluster(object, text string, last Cluster) (Cluster, []*Rejected) {
	return parsed(object, BurstKey, text, last, func(r *jsonReader, list []member) Cluster {
		return r.cluster(list, last, func(field string, list []member, last strategy.NodePatch) strategy.NodePatch {
			return strategy.NodePatch{Patch: r.patch(field, list, last.Patch, ofNode)}
		})
	})
}

// fieldsOf reads the fields of a strategy. A bad field keeps its value of last.
type fieldsOf func(field string, list []member, last strategy.NodePatch) strategy.NodePatch

// cluster reads the shape that all of the peer's keys have.
func (r *jsonReader) cluster(list []member, last Cluster, read fieldsOf) Cluster {
	var c Cluster
	for _, m := range list {
		switch {
		case m.is("clusterStrategy"):
			if fields, ok := r.members("clusterStrategy", m.value); ok {
				c.all = read("clusterStrategy", fields, last.all)
			} else {
				c.all = last.all
			}
		case m.is("nodeStrategies"):
			c.nodes = r.nodeStrategies(m.value, last.nodes, read)
		}
	}
	return c
}

func (r *jsonReader) nodeStrategies(raw []byte, last []nodeStrategy, read fieldsOf) []nodeStrategy {
	list, ok := r.elements("nodeStrategies", raw)
	if !ok {
		return last
	}
	var nodes []nodeStrategy
	for i, raw := range list {
		if n, ok := r.nodeStrategy(fmt.Sprintf("nodeStrategies[%d]", i), raw, last, read); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// nodeStrategy reads one entry. Entries are known again by their names.
func (r *jsonReader) nodeStrategy(field string, raw []byte, all []nodeStrategy, read fieldsOf) (nodeStrategy, bool) {
	list, ok := r.members(field, raw)
	if !ok {
		return nodeStrategy{}, false
	}
	var n nodeStrategy
	var selector []byte
	for _, m := range list {
		switch {
		case m.is("name") && !m.null():
			n.name, _ = r.text(field+".name", m.value)
		case m.is("nodeSelector") && !m.null():
			selector = m.value
		}
	}
	last, known := named(all, n.name)
	n.patch = read(field, list, last.patch)
	if selector == nil { // the API's LabelSelector: none matches nothing, an empty one everything
		r.reject(field+".nodeSelector", faultf(`such as {"matchLabels": {"pool": "web"}}, or {} for every node`,
			"missing"))
		return last, known
	}
	if n.selector, ok = r.selector(field+".nodeSelector", selector); !ok {
		return last, known
	}
	return n, true
}

func named(list []nodeStrategy, name string) (nodeStrategy, bool) {
	for _, n := range list {
		if n.name == name && name != "" {
			return n, true
		}
	}
	return nodeStrategy{}, false
}
