package main

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"

	"plimsoll/lab/experiment"
	"plimsoll/lab/frame"
)

// The aims of the project: the time until a JVM is ready, against unlimited, and the part of it for which it may be
// throttled.
const (
	aimReady = 1.10
	aimStill = 0.10
)

// disturbed is from how many CPUs of others on that seconds say little.
const disturbed = 0.2

// result is what was measured.
type result struct {
	Limit     float64 `json:"limit_cpus"`
	Percent   int64   `json:"cap_percent"`
	Threshold int64   `json:"threshold_percent"`
	Flags     string  `json:"java"`      // more of the JVM's
	Line      float64 `json:"line_cpus"` // up to which the node's use may come
	Cgroup    string  `json:"cgroup"`
	Starts    []start `json:"starts"`
}

// start is one start of a JVM.
type start struct {
	Mode      string        `json:"mode"`
	Ready     time.Duration `json:"ready_ns"` // from its start until it said that it is ready
	Saw       string        `json:"saw"`      // of its limit
	Used      time.Duration `json:"used_ns"`  // CPU time
	Throttles int64         `json:"throttles"`
	Still     time.Duration `json:"throttled_ns"` // wall time for which it was throttled, by throttle events
	Others    float64       `json:"others_cpus"`
	Refills   int64         `json:"refills"` // by the agent, like all that follows
	AtCap     int64         `json:"at_cap"`
	AtCapTime time.Duration `json:"at_cap_ns"`
	Raises    int64         `json:"raises"`
	Why       string        `json:"why"`
}

// median is that of a figure over the starts of a mode.
func (r *result) median(mode string, of func(start) float64) float64 {
	var values []float64
	for _, x := range r.Starts {
		if x.Mode == mode {
			values = append(values, of(x))
		}
	}
	return experiment.Median(values)
}

func ready(x start) float64 { return x.Ready.Seconds() }

func still(x start) float64 { return x.Still.Seconds() / x.Ready.Seconds() }

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	best := r.median(unlimited, ready)
	over := func(mode string, atMost float64) experiment.Figure {
		return experiment.Figure{Name: "time until ready, " + mode + " / unlimited", Value: r.median(mode, ready) / best, AtMost: atMost, Measured: best > 0}
	}
	return []experiment.Figure{over(none, 0), over(auto, aimReady),
		{Name: "part of that time for which it was throttled, none", Value: r.median(none, still), Measured: best > 0},
		{Name: "part of that time for which it was throttled, auto", Value: r.median(auto, still), AtMost: aimStill, Measured: best > 0}}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "A JVM with a limit of %g CPUs%s. In its start it may use %d %% of that as long as the node uses less than %.2f CPUs (%d %%). Cgroup %s.\n\n",
		r.Limit, r.with(), r.Percent, r.Line, r.Threshold, r.Cgroup)
	r.table(page)
	frame.WriteAims(page, r.conclude(), r.Aims())
}

// with names more flags of the JVM.
func (r *result) with() string {
	if r.Flags == "" {
		return ""
	}
	return ", " + r.Flags
}

func (r *result) table(page *bytes.Buffer) {
	rows := [][]string{{"mode", "ready", "CPU time", "throttles", "throttled", "at the cap", "refills", "others"}}
	for _, mode := range modes {
		m := func(form string, of func(start) float64) string { return fmt.Sprintf(form, r.median(mode, of)) }
		rows = append(rows, []string{mode, m("%.2f s", ready), m("%.2f s", func(x start) float64 { return x.Used.Seconds() }),
			m("%.0f", func(x start) float64 { return float64(x.Throttles) }), m("%.2f s", func(x start) float64 { return x.Still.Seconds() }),
			m("%.2f s", func(x start) float64 { return x.AtCapTime.Seconds() }), m("%.0f", func(x start) float64 { return float64(x.Refills) }),
			m("%.2f CPUs", func(x start) float64 { return x.Others })})
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	fmt.Fprintln(page, "Medians. Throttled: wall time from a throttle's begin until a task of the group ran again, by throttle events. At the cap: that of throttles\n"+
		"that the agent may not end. Others: CPUs that the rest of the machine used meanwhile.")
}

// conclude says what has to be known beside the figures.
func (r *result) conclude() []string {
	say := []string{r.sight(), fmt.Sprintf("Unlimited it used %.2f CPUs on average; the agent hands out nothing more when the node uses %.2f.",
		r.median(unlimited, func(x start) float64 { return x.Used.Seconds() / x.Ready.Seconds() }), r.Line)}
	if others := r.median(auto, func(x start) float64 { return x.Others }); others > disturbed {
		say = append(say, fmt.Sprintf("Careful: others used %.2f CPUs meanwhile: try again on a quiet machine.", others))
	}
	return say
}

// sight says whether a JVM beside the agent saw what one without it sees of its limit.
func (r *result) sight() string {
	seen := map[string]bool{}
	for _, x := range r.Starts {
		if x.Mode == none || x.Mode == auto {
			seen[x.Saw] = true
		}
		if x.Raises > 0 {
			return fmt.Sprintf("FAILED: the quota was raised %d times in a start", x.Raises)
		}
	}
	if len(seen) == 1 {
		return "With and without the agent it saw the same of its limit: " + r.Starts[0].Saw + "."
	}
	return fmt.Sprintf("FAILED: with and without the agent it saw different limits: %d of them", len(seen))
}
