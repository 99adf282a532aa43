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
	s.cuts(&p)
	return p.writeTo(w)
}

func (s Status) head(p *page) {
	p.printf("plimsoll %s, %s; cgroup %s, kernel %s\n", s.Version, s.Mode, s.Cgroup, s.Kernel)
	switch s.Mode {
	case Held:
		p.printf("held%s: it measures and writes nothing; %s ends that\n", s.heldLine(),
			Called("`plimsoll resume`", s.Flags))
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
		p.printf("load line: risk %s of the periods, target %s; %s of the requested bursts are granted (with all of "+
			"them: %s)\n", part(r.Now), part(1-r.Target), percent(r.Share), part(r.Asked))
	}
	p.printf("throttles: %s\n", s.Events.line())
	if c := s.Colocation; c != nil {
		p.printf("co-location: %s\n", c.line())
	}
	if w := s.Waits; w != nil {
		p.printf("waits: %s\n", w.line())
	}
	s.requestLines(p)
	if k := s.Kubernetes; k != nil {
		p.printf("kubernetes: %s\n", k.line())
	}
	s.Reserve.lines(p)
	if n := s.NRI; n != nil {
		p.printf("resizes: %s\n", n.line())
	}
	if f := s.Record; f != nil {
		p.printf("record: %s\n", f.line())
	}
	if r := s.Receipts; r != nil {
		p.printf("receipts: %s\n", r.line())
	}
	p.printf("self: CPU %s (%s of one), memory %.1f MiB, %d turns, p99 %s\n", span(s.Self.CPU),
		percent(ratio(s.Self.CPU, s.Now.Sub(s.Started))), float64(s.Self.RSS)/(1<<20), s.Self.Turns,
		span(s.Self.TurnP99))
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
		line += " (" + Printable(s.HeldReason) + ")"
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
		line += fmt.Sprintf("; %s, all ahead of the throttle", several(e.Refills, "refill"))
	case e.Refills > 0:
		line += fmt.Sprintf("; %s, those after a throttle began p50 %s and p99 %s after the begin",
			several(e.Refills, "refill"), span(e.DelayP50), span(e.DelayP99))
	}
	if e.Ineffective > 0 {
		line += fmt.Sprintf("; %s without effect", several(e.Ineffective, "refill"))
	}
	if e.Lost > 0 {
		line += fmt.Sprintf("; %s lost", several(e.Lost, "event"))
	}
	if e.Priority != "" {
		line += "; answered at priority " + e.Priority
	}
	if e.PriorityWhy != "" {
		line += " (" + Printable(e.PriorityWhy) + ")"
	}
	for _, m := range e.Missing {
		line += fmt.Sprintf("; %s, since the part %s is missing: %s", m.Lost, m.Part, Printable(m.Why))
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
	p.printf("\n")
	p.lines(append([]line{{cells: statusHead()}}, s.rows()...))
	p.printf(statusLegend)
}

func statusHead() []string {
	return []string{"NAME", "LIMIT", "QUOTA", "BURST", "USE", "THROTTLED", "LOST", "POLICY"}
}

const statusLegend = "\nQUOTA and BURST are in force now; * = set by Plimsoll. USE: mean, in CPUs; THROTTLED: of " +
	"its periods; LOST: wall time; all since Plimsoll knows it\n"

func (s Status) rows() []line {
	var rows []line
	for _, f := range folded(s.Containers) {
		c := f.Container
		rows = append(rows, line{notes: f.notes(s.Now),
			cells: []string{c.called(), amount(c.Limit) + "/" + amount(c.Period), c.Quota.cell(), c.Burst.cell(),
				c.use(s), c.throttled(), c.lost(), dash(string(c.Strategy.Policy))}})
	}
	return rows
}

// called is the name in a table: a row of a pod among those of containers says so.
func (c Container) called() string {
	if c.Level == "pod" {
		return c.Name + " (pod)"
	}
	return c.Name
}

func (c Container) use(s Status) string {
	if s.Mode == Offline {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio(c.Totals.Usage, s.Now.Sub(c.Since)))
}

// throttled and lost are "-" where no period has been counted: the group slept, or has no limit.
func (c Container) throttled() string {
	if c.Totals.Periods == 0 {
		return "-"
	}
	return percent(float64(c.Totals.Throttled) / float64(c.Totals.Periods))
}

func (c Container) lost() string {
	if c.Totals.Periods == 0 {
		return "-"
	}
	return span(c.Totals.ThrottledWall)
}

// notes are what there is to say below the row of a container.
func (f fold) notes(now time.Time) []string {
	c := f.Container
	var notes []string
	if c.Why != "" {
		notes = append(notes, c.Why+c.set(now))
	}
	switch {
	case c.Paused != nil && c.Released:
		notes = append(notes, "released until "+clock(*c.Paused)+": its limit is left to another writer")
	case c.Paused != nil:
		notes = append(notes, "paused until "+clock(*c.Paused)+": it is kept at its limit")
	}
	notes = append(notes, c.asked()...)
	for _, k := range []struct {
		name plan.Knob
		Knob
	}{{plan.Quota, c.Quota}, {plan.Burst, c.Burst}} {
		if k.Problem != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", k.name, k.Problem))
		}
	}
	if p := f.pod; p != nil {
		if text := p.asPod(); text != "" {
			notes = append(notes, "its pod: "+text)
		}
	}
	return notes
}

// set is when the latest of our values was written.
func (c Container) set(now time.Time) string {
	if ago := c.since(now); ago != "" {
		return " (last written " + ago + ")"
	}
	return ""
}

// asked says where the kernel has another value than the requested one.
func (c Container) asked() []string {
	var list []string
	if c.Quota.Requested != c.Quota.InForce {
		list = append(list, "quota: "+amount(c.Quota.Requested)+" asked, "+amount(c.Quota.InForce)+" in force")
	}
	if c.Burst.Requested != c.Burst.InForce {
		list = append(list, "burst: "+amount(c.Burst.Requested)+" asked, "+amount(c.Burst.InForce)+" in force")
	}
	return list
}

// asPod is what of a pod's own group matters beside its containers: what is changed there, and its own throttles.
func (c Container) asPod() string {
	var parts []string
	if c.Quota.Changed || c.Quota.Requested != c.Quota.InForce {
		parts = append(parts, "limit "+amount(c.Limit)+", quota "+c.Quota.cell())
	}
	if c.Burst.Changed || c.Burst.Problem != "" {
		parts = append(parts, "burst "+c.Burst.cell())
	}
	parts = append(parts, c.asked()...)
	if c.Totals.Throttled > 0 {
		parts = append(parts, "throttled in "+c.throttled()+" of its periods, "+c.lost()+" lost")
	}
	if c.Burst.Problem != "" {
		parts = append(parts, "burst: "+c.Burst.Problem)
	}
	if c.Quota.Problem != "" {
		parts = append(parts, "quota: "+c.Quota.Problem)
	}
	return strings.Join(parts, "; ")
}

// cell is "150ms*": in force, and ours.
func (k Knob) cell() string {
	text := amount(k.InForce)
	if k.Changed {
		text += "*"
	}
	return text
}

// since is how long the latest of our values has been in force.
func (c Container) since(now time.Time) string {
	var last *time.Time
	for _, k := range []Knob{c.Quota, c.Burst} {
		if k.Changed && k.Since != nil && (last == nil || k.Since.After(*last)) {
			last = k.Since
		}
	}
	if last == nil {
		return ""
	}
	return span(now.Sub(*last)) + " ago"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (s Status) problems(p *page) {
	lines := slices.Clone(s.Problems)
	for _, c := range byPath(s.Containers) {
		for _, k := range []struct {
			name plan.Knob
			Knob
		}{{plan.Quota, c.Quota}, {plan.Burst, c.Burst}} {
			if k.Problem != "" && !slices.Contains(s.Problems, k.Problem) {
				lines = append(lines, fmt.Sprintf(ProblemPriority, c.Cgroup, k.name, k.Problem))
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	p.printf("\nproblems:\n")
	for _, line := range lines {
		p.printf("  %s\n", line)
	}
}
