package colocation

import (
	"maps"
	"path"
	"slices"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// tree makes the tree of the containers and the groups above them. It searches those groups for unclassified tasks, but
// not pods, all of whose groups the discovery reports.
func (c *Colocation) tree(now time.Time, pods []workload.Pod) *policy.TreeNode {
	t := treeBuilder{of: c, now: now, at: map[string]*policy.TreeNode{}, pods: map[string]bool{}}
	root := &policy.TreeNode{ID: workload.ID{Path: "/"}}
	t.at["/"] = root
	for _, p := range pods {
		if p.Path != "" && len(p.Containers) > 0 {
			t.pods[p.Path] = engine(p.Containers[0].Runtime)
		}
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			t.add(c)
		}
	}
	t.others()
	maps.DeleteFunc(c.unclassified, func(group string, _ time.Time) bool { return !t.met[group] })
	return root
}

// engine says whether a container engine made a group. No other program makes groups in such a group.
func engine(runtime string) bool { return runtime != "cgroup" && runtime != "systemd" }

// treeBuilder builds the tree.
type treeBuilder struct {
	of   *Colocation
	now  time.Time
	at   map[string]*policy.TreeNode
	pods map[string]bool
	met  map[string]bool // unclassified groups that were found
}

// add puts a container into the tree.
func (t *treeBuilder) add(c workload.Container) {
	if s := t.above(path.Dir(c.Path)); s != nil {
		node := &policy.TreeNode{ID: c.ID, QOS: c.QOS}
		s.Children = append(s.Children, node)
		t.at[c.Path] = node
	}
}

// above is the node of a group that contains others, nil if the group is gone.
func (t *treeBuilder) above(group string) *policy.TreeNode {
	if s := t.at[group]; s != nil {
		return s
	}
	inode, err := t.of.Tree.Inode(group)
	parent := t.above(path.Dir(group))
	if err != nil || parent == nil {
		return nil
	}
	s := &policy.TreeNode{ID: workload.ID{Path: group, Inode: inode}}
	parent.Children = append(parent.Children, s)
	t.at[group] = s
	return s
}

// others marks the groups with tasks outside the tree. Only groups above graded containers matter.
func (t *treeBuilder) others() {
	t.met = map[string]bool{}
	groups := make([]string, 0, len(t.at))
	for group, s := range t.at {
		if len(s.Children) > 0 && group != "/" && !t.pods[group] && graded(s) {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	searched := map[string]bool{}
	for _, group := range groups {
		t.at[group].Others = t.unclassified(group)
		searched[group] = true
	}
	t.of.searched = searched
}

// graded says whether a container in the node has an enabled class.
func graded(s *policy.TreeNode) bool {
	return s.QOS.Enable || slices.ContainsFunc(s.Children, graded)
}

// unclassified says whether a group contains tasks of its own, or a group without a node that has had tasks for
// unclassifiedAfter.
func (t *treeBuilder) unclassified(group string) bool {
	tree := t.of.Tree
	if tasks, err := tree.Tasks(group); err == nil && len(tasks) > 0 {
		return true
	}
	children, err := tree.Children(group)
	if err != nil {
		return true
	}
	found := false
	for _, c := range children {
		if t.at[c] != nil {
			continue
		}
		if populated, err := tree.Populated(c); err != nil || !populated {
			continue
		}
		t.met[c] = true
		since, known := t.of.unclassified[c]
		if !known {
			if t.of.searched[group] { // else it existed before us
				since = t.now
			}
			t.of.unclassified[c] = since
		}
		found = found || t.now.Sub(since) >= unclassifiedAfter
	}
	return found
}
