package policy

import (
	"path"
	"slices"
	"strings"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// At which level of the tree the priority is set.
//
// Problem: weight and cpu.idle apply among siblings only. An idle offline pod inside a group that is not idle competes
// with the siblings of that group at the group's full weight.
//
// Approach: a group in which everything has one grade has that grade itself; the topmost such groups are the levels at
// which online and offline are siblings. A group that also contains tasks without a class is left as it is, and the
// groups below it are considered.
//
// Known limits: an offline group that has online siblings competes with the siblings of their common parent at the
// parent's weight. Only moving it elsewhere would help; Exposed lists such groups. systemd clears cpu.idle before it
// writes a weight on v2; on v1 with the systemd driver, a resize may find an idle pod.

// TreeNode is a group of the tree: a container, or a group that contains others.
type TreeNode struct {
	workload.ID
	QOS      strategy.CPUQOS // of a container
	Others   bool            // it contains tasks or groups that are not among Children
	Children []*TreeNode
}

// Level is a group in which everything has one grade.
type Level struct {
	workload.ID
	QOS   strategy.CPUQOS
	Kept  bool // an owner writes its weight repeatedly
	Sized bool // an owner writes its weight at a resize
	Inner bool // below a level that is kept
}

// Levels finds the topmost groups of one grade below root. The root itself is never one.
func Levels(root *TreeNode) []Level {
	var list []Level
	for _, c := range root.Children {
		qos, uniform := c.grade()
		name := path.Base(c.Path)
		ofAllPods := name == "kubepods" || named(name, "kubepods.slice")
		switch {
		case !uniform || ofAllPods: // its weight is relative to system services, and its identity must stay 0
			list = append(list, Levels(c)...)
		case qos.Enable:
			list = append(list, levelsAt(c, qos, false)...)
		}
	}
	return list
}

// levelsAt returns the level of a node, and where it is Kept those of the nodes below.
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

// grade is the grade that everything in the node has, if it is the same.
func (s *TreeNode) grade() (qos strategy.CPUQOS, uniform bool) {
	if len(s.Children) == 0 {
		return s.QOS, !s.Others
	}
	if s.Others {
		return qos, false
	}
	for i, c := range s.Children {
		q, ok := c.grade()
		same := i == 0 || q.Rank() == qos.Rank() && q.Enable == qos.Enable && q.Identity() == qos.Identity() &&
			q.Expels() == qos.Expels()
		if !ok || !same {
			return strategy.CPUQOS{}, false
		}
		qos = q
	}
	return qos, true
}

// keptByKubelet recognizes the groups of the kubelet's QoS classes. The kubelet writes their weights at its start and
// once a minute (pkg/kubelet/cm/qos_container_manager_linux.go, UpdateCgroups).
func keptByKubelet(group string) bool {
	name, above := path.Base(group), path.Base(path.Dir(group))
	return above == "kubepods" && (name == "burstable" || name == "besteffort") ||
		named(name, "kubepods-burstable.slice") || named(name, "kubepods-besteffort.slice")
}

// sizedByKubelet recognizes the groups of pods that may have a CPU request, with the kubelet's cgroupfs driver: at an
// in-place resize the kubelet writes the pod's weight (pkg/kubelet/kuberuntime/kuberuntime_manager.go,
// doPodResizeAction). A pod without requests is BestEffort and stays so. With the systemd driver, systemd clears
// cpu.idle before it writes a weight.
func sizedByKubelet(group string) bool {
	above := path.Dir(group)
	return strings.HasPrefix(path.Base(group), "pod") &&
		(path.Base(above) == "kubepods" || path.Base(above) == "burstable" && keptByKubelet(above))
}

// WeightByKubelet says whether the kubelet may write a group's weight.
func WeightByKubelet(group string) bool { return keptByKubelet(group) || sizedByKubelet(group) }

// named says whether a slice has the given name, also below the kubelet's --cgroup-root.
func named(slice, name string) bool { return slice == name || strings.HasSuffix(slice, "-"+name) }

// Exposed lists the offline levels that are not siblings of every online container or of a group above it: such a
// container competes with the level's parent, at the parent's weight.
func Exposed(root *TreeNode, levels []Level) []string {
	online := root.online()
	var list []string
	for _, l := range levels {
		beside := path.Dir(l.Path)
		if l.QOS.Rank() != strategy.Offline || l.Inner || beside == "/" {
			continue
		}
		if slices.ContainsFunc(online, func(o string) bool { return !strings.HasPrefix(o, beside+"/") }) {
			list = append(list, l.Path)
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
