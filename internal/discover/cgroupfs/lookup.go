package cgroupfs

import (
	"sort"
	"time"

	"plimsoll/internal/workload"
)

// lookEvery is how often at most the Sources are asked about one group because of events, and how long after the last
// write to its limit they are asked once more: runc writes the kernel first and its own state then.
const lookEvery = time.Second

// look is the state of the questions about one group.
type look struct{ asked, doubted time.Time }

// Refresh asks anew what the declared limit of a group is, now. It is for a value that the caller did not expect.
func (s *Scanner) Refresh(group string) *workload.Declared {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[group]
	if n == nil || s.chosen[n.ID] == nil {
		return nil
	}
	if s.ask(n) {
		s.renew()
	}
	return n.facts.declared
}

// doubt notes that the facts about a group may change.
func (s *Scanner) doubt(n *node) {
	n.look.doubted = s.opt.Now()
	s.pending[n] = true
}

// lookAgain asks about the groups in doubt.
func (s *Scanner) lookAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		return
	}
	list := make([]*node, 0, len(s.pending))
	for n := range s.pending {
		list = append(list, n)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	now, changed := s.opt.Now(), false
	for _, n := range list {
		if now.Sub(n.look.asked) < lookEvery {
			continue
		}
		if now.Sub(n.look.doubted) >= lookEvery {
			delete(s.pending, n)
		}
		changed = s.ask(n) || changed
	}
	if changed {
		s.renew()
	}
}

// ask brings the facts about a group up to date, and says whether they changed: then the snapshot is to be renewed.
func (s *Scanner) ask(n *node) bool {
	first := n.look.asked.IsZero()
	n.look.asked = s.opt.Now()
	if n.place.Kind == Plain {
		return false // nobody but its files knows the limit of a plain group
	}
	s.stats.Lookups++
	now, err := s.tree.Bandwidth(n.Path)
	if err != nil {
		return false // gone, or not yet under the cpu controller
	}
	old := n.facts
	n.facts = s.opt.Sources.look(n.place, n.Path, now, old)
	if !first && !old.declared.Equal(n.facts.declared) {
		s.news = append(s.news, Event{Kind: Redeclared, Path: n.Path})
	}
	return !old.declared.Equal(n.facts.declared) || old.name != n.facts.name || old.pod != n.facts.pod ||
		old.runtime != n.facts.runtime
}
