package main

import (
	"bytes"
	"fmt"

	"plimsoll/internal/experiment"
)

// published is a table that somebody has published: response times in milliseconds, CPU use of the machine.
type published struct {
	mechanism              string
	machine                string
	base, with, experiment times
}

// times are one column of it.
type times struct{ p90, p99, cpu float64 }

// studies are those of OpenAnolis: nginx and ffmpeg, wrk on another server.
func studies() []published {
	return []published{
		{"Group Identity", "Alibaba Cloud Linux 2, bare metal", times{0.533, 0.93, 29.6}, times{0.574, 1.58, 85.6}, times{0.548, 0.96, 64.8}},
		{"bvt and noise clean", "CentOS 7.9, bare metal", times{0.444, 0.706, 25.15}, times{0.575, 1.7, 71.7}, times{0.504, 0.88, 49.15}},
	}
}

// beside prints what was published beside the best mechanism here.
func (r *result) beside(page *bytes.Buffer) {
	rows := [][]string{{"change of RT", "control p90", "p99", "CPU", "with mechanism p90", "p99", "CPU"}}
	cells := func(name string, base, with, by times) []string {
		percent := func(now, before float64) string { return fmt.Sprintf("%+.1f %%", 100*change(now, before)) }
		return []string{name, percent(with.p90, base.p90), percent(with.p99, base.p99), fmt.Sprintf("%.1f %%", with.cpu),
			percent(by.p90, base.p90), percent(by.p99, base.p99), fmt.Sprintf("%.1f %%", by.cpu)}
	}
	for _, s := range studies() {
		rows = append(rows, cells(s.mechanism+" ("+s.machine+")", s.base, s.with, s.experiment))
	}
	base, with, best := r.row(baseline), r.row(control), r.best()
	if base != nil && with != nil && best != nil {
		own := func(f *figures) times { return times{f.P90, f.P99, 100 * f.Machine} }
		rows = append(rows, cells(string(best.Row)+" (here)", own(base), own(with), own(best)))
	}
	fmt.Fprintln(page, "Published by OpenAnolis, and measured here:")
	experiment.Columns(page, 0, rows)
}
