package meter

import (
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
)

// The groups beside the subjects.
//
// Problem: a neighbour is named by its own group, so each group outside of containers has a number. A user to whom root
// has given a group makes groups in it without end, and the numbers are few (4,096).
//
// Approach: in a group that belongs to a user some groups are told apart; the others count for the user's group. The
// last quarter of the numbers is for subjects alone.

// mostOfUser is how many groups are told apart in one that belongs to a user.
const mostOfUser = 256

// numberNeighbours numbers the groups beside the subjects, and frees the numbers of those that are gone: a subject that
// waited for such a group still knows its name.
func (m *Meter) numberNeighbours() {
	there := map[uint64]bool{}
	m.walk("/", there, nil)
	for _, s := range m.subjects {
		there[s.inode] = true // its sums are still to be read
	}
	for inode := range m.seen {
		if !there[inode] && m.probe.Forget(inode) == nil {
			delete(m.seen, inode)
		}
	}
}

// walk numbers the groups in a group. user counts those of the user to whom it belongs; nil: it is root's.
func (m *Meter) walk(group string, there map[uint64]bool, user *int) {
	children, err := m.tree.Children(group)
	if err != nil {
		return // it is gone
	}
	for _, c := range children {
		if user != nil {
			if *user == mostOfUser {
				return
			}
			*user++
		}
		inode, err := m.tree.Inode(c)
		if err != nil {
			continue
		}
		there[inode] = true
		m.numberNeighbour(c, inode)
		if m.opaque[c] {
			continue
		}
		inside := user
		if inside == nil && m.tree.Owner(c) != 0 {
			inside = new(int)
		}
		m.walk(c, there, inside)
	}
}

func (m *Meter) numberNeighbour(group string, inode uint64) {
	if m.seen[inode] {
		return
	}
	if len(m.seen) >= m.most {
		m.tableFull = true
		return
	}
	one, is := m.known[group]
	if !is {
		one = report.Container{Cgroup: group, Name: group}
	}
	_, _ = m.set(one, runq.Group{Inode: inode, CPUs: m.tree.AllowedCPUs(group, m.online)}) // a full table is noted
}
