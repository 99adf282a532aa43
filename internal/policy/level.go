package policy

import (
	"path"
	"strings"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// At which level of the tree the priority is set.
//
// Problem: weight and cpu.idle count among siblings only. An offline pod that is idle inside a group that is not
// competes, as that group, with everything beside it at the group's full weight.
//
// Approach: a group in which everything is of one grade has that grade itself; the topmost such groups are the levels
// where online and offline are siblings. Where somebody runs in a group whom nobody gave a class, the group is left
// as it is, and what is below it is looked at.
//
// Known limits: an offline group beside online ones competes with what is beside their common group as that group
// does. Nothing but to move it elsewhere would help; Exposed names such groups. That systemd makes way for a weight was seen
// on v2: on v1 with the systemd driver, a resize may meet an idle pod.

// TreeNode is a group of the tree: a container, or one that holds others.
type TreeNode struct {
	workload.ID
	QOS      strategy.CPUQOS // of a container
	Others   bool            // something else than the children runs in it
	Children []*TreeNode
}

// Level is a group in which everything is of one grade.
type Level struct {
	workload.ID
	QOS   strategy.CPUQOS
	Kept  bool // an owner writes its weight again and again
	Sized bool // an owner writes its weight when he resizes it
	Inner bool // below a level that is kept
}

// Levels finds the topmost groups of one grade below a root that is none itself.
func Levels(root *TreeNode) []Level {
	var list []Level
	for _, c := range root.Children {
		qos, uniform := c.grade()
		switch {
		case !uniform || ofAllPods(c.Path): // whose weight is against the system's services, and whose identity is to stay 0
			list = append(list, Levels(c)...)
		case qos.Enable:
			list = append(list, levelsAt(c, qos, false)...)
		}
	}
	return list
}

// levelsAt is the level of a node, and of those below where it is kept.
func levelsAt(s *TreeNode, qos strategy.CPUQOS, inner bool) []Level {
	kept := keptByKubelet(s.Path) && len(s.Children) > 0
	list := []Level{{s.ID, qos, kept, sizedByKubelet(s.Path), inner}}
	if kept {
		for _, c := range s.Children {
			list = append(list, levelsAt(c, qos, true)...)
		}
	}
	return list
}

// grade is what everything in the node gets, if it is the same.
func (s *TreeNode) grade() (qos strategy.CPUQOS, uniform bool) {
	if len(s.Children) == 0 {
		return s.QOS, !s.Others
	}
	if s.Others {
		return qos, false
	}
	for i, c := range s.Children {
		q, ok := c.grade()
		if !ok || i > 0 && !sameGrade(q, qos) {
			return strategy.CPUQOS{}, false
		}
		qos = q
	}
	return qos, true
}

func sameGrade(a, b strategy.CPUQOS) bool {
	return a.Rank() == b.Rank() && a.Enable == b.Enable && a.GroupIdentity == b.GroupIdentity && a.Expels() == b.Expels()
}

// keptByKubelet knows the groups of the kubelet's QoS classes, whose weights it writes at its start and once a minute
// (pkg/kubelet/cm/qos_container_manager_linux.go, UpdateCgroups).
func keptByKubelet(group string) bool {
	name, above := path.Base(group), path.Base(path.Dir(group))
	return above == "kubepods" && (name == "burstable" || name == "besteffort") ||
		named(name, "kubepods-burstable.slice") || named(name, "kubepods-besteffort.slice")
}

// sizedByKubelet knows the groups of pods that may have a CPU request, with the kubelet's cgroupfs driver: at an in-place
// resize it writes the pod's weight (pkg/kubelet/kuberuntime/kuberuntime_manager.go, doPodResizeAction). A pod without
// requests is BestEffort, and may not become anything else. With the systemd driver, systemd clears cpu.idle before it
// writes a weight.
func sizedByKubelet(group string) bool {
	above := path.Dir(group)
	return strings.HasPrefix(path.Base(group), "pod") &&
		(path.Base(above) == "kubepods" || path.Base(above) == "burstable" && keptByKubelet(above))
}

// WeightByKubelet says whether the kubelet writes a group's weight at times.
func WeightByKubelet(group string) bool { return keptByKubelet(group) || sizedByKubelet(group) }

// ofAllPods knows the group above those.
func ofAllPods(group string) bool {
	name := path.Base(group)
	return name == "kubepods" || named(name, "kubepods.slice")
}

// named says whether a slice has a name, also below a kubelet's own --cgroup-root.
func named(slice, name string) bool { return slice == name || strings.HasSuffix(slice, "-"+name) }

// Exposed lists the offline levels that some online container does not stand beside: it meets the group that holds the
// level, at that group's weight.
func Exposed(root *TreeNode, levels []Level) []string {
	online := root.online()
	var list []string
	for _, l := range levels {
		beside := path.Dir(l.Path)
		if l.QOS.Rank() != strategy.Offline || l.Inner || beside == "/" {
			continue
		}
		for _, o := range online {
			if !strings.HasPrefix(o, beside+"/") {
				list = append(list, l.Path)
				break
			}
		}
	}
	return list
}

func (s *TreeNode) online() []string {
	if len(s.Children) == 0 && s.QOS.Rank() == strategy.Online {
		return []string{s.Path}
	}
	var list []string
	for _, c := range s.Children {
		list = append(list, c.online()...)
	}
	return list
}
