package main

import (
	"context"
	"log/slog"

	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/plan"
)

// nameOf is what a group is called; "" where it has no name but its path.
func nameOf(found *cgroupfs.Scanner, group string) string {
	pods, _ := found.Pods() // those known before, after a failed walk
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

func namesOf(found *cgroupfs.Scanner, changes []plan.Change) map[string]string {
	names := map[string]string{}
	for _, c := range changes {
		if name := nameOf(found, c.Cgroup.Path); name != "" {
			names[c.Cgroup.Path] = name
		}
	}
	return names
}

// namesGroups is a handler of a log that adds the name of a container to each line that has its group: the path of a container of
// Docker has 78 letters, and its id is all that it says.
type namesGroups struct {
	slog.Handler
	name func(group string) string
}

func (h namesGroups) Handle(ctx context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "cgroup" && a.Value.Kind() == slog.KindString {
			name = h.name(a.Value.String())
		}
		return name == ""
	})
	if name != "" {
		r.AddAttrs(slog.String("name", name))
	}
	return h.Handler.Handle(ctx, r)
}

func (h namesGroups) WithAttrs(attrs []slog.Attr) slog.Handler {
	return namesGroups{h.Handler.WithAttrs(attrs), h.name}
}

func (h namesGroups) WithGroup(name string) slog.Handler {
	return namesGroups{h.Handler.WithGroup(name), h.name}
}
