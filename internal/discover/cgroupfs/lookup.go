package cgroupfs

import (
	"sort"
	"time"
)

// lookupEvery is the shortest time between two lookups of one group because of events. It is also how long after the
// last write to its limit the group is looked up once more: runc writes the kernel first, and then its own state.
const lookupEvery = time.Second

// lookup holds the times of a group's last lookup and of its last change.
type lookup struct{ asked, doubted time.Time }

// doubt notes that the facts about a group may change.
func (s *Scanner) doubt(n *node) {
	n.lookup.doubted = s.opt.Now()
	s.pending[n] = true
}

// lookUpPending looks up the groups whose facts may have changed.
func (s *Scanner) lookUpPending() {
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
		if now.Sub(n.lookup.asked) < lookupEvery {
			continue
		}
		if now.Sub(n.lookup.doubted) >= lookupEvery {
			delete(s.pending, n)
		}
		changed = s.ask(n) || changed
	}
	if changed {
		s.renew()
	}
}

// ask updates the facts about a group, and says whether they changed: then the snapshot must be renewed.
func (s *Scanner) ask(n *node) bool {
	first := n.lookup.asked.IsZero()
	n.lookup.asked = s.opt.Now()
	if n.place.Kind == Plain {
		return false // only the group's own files have the limit of a plain group
	}
	now, err := s.tree.Bandwidth(n.Path)
	if err != nil {
		return false // gone, or not yet under the cpu controller
	}
	old := n.facts
	sources := s.opt.Sources
	if n.delegated() { // the files are of root's engines; systemd compares the path of the unit
		sources = Sources{Systemd: sources.Systemd}
	}
	n.facts = sources.lookUp(n.place, n.Path, now, old)
	if !first && !old.declared.Equal(n.facts.declared) {
		s.news = append(s.news, Event{Kind: Redeclared, Path: n.Path})
	}
	return !old.declared.Equal(n.facts.declared) || old.name != n.facts.name || old.pod != n.facts.pod ||
		old.runtime != n.facts.runtime
}
