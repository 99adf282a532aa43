package cgroupfs

import "plimsoll/internal/plan"

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
