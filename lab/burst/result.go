package main

import (
	"bytes"
	"fmt"
	"math"
	"text/tabwriter"

	"plimsoll/lab/experiment"
)

// Schema names the format of the JSON. Fields are added, never renamed, within a version.
const schema = "plimsoll.lab.burst/v1"

// normal is how many standard errors a 95 % interval reaches to either side.
const normal = 1.96

// result is what was found.
type result struct {
	Schema string  `json:"schema"`
	Kernel string  `json:"kernel"`
	Work   float64 `json:"work_ms"` // CPU time of a request
	Limit  float64 `json:"limit_cpus"`
	Rounds int     `json:"rounds"`
	Rows   []row   `json:"rows"`
}

// row is one mode with so many requests at once.
type row struct {
	AtOnce int     `json:"at_once"`
	Mode   string  `json:"mode"`
	Mean   float64 `json:"mean_ms"`        // until all were answered
	Later  float64 `json:"later_ms"`       // than without a limit
	Within float64 `json:"later_error_ms"` // the 95 % interval is that much to either side
	Agent  float64 `json:"agent_cpu_ms"`   // in a burst
}

// summarize compares each mode with the first in the same round.
func summarize(all []burst) []row {
	var rows []row
	for atOnce := 1; atOnce <= mostAtOnce; atOnce++ {
		base := means(all, modes()[0], atOnce)
		for _, mode := range modes() {
			r := row{AtOnce: atOnce, Mode: string(mode)}
			var later []float64
			for round, mine := range means(all, mode, atOnce) {
				r.Mean += mine.took
				r.Agent += mine.agent
				later = append(later, mine.took-base[round].took)
			}
			if n := float64(len(later)); n > 0 {
				r.Mean, r.Agent = r.Mean/n, r.Agent/n
			}
			r.Later, r.Within = interval(later)
			rows = append(rows, r)
		}
	}
	return rows
}

// mean is that of the bursts of a round, in milliseconds.
type mean struct{ took, agent float64 }

// means are those of a mode, by round.
func means(all []burst, mode experiment.Mode, atOnce int) map[int]mean {
	of := map[int][]burst{}
	for _, b := range all {
		if b.mode == mode && b.atOnce == atOnce {
			of[b.round] = append(of[b.round], b)
		}
	}
	list := map[int]mean{}
	for round, bursts := range of {
		var m mean
		for _, b := range bursts {
			m.took += experiment.Milliseconds(b.took) / float64(len(bursts))
			m.agent += experiment.Milliseconds(b.agent) / float64(len(bursts))
		}
		list[round] = m
	}
	return list
}

// interval is the mean of some values, and how far its 95 % interval reaches.
func interval(values []float64) (center, reach float64) {
	n := float64(len(values))
	if n < 2 {
		return 0, math.Inf(1)
	}
	for _, v := range values {
		center += v / n
	}
	var squares float64
	for _, v := range values {
		squares += (v - center) * (v - center)
	}
	return center, normal * math.Sqrt(squares/(n-1)/n)
}

// WriteText writes the table.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Requests of %.1f ms of CPU time to a service with a limit of %g CPUs, so many at once; %d rounds, kernel %s.\n\n",
		r.Work, r.Limit, r.Rounds, r.Kernel)
	rows := [][]string{{"at once", "mode", "all answered", "later than unlimited", "CPU time of the agent"}}
	for _, row := range r.Rows {
		later := "-"
		if row.Mode != string(experiment.Unlimited) {
			later = fmt.Sprintf("%.1f ms +- %.1f", row.Later, row.Within)
		}
		rows = append(rows, []string{fmt.Sprint(row.AtOnce), row.Mode, fmt.Sprintf("%.1f ms", row.Mean), later, fmt.Sprintf("%.2f ms", row.Agent)})
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	fmt.Fprintln(page, "All answered: mean time until the last answer. Later: mean of the differences, round by round, with the 95 % interval.")
}
