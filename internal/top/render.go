package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"plimsoll/internal/printable"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// Render draws the screen: Height lines of at most Width columns.
func (m Model) Render() string {
	m.Width, m.Height = max(m.Width, 20), max(m.Height, 8)
	head := m.head()
	var body, foot []string
	switch {
	case m.help:
		body = m.helpLines()
	case m.view == nil:
		body = []string{cut("waiting for the first snapshot", m.Width)}
	case m.open != "":
		body, foot = m.detail(m.Height-len(head)-1), []string{m.keys("esc back  up/down next container  q quit")}
	default:
		foot = m.why()
		body = m.table(m.Height - len(head) - len(foot) - 1)
	}
	if foot == nil {
		foot = []string{m.keys("q quit")}
	}
	lines := append(head, body...)
	room := max(0, m.Height-len(foot))
	lines = lines[:min(len(lines), room)]
	for len(lines) < room {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, foot...), "\n")
}

// Once is the table as text, with all rows and without a cursor, for a pipe.
func (m Model) Once() string {
	m.at = ""
	m.Height = len(m.rows()) + len(m.head()) + 1
	lines := append(m.head(), m.table(m.Height)...)
	lines = append(lines, "", "LIMIT, USE, PEAK, QUOTA in CPUs; * the quota is not the limit; - not measured",
		"LOST, THR (periods throttled), REFILL in the "+m.window())
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// head is the sentence and the node.
func (m Model) head() []string {
	if m.view == nil {
		return m.loss(nil)
	}
	v := m.view
	style, yellow := lipgloss.NewStyle().Bold(true), lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	if v.Mode == report.Held {
		style = style.Foreground(lipgloss.Yellow)
	}
	var lines []string
	for _, part := range wrap(printable.Text(v.Sentence), m.Width, 3) {
		lines = append(lines, m.paint(style, part))
	}
	n := v.Mark.Node
	node := fmt.Sprintf("%s %s: %.2f of %.2f CPUs used, threshold %.2f, %.2f granted above limits",
		printable.Text(v.Node), n.State, n.Used, n.Capacity, n.Threshold, n.Granted)
	if n.Risk != nil {
		node += fmt.Sprintf(", risk %.3g %%", 100*n.Risk.Now)
	}
	lines = append(lines, wrap(node, m.Width, 2)...)
	switch {
	case v.Mode == report.Held:
		held := report.Called("held: nothing is written until `plimsoll resume`; reason: ", v.Flags) +
			printable.Text(cmp.Or(v.HeldReason, "none given"))
		lines = append(lines, m.paint(yellow, cut(held, m.Width)))
	case v.Mark.Changed > 0:
		changed := fmt.Sprintf("%d files changed", v.Mark.Changed)
		if v.Mark.Undo != "" { // in a cluster each node has its own
			changed += "; undo: " + printable.Text(v.Mark.Undo)
		}
		lines = append(lines, cut(changed, m.Width))
	}
	for i, p := range v.Problems {
		if i == 2 && len(v.Problems) > 3 {
			lines = append(lines, fmt.Sprintf("and %d more problems: ",
				len(v.Problems)-i)+report.Called("`plimsoll status`", v.Flags))
			break
		}
		lines = append(lines, m.paint(yellow, cut("problem: "+printable.Text(p), m.Width)))
	}
	return append(m.loss(lines), "")
}

// window is the time that a figure of the last minute is of: less after a start.
func (m Model) window() string {
	if m.view.Window >= view.Window {
		return "last minute"
	}
	return fmt.Sprintf("last %.0f s", m.view.Window.Seconds())
}

// loss says above all that there is no agent.
func (m Model) loss(lines []string) []string {
	if m.lost == "" {
		return lines
	}
	text := "NO AGENT since " + clock(m.lostAt, m.lostNow) + ": " + printable.Text(m.lost)
	if m.view != nil {
		text += "; below is how it was at " + clock(m.view.Now, m.lostNow)
	}
	var out []string
	for _, part := range wrap(text, m.Width, 2) {
		out = append(out, m.paint(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red), part))
	}
	return append(out, lines...)
}

// column is one of the table.
type column struct {
	title string
	width int // of a figure; negative: of a word, which begins where the column begins
	cell  func(view.Row) string
}

// columns are as many as the width has room for; the name has the rest.
func (m Model) columns() (name int, list []column) {
	if m.nodes != nil {
		list = append(list, column{"NODE", -max(8, min(20, m.Width/7)),
			func(r view.Row) string { return printable.Text(m.nodes[r.ID]) }})
	}
	list = append(list, []column{
		{"LIMIT", 6, func(r view.Row) string { return perPeriod(r.Limit, r.Period, "none") }},
		{"USE", 5, func(r view.Row) string { return number(r.Used) }},
		{"PEAK", 5, func(r view.Row) string { return number(r.Peak) }},
		{"LOST", 7, func(r view.Row) string { return length(r.Lost) }},
		{"THR", 5, func(r view.Row) string { return count(r.Throttled) }},
		{"REFILL", 6, func(r view.Row) string { return count(r.Refills) }},
	}...)
	if measured := slices.ContainsFunc(m.view.Rows, func(r view.Row) bool { return r.Requests != nil }); measured {
		p99 := column{"P99", 6, response}
		if m.Width < 90 && m.nodes == nil {
			list[slices.IndexFunc(list, func(c column) bool { return c.title == "PEAK" })] = p99
		} else {
			list = append(list, p99)
		}
	}
	if m.nodes != nil && m.Width < 100 {
		list = slices.DeleteFunc(list, func(c column) bool { return c.title == "PEAK" || c.title == "REFILL" })
	}
	if m.Width >= 110 {
		list = append(list, column{"TOKENS", 7, func(r view.Row) string { return length(r.Tokens) }},
			column{"BURST", 7, burst})
	}
	list = append(list, column{"QUOTA ", 6, quota},
		column{"CAUSE", -11, func(r view.Row) string { return string(r.Cause) }})
	name = m.Width
	for _, c := range list {
		name -= max(c.width, -c.width) + 1
	}
	return max(name, 8), list
}

// quota is in CPUs, with a star where it is not the limit.
func quota(r view.Row) string {
	text := perPeriod(r.Quota, r.Period, "none")
	if r.Quota != nil && r.Limit != nil && *r.Quota != *r.Limit {
		return text + "*"
	}
	return text + " "
}

// told says whether there are response times.
func told(r *report.RequestWindow) bool { return r != nil && r.Answered > 0 && !r.Withheld }

// response is the time that the slowest hundredth of the requests took at least.
func response(r view.Row) string {
	if !told(r.Requests) {
		return "-"
	}
	return length(&r.Requests.Response.P99)
}

// burst is in force where there is a limit.
func burst(r view.Row) string {
	if r.Limit == nil {
		return "-"
	}
	return length(&r.Burst)
}

// table draws as many rows as there is room for, around the cursor.
func (m Model) table(room int) []string {
	name, columns := m.columns()
	head := pad("NAME", name)
	for _, c := range columns {
		head += " " + c.set(c.title)
	}
	lines := []string{m.paint(lipgloss.NewStyle().Underline(true), cut(head, m.Width))}
	rows := m.rows()
	if len(rows) == 0 {
		return append(lines, cut("no container"+m.filtered(), m.Width))
	}
	room = max(1, room-1)
	first := min(max(0, m.index(rows)-room/2), max(0, len(rows)-room))
	for _, r := range rows[first:min(len(rows), first+room)] {
		mark := " "
		if r.ID == m.at {
			mark = ">"
		}
		line := mark + pad(report.Middle(printable.Text(r.Name), name-1), name-1)
		for _, c := range columns {
			line += " " + c.set(c.cell(r))
		}
		lines = append(lines, m.paint(rowStyle(r, r.ID == m.at), cut(line, m.Width)))
	}
	return lines
}

func rowStyle(r view.Row, here bool) lipgloss.Style {
	s := lipgloss.NewStyle().Reverse(here)
	switch full := []view.Cause{view.AtCap, view.LoadLine, view.ExtraCores, view.Guard, view.Budget, view.Refused}; {
	case slices.Contains(full, r.Cause):
		s = s.Foreground(lipgloss.Red)
	case r.Lost != nil && *r.Lost > 0:
		s = s.Foreground(lipgloss.Yellow)
	}
	return s
}

func (m Model) filtered() string {
	if m.filter == "" {
		return ""
	}
	return " has " + printable.Text(m.filter)
}

// why is the foot of the table: the reason of the row under the cursor, and the keys.
func (m Model) why() []string {
	foot := []string{"", ""}
	rows := m.rows()
	if i := m.index(rows); i >= 0 {
		parts := wrap(m.sentence(rows[i]), m.Width, 2)
		copy(foot, parts)
	}
	if m.typing {
		return append(foot, cut("/"+printable.Text(m.filter)+"_   enter keeps it, esc drops it", m.Width))
	}
	keys := "sort: l lost  u use  t throttled  n name   / filter  enter strip  ? help  q quit"
	if m.filter != "" {
		keys = "filter /" + printable.Text(m.filter) + "  esc drops it  " + keys
	}
	return append(foot, m.keys(keys))
}

// sentence is what there is to say of a row.
func (m Model) sentence(r view.Row) string {
	var parts []string
	if r.Problem != "" {
		parts = append(parts, "problem: "+r.Problem)
	}
	if r.Paused != nil {
		parts = append(parts, "paused until "+clock(*r.Paused, m.view.Now))
	}
	if r.Why != "" {
		parts = append(parts, r.Why)
	}
	if len(parts) == 0 {
		parts = []string{"no decision yet"}
	}
	return printable.Text(r.Name + ": " + strings.Join(parts, "; "))
}

func (m Model) keys(text string) string {
	return m.paint(lipgloss.NewStyle().Faint(true), cut(text, m.Width))
}

// paint lays a style over a line, where there are colours.
func (m Model) paint(s lipgloss.Style, line string) string {
	if !m.Colour {
		return line
	}
	return s.Render(line)
}

func (m Model) helpLines() []string {
	lines := []string{
		"LIMIT, QUOTA   CPUs; a star: the quota is not the limit now",
		"USE, PEAK      CPUs: mean of the last second, and the most in one period",
		"LOST           wall time for which it stood still, in the last minute",
		"THR, REFILL    periods throttled, and refills, in the last minute",
		"TOKENS, BURST  CPU time saved, and the most that may be saved",
		"P99            response time, of the last whole minute (run --requests)",
		"CAUSE          why it stands still; - is not measured, and not 0",
		"",
		"l u t p n  sort by lost, use, throttled, P99, name   / filter by part of a name",
		"up down pgup pgdn home end  move                enter a container's periods",
		"esc      back                                   q quit",
	}
	for i := range lines {
		lines[i] = cut(lines[i], m.Width)
	}
	return lines
}
