package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// The aims of the project.
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

// misses lists the aims that the condition missed.
func (r row) misses() []string {
	var list []string
	if r.Quiet.Throttles == 0 || r.Hostile.Throttles == 0 {
		list = append(list, "nothing was throttled")
	}
	if r.Hostile.P99 > aimRatio*r.Quiet.P99+aimMore {
		list = append(list, "p99")
	}
	if r.Hostile.Missed > 0 {
		list = append(list, fmt.Sprintf("%d throttles lasted", r.Hostile.Missed))
	}
	if r.Hostile.Memory > aimMemory {
		list = append(list, "memory")
	}
	if r.Fault != "" {
		list = append(list, "did not stop")
	}
	return list
}

func (r row) verdict() string {
	if list := r.misses(); len(list) > 0 {
		return "missed: " + strings.Join(list, ", ")
	}
	return "met"
}

// Failed is an error where a condition missed an aim.
func (r *result) Failed() error {
	var errs []error
	for _, row := range r.Rows {
		if list := row.misses(); len(list) > 0 {
			errs = append(errs, fmt.Errorf("condition %s: %s", row.Condition, row.verdict()))
		}
	}
	return errors.Join(errs...)
}

func (r row) line() string { return strings.Join(r.cells(), "  ") }

func (r row) cells() []string {
	ratio := func(hostile, quiet time.Duration) string {
		return fmt.Sprintf("%.1f", experiment.Ratio(hostile, quiet))
	}
	return []string{r.Condition, fmt.Sprint(r.Quiet.Throttles), span(r.Quiet.P50), span(r.Quiet.P99), fmt.Sprint(r.Quiet.Missed),
		fmt.Sprint(r.Hostile.Throttles), span(r.Hostile.P50), span(r.Hostile.P99), fmt.Sprint(r.Hostile.Missed),
		ratio(r.Hostile.P50, r.Quiet.P50), ratio(r.Hostile.P99, r.Quiet.P99),
		fmt.Sprintf("%.0f MiB", float64(max(r.Quiet.Memory, r.Hostile.Memory))/(1<<20)), r.verdict()}
}

func span(d time.Duration) string { return fmt.Sprintf("%.3g ms", experiment.Milliseconds(d)) }

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d victims of %v in 100 ms, each with a job of %v every %v, beside %d idle pods; %g s a window, seed %d, cgroup %s, %d CPUs\n",
		r.Victims, r.Job.Quota, frame.Burn(r.Job.Quota), r.Job.Every, r.Pods, r.Seconds, r.Job.Seed, r.Cgroup, r.CPUs)
	for _, row := range r.Rows {
		fmt.Fprintf(page, "  %-10s %s\n", row.Condition, row.What)
	}
	rows := [][]string{
		{"", "quiet", "begin to write", "", "", "hostile", "begin to write", "", "", "ratio", "", "memory", ""},
		{"condition", "throttles", "p50", "p99", "missed", "throttles", "p50", "p99", "missed", "p50", "p99", "peak", "aim"},
	}
	for _, row := range r.Rows {
		rows = append(rows, row.cells())
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	fmt.Fprintf(page, "Throttles: those that may be ended (not at the cap). Missed: lasted to their period's end.\n"+
		"Aim: p99 at most %d times the quiet one and %v more, none missed, at most %d MiB.\n", aimRatio, aimMore, aimMemory>>20)
	for _, row := range r.Rows {
		if row.Fault != "" {
			fmt.Fprintf(page, "Careful: %s: %s\n", row.Condition, row.Fault)
		}
	}
}
