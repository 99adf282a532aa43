package top

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"plimsoll/internal/printable"
	"plimsoll/internal/view"
)

// bars are the eighths of a cell.
const bars = " ▁▂▃▄▅▆▇█"

// axis is the width of the labels at the left of a strip.
const axis = 9

// detail is one container: its figures, its periods, its why.
func (m Model) detail(room int) []string {
	r := m.row()
	if r == nil {
		return []string{cut("this container is gone: esc", m.Width)}
	}
	lines := []string{
		m.paint(lipgloss.NewStyle().Bold(true), cut(printable.Text(r.Name), m.Width)),
		cut(fmt.Sprintf("limit %s CPUs, quota %s, burst %s, tokens %s, policy %s", perPeriod(r.Limit, r.Period, "none"),
			strings.TrimSpace(quota(*r)), burst(*r),
			length(r.Tokens), printable.Text(r.Policy)), m.Width),
		cut(fmt.Sprintf("used %s CPUs, peak %s; %s: %s lost, %s throttled, %s refills", number(r.Used), number(r.Peak),
			m.window(),
			length(r.Lost), count(r.Throttled), count(r.Refills)), m.Width),
	}
	if q := r.Requests; q != nil && q.Answered+q.Doubtful > 0 {
		lines = append(lines, wrap("requests of the last minute: "+q.Line(), m.Width, 2)...)
	}
	why := wrap(m.sentence(*r), m.Width, 3)
	const fixed = 5 // marks, tokens, time, and empty lines around
	height := min(max(room-len(lines)-len(why)-fixed, 3), 12)
	lines = append(append(lines, ""), m.strip(height)...)
	return append(append(lines, ""), why...)
}

// strip draws the last periods, the newest at the right: use as bars, the quota as a line where no bar hides it, then a
// line of marks and one of tokens.
func (m Model) strip(height int) []string {
	p := m.periods
	n := min(len(p.End), m.Width-axis)
	if n <= 0 && m.unread != "" {
		return wrap(printable.Text("no periods: "+m.unread), m.Width, 2)
	}
	if n <= 0 {
		return []string{cut("no period yet: while a group sleeps, its periods stand still", m.Width)}
	}
	from := len(p.End) - n
	most := int32(1)
	tokens := int32(1)
	for i := from; i < len(p.End); i++ {
		most = max(most, p.Used[i], p.Quota[i])
		tokens = max(tokens, p.Tokens[i])
	}
	lines := make([]string, 0, height+3)
	for row := height; row > 0; row-- {
		label := ""
		switch row {
		case height:
			label = cpus(most, p.Length)
		case 1:
			label = "0"
		}
		var b strings.Builder
		for i := from; i < len(p.End); i++ {
			b.WriteRune(cell(p.Used[i], p.Quota[i], most, row, height))
		}
		lines = append(lines, fmt.Sprintf("%*s ", axis-1, label)+m.paint(lipgloss.NewStyle().Foreground(lipgloss.Cyan),
			b.String()))
	}
	var marks, saved strings.Builder
	known := false
	for i := from; i < len(p.End); i++ {
		marks.WriteString(mark(p.Throttles[i], p.Lost[i], p.Refills[i]))
		known = known || p.Tokens[i] >= 0
		saved.WriteRune(level(p.Tokens[i], tokens, 8))
	}
	lines = append(lines, fmt.Sprintf("%*s ", axis-1, "x r")+m.paint(lipgloss.NewStyle().Foreground(lipgloss.Red),
		marks.String()))
	if known {
		lines = append(lines, fmt.Sprintf("%*s ", axis-1, "tokens")+saved.String())
	}
	span := time.Duration(p.End[len(p.End)-1]-p.End[from])*time.Millisecond + p.Length
	return append(lines, cut(fmt.Sprintf("%*s the last %s, in periods of %s; x throttled, r refilled, ─ quota", axis-1,
		"", span.Round(100*time.Millisecond), p.Length), m.Width))
}

// cell is one of a bar: row 1 is the lowest.
func cell(used, quota, most int32, row, height int) rune {
	eighths := int(int64(used)*int64(8*height)/int64(most)) - 8*(row-1)
	if eighths > 0 {
		return []rune(bars)[min(eighths, 8)]
	}
	if quota > 0 && (int64(quota)*int64(height)-1)/int64(most) == int64(row-1) {
		return '─'
	}
	return ' '
}

// level is a bar of one cell.
func level(v, most int32, eighths int) rune {
	if v < 0 {
		return ' '
	}
	return []rune(bars)[min(int(int64(v)*int64(eighths)/int64(most)), eighths)]
}

// mark is what happened in a period.
func mark(throttles, lost, refills int32) string {
	switch {
	case throttles > 0 && refills == 0 || lost > 0:
		return "x"
	case refills > 0:
		return "r"
	}
	return " "
}

func cpus(us int32, period time.Duration) string {
	if period <= 0 {
		return fmt.Sprintf("%dus", us)
	}
	return fmt.Sprintf("%.2f", float64(us)*1000/float64(period))
}

// outOfOrder is by how many milliseconds two readings that overtook each other may be apart.
const outOfOrder = 1000

// Append adds periods to those that are known, and keeps the last so many. Those that are known go where the clock was
// set back.
func Append(p, more view.Periods, most int) view.Periods {
	if n, k := len(p.End), len(more.End); n > 0 && k > 0 && more.End[k-1] < p.End[n-1]-outOfOrder {
		p = view.Periods{}
	}
	keep := func(a, b []int32) []int32 {
		list := append(append([]int32{}, a...), b...)
		return list[max(0, len(list)-most):]
	}
	ends := append(append([]int64{}, p.End...), more.End...)
	return view.Periods{Length: more.Length, End: ends[max(0, len(ends)-most):], Used: keep(p.Used, more.Used),
		Quota:  keep(p.Quota, more.Quota),
		Tokens: keep(p.Tokens, more.Tokens), Throttles: keep(p.Throttles, more.Throttles), Lost: keep(p.Lost,
			more.Lost), Refills: keep(p.Refills, more.Refills)}
}
