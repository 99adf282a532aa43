package cgroupfs

import (
	"path"
	"slices"
	"sort"
	"strings"

	"plimsoll/internal/config"
	"plimsoll/internal/workload"
)

// The group in a scope.
//
// Problem: with systemd, crun (Podman, CRI-O) by default made a group of its own in each container's scope, until
// mid-2025 (its pull requests 305 and 1768), and the container's tasks are in that.
// First only this group got the limit, later both.
//
// Approach: the group with the limit is the container. Where both have a limit, both limits are raised together: the
// scope is the pod of the groups in it. A pod contains no pods, so in a pod the container carries its scope
// (workload.Container).

// inside leaves of what is in a group that which is of interest: in a scope only crun's.
func (n *node) inside(paths []string) []string {
	if !n.place.scope {
		return paths
	}
	return slices.DeleteFunc(paths, func(p string) bool { return path.Base(p) != workload.InScope })
}

// measure finds out whether a scope and the group in it have limits, and says whether that is new.
func (s *Scanner) measure(n *node) bool {
	if !n.place.scope && !n.place.inner {
		return false
	}
	was := n.limited
	now, err := s.tree.Bandwidth(n.Path)
	n.limited = err == nil && now.Limited()
	return n.limited != was
}

// resolve returns the configuration of a group. A glob that matches a container's scope also matches the group in it,
// and one that matches a service its container: the container's id is another one after each start.
func (s *Scanner) resolve(n *node) config.Effective {
	e := s.opt.Resolver.Resolve(n.Path)
	inService := n.place.Kind == Container && strings.HasPrefix(path.Base(n.Path), split)
	if (n.place.inner || inService) && !e.Matched {
		e = s.opt.Resolver.Resolve(path.Dir(n.Path))
	}
	return e
}

// closeScopes has the containers in a pod that have scopes with limits take these with them: below a pod there is none.
func closeScopes(pods []group, free []*node) (open []group, containers []*node) {
	for _, g := range pods {
		if g.pod.place.scope {
			g.containers[0].scope = g.pod
			free = append(free, g.containers[0])
		} else {
			open = append(open, g)
		}
	}
	sort.Slice(free, func(i, j int) bool { return free[i].Path < free[j].Path })
	return open, free
}
