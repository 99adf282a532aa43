package experiment

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/figure"
)

// Curve is a distribution of latencies.
type Curve struct {
	Name   string
	Points []Percentile
}

// Distributions draws latencies over the percentile, which is stretched towards the slowest requests: 90, 99 and 99.9
// are equally far apart. Requests of which half took longer are at the left end.
func Distributions(title, subtitle, note string, curves []Curve) *figure.Canvas {
	const slowest = 0.001 // share of requests at the right end
	top := 0.0
	var lines []figure.Curve
	for _, curve := range curves {
		c := figure.Curve{Name: curve.Name}
		for _, p := range curve.Points {
			if slower := 1 - p.Percent/100; slower >= slowest-1e-9 && slower <= 0.5 {
				c.X, c.Y = append(c.X, slower), append(c.Y, p.Latency)
				top = max(top, p.Latency)
			}
		}
		lines = append(lines, c)
	}
	return figure.Lines{Title: title, Subtitle: subtitle, Note: note, Panels: []figure.Panel{{
		X: figure.Axis{Label: "requests that took longer, %", Min: slowest, Max: 0.5, Log: true, Reversed: true,
			Percent: true,
			Ticks:   []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001}},
		Y:      figure.Axis{Label: "response time, ms", Min: 0, Max: max(top*1.05, 1)},
		Curves: lines,
	}}}.Draw()
}

// Chart draws the latencies of all modes.
func (r *Result) Chart() *figure.Canvas {
	c := r.Conditions
	var curves []Curve
	for _, m := range r.Modes {
		curves = append(curves, Curve{fmt.Sprintf("%s: %s, %.1f %%", m.Name, spell(m.P99), 100*m.ThrottledRatio),
			m.Percentiles})
	}
	return Distributions(fmt.Sprintf("Response time of a service with a limit of %g CPUs", c.Limit),
		fmt.Sprintf("%.0f ms of CPU time a request, %.1f requests a second: %.0f %% of the limit on average. Linux "+
			"%s, cgroup %s, %d CPUs.", c.Work, c.Rate, 100*c.Utilization, c.Kernel, c.Cgroup, c.CPUs),
		"Beside each mode: p99, and the share of the service's periods that were throttled.", curves)
}

// axis maps latencies to columns, logarithmically: a tail that is ten times as long must not hide the rest.
type axis struct {
	lo, hi float64 // milliseconds
	width  int
}

func (a axis) column(ms float64) int {
	at := math.Log(max(ms, a.lo)/a.lo) / math.Log(a.hi/a.lo)
	return int(math.Round(min(at, 1) * float64(a.width-1)))
}

// plot draws one line for each mode, from its median to its p99, for a terminal.
func plot(modes []ModeResult, width int) []byte {
	a := axis{lo: math.Inf(1), width: width}
	for _, m := range modes {
		if m.P99 > 0 {
			a.lo, a.hi = min(a.lo, 0.9*m.P50), max(a.hi, m.P99)
		}
	}
	var page bytes.Buffer
	if a.hi <= a.lo || a.lo <= 0 {
		fmt.Fprintln(&page, "(no request was answered: there is nothing to plot)")
		return page.Bytes()
	}
	for _, m := range modes {
		fmt.Fprintf(&page, "%18s │%s\n", m.Name, a.line(m))
	}
	fmt.Fprintf(&page, "%18s └%s\n%19s %s\n", "", strings.Repeat("─", width), "", a.scale())
	fmt.Fprintf(&page, "%20s● p50  ━┿ p90  ─┤ p99, logarithmic\n", "")
	return page.Bytes()
}

func (a axis) line(m ModeResult) string {
	if m.P99 <= 0 {
		return " no answer"
	}
	p50, p90, p99 := a.column(m.P50), a.column(m.P90), a.column(m.P99)
	cells := []rune(strings.Repeat(" ", p99+1))
	for i := p50; i <= p99; i++ {
		cells[i] = '─'
		if i <= p90 {
			cells[i] = '━'
		}
	}
	cells[p99], cells[p90], cells[p50] = '┤', '┿', '●'
	if p90 == p99 {
		cells[p99] = '┥'
	}
	if p50 == p90 {
		cells[p50] = '●'
	}
	return string(cells)
}

// scale writes round numbers below the axis, as many as have room.
func (a axis) scale() string {
	var text string
	for decade := math.Pow(10, math.Floor(math.Log10(a.lo))); decade <= a.hi; decade *= 10 {
		for _, step := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
			ms := decade * step
			column := a.column(ms)
			if ms < a.lo || ms > a.hi || column < utf8.RuneCountInString(text)+1 && text != "" {
				continue
			}
			text += strings.Repeat(" ", column-utf8.RuneCountInString(text)) + fmt.Sprintf("%g", ms)
		}
	}
	return text + " ms"
}
