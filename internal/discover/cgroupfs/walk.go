package cgroupfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"plimsoll/internal/workload"
)

// walkDown checks each known group, and lists the children of the groups that have changed.
func (s *Scanner) walkDown() error {
	inode, groups, err := s.tree.Links("/")
	if err != nil || inode != s.root.Inode {
		groups = -1
	}
	return s.update(s.root, groups)
}

// update updates a group and all groups below it. The group has so many children now; -1: not known. Where it had as
// many, and all of them are still there, it need not be listed.
func (s *Scanner) update(n *node, groups int) error {
	if !n.watched && s.watch(n) || !n.listed || groups != len(n.children) {
		return s.list(n, true)
	}
	inside := make(map[*node]int, groups)
	for p, c := range n.children {
		inode, groups, err := s.tree.Links(p)
		if err != nil || inode != c.Inode {
			return s.list(n, true)
		}
		inside[c] = groups
	}
	s.changed = s.measure(n) || s.changed
	var faults error
	for c, groups := range inside {
		faults = errors.Join(faults, s.update(c, groups))
	}
	return faults
}

// list updates a group's children. It watches first and lists then, so that no new group is missed in between.
// It lists new children recursively, and updates known ones if deep.
func (s *Scanner) list(n *node, deep bool) error {
	s.watch(n)
	s.changed = s.measure(n) || s.changed
	if n.place.Closed() && !n.place.scope {
		return nil
	}
	paths, err := s.tree.Children(n.Path)
	if errors.Is(err, fs.ErrNotExist) && n != s.root {
		return nil // gone; the parent's list shows it
	}
	if err != nil {
		return err
	}
	listed := len(paths)
	paths = n.inside(paths)
	n.listed = len(paths) == listed
	var faults error
	found := make(map[string]bool, len(paths))
	for _, p := range paths {
		c := n.children[p]
		if c == nil && n.user.full() {
			s.leaveOut(n)
			continue
		}
		inode, groups, err := s.tree.Links(p)
		if err != nil {
			continue
		}
		found[p] = true
		if c != nil && c.Inode != inode {
			s.drop(n, c)
			c = nil
		}
		switch {
		case c == nil:
			faults = errors.Join(faults, s.list(s.add(n, p, inode), deep))
		case deep:
			faults = errors.Join(faults, s.update(c, groups))
		}
	}
	for p, c := range n.children {
		if !found[p] {
			s.drop(n, c)
		}
	}
	return faults
}

// look looks at one name in a group, of which inotify reports that it came or went. To list a thousand groups because
// one beside them restarts all the time would cost the agent its CPU.
func (s *Scanner) look(n *node, name string) error {
	p := path.Join(n.Path, name)
	c := n.children[p]
	inode, _, err := s.tree.Links(p)
	if !n.watched || !n.listed || n.place.scope || err == nil && c == nil && n.user.full() {
		return s.list(n, false)
	}
	if c != nil && (err != nil || c.Inode != inode) {
		s.drop(n, c)
		c = nil
	}
	if err != nil || c != nil {
		return nil
	}
	return s.list(s.add(n, p, inode), false)
}

// mostOfUser is how many groups are followed in one that root has given to a user, who may make groups in it without
// end: each takes memory, and a watch of those that all programs of root share.
const mostOfUser = 4096

// delegated is a group that belongs to a user other than root.
type delegated struct {
	path   string
	groups int // that are followed in it
	said   bool
}

func (d *delegated) full() bool { return d != nil && d.groups >= mostOfUser }

// leaveOut leaves out the other groups that a user has made in a group. It is not watched,
// for each event would have it listed.
func (s *Scanner) leaveOut(n *node) {
	s.unwatch(n)
	if !n.user.said {
		n.user.said = true
		s.opt.Log.Warn("a user has more control groups than are followed", "cgroup", n.user.path, "most", mostOfUser)
	}
}

func (s *Scanner) add(parent *node, p string, inode uint64) *node {
	n := &node{ID: workload.ID{Path: p, Inode: inode}}
	if parent == nil {
		n.place = Classify(p)
	} else {
		n.place = below(parent.place, path.Base(p), strings.Count(p, "/")-1)
		if parent.children == nil {
			parent.children = map[string]*node{} // most groups have none
		}
		parent.children[p] = n
		n.user = parent.user
	}
	if n.user != nil {
		n.user.groups++
	} else if s.tree.Owner(p) != 0 {
		s.delegate(n)
	}
	n.effective = s.resolve(n)
	s.nodes[p], s.changed = n, s.changed || n.wanted()
	return n
}

// delegate finds the outermost group of a new group's user. The owners above are read again: systemd makes the group of
// a user's manager as root, and gives it to the user later (src/core/exec-invoke.c, cg_set_access).
func (s *Scanner) delegate(n *node) {
	top := n
	for top.Path != "/" {
		above := s.nodes[path.Dir(top.Path)]
		if s.tree.Owner(above.Path) == 0 {
			break
		}
		top = above
	}
	top.giveTo(&delegated{path: top.Path, groups: -1}) // its own does not count
	s.changed = s.changed || top != n
}

func (n *node) giveTo(user *delegated) {
	n.user = user
	user.groups++
	for _, c := range n.children {
		c.giveTo(user)
	}
}

func (s *Scanner) drop(parent, n *node) {
	for _, c := range n.children {
		s.drop(n, c)
	}
	s.unwatch(n)
	s.changed = s.changed || n.wanted()
	delete(parent.children, n.Path)
	delete(s.nodes, n.Path)
	delete(s.pending, n)
	if n.user != nil && n.user.path != n.Path {
		n.user.groups--
	}
}
