package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// The aims of the project: a p99 of at most so many times the quiet one and so much more, and no more memory.
const (
	aimRatio  = 2
	aimMore   = time.Millisecond
	aimMemory = 160 << 20 // the limit of the agent's container in the chart (resources.limits.memory)
)

// result is what was measured.
type result struct {
	*settings
	frame.Machine
	Seconds float64 `json:"seconds"`
	Rows    []row   `json:"conditions"`
}

// row is one condition.
type row struct {
	Condition string  `json:"condition"`
	What      string  `json:"what"`
	Quiet     outcome `json:"quiet"`
	Hostile   outcome `json:"hostile"`
	Fault     string  `json:"fault,omitempty"` // the agent had to be killed
}

// Aims are the p99 of each condition, and the worst of all conditions.
func (r *result) Aims() []experiment.Figure {
	var list []experiment.Figure
	fewest, lasted, most, faults := math.Inf(1), 0, int64(0), 0
	for _, row := range r.Rows {
		list = append(list, experiment.Figure{Name: "p99 in ms, " + row.Condition,
			Value:  experiment.Milliseconds(row.Hostile.P99),
			AtMost: experiment.Milliseconds(aimRatio*row.Quiet.P99 + aimMore), Measured: true})
		fewest = min(fewest, float64(row.Quiet.Throttles), float64(row.Hostile.Throttles))
		lasted, most = lasted+len(row.Hostile.Missed), max(most, row.Hostile.Memory)
		if row.Fault != "" {
			faults++
		}
	}
	return append(list, experiment.Figure{Name: "throttles in a window, fewest", Value: fewest, AtLeast: 1,
		Measured: true},
		experiment.Figure{Name: "throttles that lasted to their period's end", Value: float64(lasted), None: true,
			Measured: true},
		experiment.Figure{Name: "memory in MiB, most", Value: float64(most) / (1 << 20), AtMost: aimMemory >> 20,
			Measured: true},
		experiment.Figure{Name: "agents that did not stop", Value: float64(faults), None: true, Measured: true})
}

// explain says when the machine stood still, which throttles were missed, and what the agent refused meanwhile, of all
// groups.
func (o outcome) explain(page *bytes.Buffer, when string) {
	if o.Stalls > 0 {
		fmt.Fprintf(page, "Stalls %s: %d, the longest of %s\n", when, o.Stalls, span(o.Longest))
	}
	for _, m := range o.Missed {
		fmt.Fprintf(page, "Missed %s: %v\n", when, m)
	}
	if len(o.Missed) > 0 {
		fmt.Fprintf(page, "The agent refused %s: %s\n", when, counts(o.Refused))
	}
}

func counts(of map[string]int64) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[kind], kind))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

func (r row) line() string { return strings.Join(r.cells(), "  ") }

func (r row) cells() []string {
	ratio := func(hostile, quiet time.Duration) string {
		return fmt.Sprintf("%.1f", experiment.Ratio(hostile, quiet))
	}
	return []string{r.Condition, fmt.Sprint(r.Quiet.Throttles), span(r.Quiet.P50), span(r.Quiet.P99),
		fmt.Sprint(len(r.Quiet.Missed)), percent(r.Quiet.Stolen),
		fmt.Sprint(r.Hostile.Throttles), span(r.Hostile.P50), span(r.Hostile.P99), fmt.Sprint(len(r.Hostile.Missed)),
		percent(r.Hostile.Stolen),
		ratio(r.Hostile.P50, r.Quiet.P50), ratio(r.Hostile.P99, r.Quiet.P99),
		fmt.Sprintf("%.0f MiB", float64(max(r.Quiet.Memory, r.Hostile.Memory))/(1<<20))}
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func span(d time.Duration) string { return fmt.Sprintf("%.3g ms", experiment.Milliseconds(d)) }

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d victims of %v in 100 ms, each with a job of %v every %v, beside %d idle pods; %g s a "+
		"window, seed %d, cgroup %s, %d CPUs\n", r.Victims, r.Job.Quota, frame.Burn(r.Job.Quota), r.Job.Every, r.Pods,
		r.Seconds, r.Job.Seed, r.Cgroup, r.CPUs)
	for _, row := range r.Rows {
		fmt.Fprintf(page, "  %-10s %s\n", row.Condition, row.What)
	}
	rows := [][]string{
		{"", "quiet", "begin to write", "", "", "", "hostile", "begin to write", "", "", "", "ratio", "", "memory"},
		{"condition", "throttles", "p50", "p99", "missed", "stolen", "throttles", "p50", "p99", "missed", "stolen",
			"p50", "p99", "peak"},
	}
	for _, row := range r.Rows {
		rows = append(rows, row.cells())
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	fmt.Fprintf(page, "Throttles: those that may be ended (not at the cap). Missed: lasted to their period's end. "+
		"Stolen: what a hypervisor gave to others. Stall: a CPU ran no real-time thread for 2 ms and more.\n")
	frame.WriteAims(page, nil, r.Aims())
	for _, row := range r.Rows {
		if row.Fault != "" {
			fmt.Fprintf(page, "Careful: %s: %s\n", row.Condition, row.Fault)
		}
		row.Quiet.explain(page, "in quiet, before "+row.Condition)
		row.Hostile.explain(page, "beside "+row.Condition)
	}
}
