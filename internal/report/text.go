package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"plimsoll/internal/plan"
)

// Text writes the snapshot for people.
func (s Status) Text(w io.Writer) error {
	var p page
	s.head(&p)
	s.table(&p)
	s.problems(&p)
	return p.writeTo(w)
}

func (s Status) head(p *page) {
	p.printf("plimsoll %s, %s; cgroup %s, kernel %s\n", s.Version, s.Mode, s.Cgroup, s.Kernel)
	switch s.Mode {
	case Held:
		p.printf("held%s: it measures and writes nothing; `plimsoll resume` ends that\n", s.heldLine())
	case Offline:
		p.printf("no agent runs: this is what the journal and the kernel's files say\n")
		return
	}
	p.printf("running for %s, since %s\n", span(s.Now.Sub(s.Started)), clock(s.Started))
	n := s.Node
	p.printf("node %s: %.2f of %.2f CPUs used, threshold %.2f, %.2f granted above limits (%d CPUs online)\n",
		n.words(), n.Used, n.Capacity, n.Threshold, n.Granted, n.CPUs)
	if line := s.Writes.line(); line != "" {
		p.printf("writes: %s\n", line)
	}
	if r := n.Risk; r != nil {
		p.printf("load line: risk %s of the periods, target %s; %s of the bursts asked for are granted (with all of them: %s)\n",
			part(r.Now), part(1-r.Target), percent(r.Share), part(r.Asked))
	}
	p.printf("throttles: %s\n", s.Events.line())
	if c := s.Colocation; c != nil {
		p.printf("co-location: %s\n", c.line())
	}
	if w := s.Waits; w != nil {
		p.printf("waits: %s\n", w.line())
	}
	if k := s.Kubernetes; k != nil {
		p.printf("kubernetes: %s\n", k.line())
	}
	s.Reserve.lines(p)
	if n := s.NRI; n != nil {
		p.printf("resizes: %s\n", n.line())
	}
	p.printf("self: CPU %s (%s of one), memory %.1f MiB, %d turns, p99 %s\n", span(s.Self.CPU),
		percent(ratio(s.Self.CPU, s.Now.Sub(s.Started))), float64(s.Self.RSS)/(1<<20), s.Self.Turns, span(s.Self.TurnP99))
}

// words are the state; one that is not known yet says what that means.
func (n Node) words() string {
	if n.State == "unknown" {
		return "unknown (not measured yet: nothing is raised)"
	}
	return n.State
}

// heldLine is " since 2026-11-21 12:00:00 (incident-7)".
func (s Status) heldLine() (line string) {
	if s.HeldSince != nil {
		line += " since " + clock(*s.HeldSince)
	}
	if s.HeldReason != "" {
		line += " (" + printable(s.HeldReason) + ")"
	}
	return line
}

// part is a small part of a whole.
func part(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }

// line is "events from eBPF; 12 refills, those after a throttle began p50 80us and p99 300us after the begin".
func (e Events) line() string {
	if !e.Subscribed {
		return "polled for: " + cmp.Or(e.Why, "the kernel sends no events")
	}
	line := "events from eBPF"
	switch {
	case e.Refills > 0 && e.DelayP99 == 0:
		line += fmt.Sprintf("; %d refills, all ahead of the throttle", e.Refills)
	case e.Refills > 0:
		line += fmt.Sprintf("; %d refills, those after a throttle began p50 %s and p99 %s after the begin", e.Refills, span(e.DelayP50), span(e.DelayP99))
	}
	if e.Ineffective > 0 {
		line += fmt.Sprintf("; %d refills without effect", e.Ineffective)
	}
	if e.Lost > 0 {
		line += fmt.Sprintf("; %d events lost", e.Lost)
	}
	if e.Priority != "" {
		line += "; answered at priority " + e.Priority
	}
	for _, m := range e.Missing {
		line += fmt.Sprintf("; %s, since the part %s is missing: %s", m.Lost, m.Part, printable(m.Why))
	}
	return line
}

// line is "quota 12 applied, 1 refused; burst 4 applied".
func (w Writes) line() string {
	knobs := make([]string, 0, len(w.Results))
	for knob := range w.Results {
		knobs = append(knobs, string(knob))
	}
	sort.Strings(knobs)
	var parts []string
	for _, knob := range knobs {
		var counts []string
		for _, o := range plan.Outcomes() {
			if n := w.Results[plan.Knob(knob)][o]; n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", n, o))
			}
		}
		if len(counts) > 0 {
			parts = append(parts, knob+" "+strings.Join(counts, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (s Status) table(p *page) {
	if len(s.Containers) == 0 {
		if s.Mode != Offline || len(s.Problems) == 0 { // else they say what is changed
			p.printf("\nno containers: nothing is changed\n")
		}
		return
	}
	rows := [][]string{{"NAME", "LEVEL", "POLICY", "LIMIT", "QUOTA", "BURST", "SINCE", "PAUSED UNTIL", "WHY"}}
	for _, c := range byPath(s.Containers) {
		rows = append(rows, []string{printable(c.Name), c.Level, dash(string(c.Strategy.Policy)),
			amount(c.Limit) + "/" + amount(c.Period), c.Quota.cell(), c.Burst.cell(), c.since(s.Now), c.paused(),
			dash(printable(c.Why))})
	}
	p.printf("\n")
	p.table(rows)
	p.printf("\nQUOTA and BURST are in force now; * = set by Plimsoll; (asked X) = Plimsoll asked for X, and another value is in force\n")
}

// byPath is a copy in the order of the paths, so that a pod stands before its containers.
func byPath(containers []Container) []Container {
	sorted := append([]Container(nil), containers...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Cgroup < sorted[j].Cgroup })
	return sorted
}

// cell is "150ms* (asked 500ms)": in force, ours, and what was asked for where that differs.
func (k Knob) cell() string {
	text := amount(k.InForce)
	if k.Changed {
		text += "*"
	}
	if k.Requested != k.InForce {
		text += " (asked " + amount(k.Requested) + ")"
	}
	return text
}

// since is how long the latest of our values has been standing.
func (c Container) since(now time.Time) string {
	var last *time.Time
	for _, k := range []Knob{c.Quota, c.Burst} {
		if k.Changed && k.Since != nil && (last == nil || k.Since.After(*last)) {
			last = k.Since
		}
	}
	if last == nil {
		return "-"
	}
	return span(now.Sub(*last)) + " ago"
}

func (c Container) paused() string {
	switch {
	case c.Paused == nil:
		return "-"
	case c.Released:
		return clock(*c.Paused) + " (released)"
	}
	return clock(*c.Paused)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (s Status) problems(p *page) {
	var lines []string
	if !s.ConfigOK && s.Mode != Offline {
		for fault := range strings.SplitSeq(s.ConfigMsg, "\n") {
			lines = append(lines, "configuration: "+fault+" (the last good one is in force)")
		}
	}
	lines = append(lines, s.Problems...)
	for _, c := range byPath(s.Containers) {
		for _, k := range []struct {
			name plan.Knob
			Knob
		}{{plan.Quota, c.Quota}, {plan.Burst, c.Burst}} {
			if k.Problem != "" && !slices.Contains(s.Problems, k.Problem) {
				lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Cgroup, k.name, k.Problem))
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	p.printf("\nproblems:\n")
	for _, line := range lines {
		p.printf("  %s\n", printable(line))
	}
}
