package view

import (
	"cmp"
	"fmt"
	"strings"

	"plimsoll/internal/report"
)

// mark is the state of the node.
func mark(s report.Status) Mark {
	m := Mark{Node: s.Node, Features: features(s), Changed: changed(s)}
	if m.Changed > 0 {
		m.Undo = strings.Trim(report.Called("`plimsoll restore`", s.Flags), "`")
	}
	return m
}

// changed counts the files that hold a value of the agent's.
func changed(s report.Status) int {
	n := 0
	count := func(is bool) {
		if is {
			n++
		}
	}
	for i := range s.Containers {
		count(s.Containers[i].Quota.Changed)
		count(s.Containers[i].Burst.Changed)
	}
	if s.Colocation != nil {
		for _, k := range s.Colocation.Knobs {
			count(k.InForce && k.Have != k.Original)
		}
	}
	if s.Reserve != nil {
		n += s.Reserve.Changed
	}
	return n
}

// features says in words what the kernel does for the agent, and what it does not.
func features(s report.Status) []Feature {
	e := s.Events
	list := []Feature{{Name: "throttle-events", OK: e.Subscribed,
		Text: "the kernel reports each throttle as it begins"}}
	if !e.Subscribed {
		list[0].Text = "throttles are polled for, and answered late: " + cmp.Or(e.Why, "the kernel sends no events")
		return append(list, others(s)...)
	}
	if e.Lost > 0 {
		list[0].Text += fmt.Sprintf("; %d reports were lost", e.Lost)
	}
	missing := map[string]report.MissingPart{}
	for _, m := range e.Missing {
		missing[m.Part] = m
	}
	for _, part := range []struct{ name, text string }{
		{"periods", "each period of a limited container is recorded"},
		{"forecast", "throttles are foreseen, and prevented"},
		{"balance", "reports say what a container has used and has left"},
		{"wakeups", "throttles that begin as a task wakes are reported at once"},
	} {
		f := Feature{Name: part.name, Text: part.text, OK: true}
		if m, lacks := missing[part.name]; lacks {
			f.OK, f.Text = false, m.Lost+": "+m.Why
		}
		list = append(list, f)
	}
	refills := Feature{Name: "refills", OK: e.RefillsOff == nil, Text: "a write of the quota ends a throttle"}
	if !refills.OK {
		refills.Text = "a write of the quota does not end a throttle here: quotas are raised instead"
	}
	list = append(list, refills)
	if e.Priority != "" {
		f := Feature{Name: "priority", OK: e.PriorityWhy == "",
			Text: "throttles are answered at priority " + e.Priority}
		if !f.OK {
			f.Text += ": " + e.PriorityWhy
		}
		list = append(list, f)
	}
	return append(list, others(s)...)
}

// others are the features that only some ask for.
func others(s report.Status) []Feature {
	var list []Feature
	if w := s.Waits; w != nil {
		f := Feature{Name: "waits", OK: w.Problem == "", Text: "what containers wait for is measured"}
		if !f.OK {
			f.Text = "what containers wait for is not measured: " + w.Problem
		}
		list = append(list, f)
	}
	if r := s.Requests; r != nil {
		f := Feature{Name: "requests", OK: r.Problem == "", Text: "response times are measured"}
		if !f.OK {
			f.Text = "response times are not measured: " + r.Problem
		}
		list = append(list, f)
	}
	if c := s.Colocation; c != nil {
		list = append(list, Feature{Name: "co-location", OK: c.InForce(),
			Text: fmt.Sprintf("%s: %s", c.Mechanism, c.Why)})
	}
	return list
}
