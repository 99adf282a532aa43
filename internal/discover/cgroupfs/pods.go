package cgroupfs

import (
	"cmp"
	"path"
	"sort"
	"strings"

	"plimsoll/internal/config"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Resolver answers what the configuration says about a group, and about the node.
type Resolver interface {
	Resolve(path string) config.Effective
	Node() strategy.Node
}

// node is a group of the tree.
type node struct {
	workload.ID
	place     Place
	effective config.Effective
	children  map[string]*node // by path; of a container there is one at most
	user      *delegated       // whose it is; nil: root's
	watched   bool
	listed    bool  // children are all that is in it
	limited   bool  // of a scope, and of the group in it
	scope     *node // of the group in a scope: the scope, where that has the limit too and is no pod
	facts     facts
	lookup    lookup
}

// wanted says whether the group is managed: a group of an engine always, any other where the configuration
// names it.
func (n *node) wanted() bool {
	switch n.place.Kind {
	case Container, Pod:
		return true
	case Unit, Plain:
		return n.effective.Matched && n.Path != "/"
	}
	return false
}

// delegated says whether a user owns a group above, and so may have chosen the name. In a user namespace a pod's user
// may own the container's group, but none above it.
func (n *node) delegated() bool { return n.user != nil && n.user.path != n.Path }

func (n *node) sorted() []*node {
	list := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}

// group is a pod as nodes. A container without a pod is in a group whose pod is nil.
type group struct {
	pod        *node
	containers []*node
}

func (g group) path() string {
	if g.pod != nil {
		return g.pod.Path
	}
	return g.containers[0].Path
}

// choose finds the managed groups below a node, sorted by path. A wanted group with wanted groups below it is the pod
// of those that have no nearer pod. A group that contains only pods is no pod.
func choose(root *node) []group {
	groups, free := gather(root)
	for _, c := range free {
		groups = append(groups, group{containers: []*node{c}})
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].path() < groups[j].path() })
	return groups
}

// gather returns the pods at and below a node, and the containers there that have none yet.
func gather(n *node) (pods []group, free []*node) {
	for _, c := range n.sorted() {
		p, f := gather(c)
		pods, free = append(pods, p...), append(free, f...)
	}
	if n.wanted() && n.place.Kind != Container {
		pods, free = closeScopes(pods, free)
	}
	if n.place.scope && len(free) > 0 {
		free[0].scope = nil
	}
	switch {
	case !n.wanted():
	case n.place.scope && len(free) > 0 && !n.limited: // the limit is that of the group in it, or will be
	case n.place.scope && len(free) > 0 && free[0].limited:
		pods, free = []group{{n, free}}, nil
	case n.place.Kind == Container || n.place.Kind != Pod && len(pods)+len(free) == 0:
		free = []*node{n}
	case len(free) > 0:
		pods, free = append(pods, group{n, free}), nil
	}
	return pods, free
}

// workloads makes the values of the chosen nodes.
func workloads(groups []group, node strategy.Colocation) []workload.Pod {
	pods := make([]workload.Pod, 0, len(groups))
	for _, g := range groups {
		var p workload.Pod
		if g.pod != nil {
			p = workload.Pod{ID: g.pod.ID, Name: g.podName(), Request: g.pod.effective.Request,
				Declared: g.pod.facts.declared}
		}
		for _, c := range g.containers {
			p.Containers = append(p.Containers, c.container(node))
			p.Delegated = p.Delegated || c.delegated()
		}
		pods = append(pods, p)
	}
	return pods
}

func (g group) podName() string {
	for _, c := range g.containers {
		if c.facts.pod != "" {
			return c.facts.pod
		}
	}
	switch {
	case g.pod.place.Kind == Pod:
		return "pod " + short(g.pod.place.ID)
	case g.pod.place.scope:
		return "scope of " + g.containers[0].name()
	}
	return g.pod.ownName()
}

func (n *node) container(node strategy.Colocation) workload.Container {
	c := workload.Container{ID: n.ID, Name: n.name(), Runtime: n.place.Runtime, Class: n.effective.Class,
		Request: n.effective.Request, Declared: n.facts.declared, Strategy: n.effective.Strategy,
		Exclusive: n.effective.Exclusive, Sandbox: n.facts.sandbox}
	if n.scope != nil {
		c.Scope = n.scope.ID
	}
	if n.facts.runtime != "" {
		c.Runtime = n.facts.runtime
	}
	if c.Class == workload.ClassNone && node.KubeQOS && !n.delegated() {
		c.Class = kubeletClass(n.Path)
	}
	c.QOS = c.Class.QOS(node)
	return c
}

// name is the engine's name of a container, or else the name of its group.
func (n *node) name() string { return cmp.Or(n.facts.name, n.ownName()) }

// kubeletClass is the class of a pod that names none. It follows the kubelet's QoS class in the names of the groups: a
// BestEffort pod is offline, any other online.
func kubeletClass(group string) workload.Class {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if at := Classify(group); at.Kind != Pod || at.Runtime != kubernetes {
			continue
		}
		above := path.Base(path.Dir(group))
		if above == "besteffort" || strings.HasSuffix(above, "kubepods-besteffort.slice") {
			return workload.ClassBE
		}
		return workload.ClassLS
	}
	return workload.ClassNone
}

// ownName is what a group is called where no engine has a name for it.
func (n *node) ownName() string {
	switch n.place.Kind {
	case Container:
		return short(n.place.ID)
	case Unit:
		return path.Base(n.Path)
	}
	return n.Path
}

// short is the id as the engines print it. A UID (36 characters) is kept.
func short(id string) string {
	if isID(id) {
		return id[:12]
	}
	return id
}

func (g group) nodes() []*node {
	var list []*node
	if g.pod != nil {
		list = append(list, g.pod)
	}
	for _, c := range g.containers {
		if c.scope != nil {
			list = append(list, c.scope)
		}
		list = append(list, c)
	}
	return list
}

func sortedIDs(set map[workload.ID]*node) []workload.ID {
	ids := make([]workload.ID, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		return ids[i].Path < ids[j].Path || ids[i].Path == ids[j].Path && ids[i].Inode < ids[j].Inode
	})
	return ids
}

// NameOf is what a group is called; "" where it has no name but its path.
func (s *Scanner) NameOf(group string) string {
	pods, _ := s.Pods() // those known before, after a failed walk
	name := ""
	for _, p := range pods {
		if p.Path == group {
			name = p.Name
		}
		for _, c := range p.Containers {
			if c.Path == group {
				name = c.Name
			}
		}
	}
	if name == group {
		return ""
	}
	return name
}

// NamesOf are those of the groups of changes.
func (s *Scanner) NamesOf(changes []plan.Change) map[string]string {
	names := map[string]string{}
	for _, c := range changes {
		if name := s.NameOf(c.Cgroup.Path); name != "" {
			names[c.Cgroup.Path] = name
		}
	}
	return names
}
