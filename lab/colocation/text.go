package main

import (
	"bytes"
	"fmt"

	"plimsoll/internal/experiment"
	"plimsoll/internal/figure"
)

// WriteText writes the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	c := r.Conditions
	fmt.Fprintf(page, "nginx under %g requests a second, and ffmpeg beside it; %.0f s for each row, rounds: %d, seed "+
		"%d. Kernel %s, cgroup %s, %d CPUs.\n\n", c.Rate, c.Seconds, c.Rounds, c.Seed, c.Kernel, c.Cgroup, c.CPUs)
	for _, part := range []func(*bytes.Buffer){r.table, r.split, r.slowSplit, r.beside} {
		part(page)
		page.WriteByte('\n')
	}
	experiment.Lines(page, r.careful())
	experiment.WriteFigures(page, r.Aims())
}

func (r *result) table(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("row|RT p50||p90||p99||machine CPU|ffmpeg|errors")
	for _, f := range r.Rows {
		by := func(change float64) string { return fmt.Sprintf("%+.1f %%", 100*change) }
		frames := fmt.Sprintf("%.1f frames/s", f.Frames)
		if f.Row == baseline {
			by, frames = func(float64) string { return "" }, "-"
		}
		t.Row("%s|%.2f ms|%s|%.2f ms|%s|%.2f ms|%s|%.1f %%|%s|%d", f.Row, f.P50, by(f.ChangeP50),
			f.P90, by(f.ChangeP90), f.P99, by(f.ChangeP99), 100*f.Machine, frames, f.Errors)
	}
	t.Write(page)
	fmt.Fprintln(page, "RT: response time of nginx, from when the request was due, and its change against the "+
		"baseline. Machine CPU: use of all CPUs.")
}

// split says where the lost time went.
func (r *result) split(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("lost a request|mean RT|run queue|hardware|CPU time")
	for _, f := range r.Rows {
		if f.Row == baseline {
			t.Row("%s|(%.2f ms)|(%.2f ms)||%.2f ms", f.Row, f.Mean, f.Waited, f.Ran)
		} else {
			t.Row("%s|%+.2f ms|%+.2f ms|%+.2f ms|%.2f ms", f.Row, f.Lost, f.LostWait, f.LostOther, f.Ran)
		}
	}
	t.Write(page)
	fmt.Fprintln(page, "Lost against the baseline: run queue is what the kernel counted of nginx's tasks "+
		"(schedstat), hardware is the rest. A CPU")
	fmt.Fprintln(page, "that is never idle wakes faster, so the rest may be negative. CPU time: of nginx, a request.")
}

// slowSplit says what the slowest requests are made of.
func (r *result) slowSplit(page *bytes.Buffer) {
	base := r.row(baseline)
	if base == nil {
		return
	}
	var t experiment.Table
	t.Row("slowest 2 %%|RT|CPU time|run queue|rest")
	for _, f := range r.Rows {
		s, form := f.Slowest, "%s|(%.2f ms)|(%.2f ms)|(%.2f ms)|(%.2f ms)"
		if f.Row != baseline {
			s, form = s.less(base.Slowest), "%s|%+.2f ms|%+.2f ms|%+.2f ms|%+.2f ms"
		}
		t.Row(form, f.Row, s.Took, s.Ran, s.Waited, s.Rest)
	}
	t.Write(page)
	fmt.Fprintln(page, "The slowest requests, whose middle is p99, against those of the baseline: more CPU time for "+
		"the same work is hardware (caches,")
	fmt.Fprintln(page, "memory, the sibling), run queue is nginx ready to run and waiting. Rest: wake-ups, "+
		"interrupts, and the load sender.")
}

// careful says what has to be known beside the figures.
func (r *result) careful() []string {
	var say []string
	if r.Conditions.Emulated {
		say = append(say, "Careful: the CPUs are emulated: tasks run in the same order as on real ones, and response "+
			"times are those of no machine.")
	}
	if !r.Conditions.Foremost {
		say = append(say, "Careful: the load generator waited for CPUs like all other processes: its own waits are "+
			"part of the response times.")
	}
	for _, f := range r.Rows {
		if f.Errors > 0 {
			say = append(say, fmt.Sprintf("Careful: %s: %d of %d requests failed: %s", f.Row, f.Errors, f.Requests,
				f.Cause))
		}
		if f.Late > f.P50 {
			say = append(say, fmt.Sprintf("%s: the load generator was late by up to %.1f ms, which counts as "+
				"response time.", f.Row, f.Late))
		}
	}
	return say
}

// Chart draws the distributions of the response times.
func (r *result) Chart() *figure.Canvas {
	var curves []experiment.Curve
	for _, f := range r.Rows {
		curves = append(curves, experiment.Curve{Name: string(f.Row), Points: f.Curve})
	}
	c := r.Conditions
	return experiment.Distributions("Response time of nginx beside ffmpeg",
		fmt.Sprintf("%g requests a second, %d CPUs, Linux %s, cgroup %s", c.Rate, c.CPUs, c.Kernel, c.Cgroup),
		"go run ./lab/colocation -svg FILE. A response time counts from when the request was due.", curves)
}

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
		{"Group Identity", "Alibaba Cloud Linux 2, bare metal", times{0.533, 0.93, 29.6}, times{0.574, 1.58, 85.6},
			times{0.548, 0.96, 64.8}},
		{"bvt and noise clean", "CentOS 7.9, bare metal", times{0.444, 0.706, 25.15}, times{0.575, 1.7, 71.7},
			times{0.504, 0.88, 49.15}},
	}
}

// beside prints what was published beside the best mechanism here.
func (r *result) beside(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("change of RT|control p90|p99|CPU|with mechanism p90|p99|CPU")
	row := func(name string, base, with, by times) {
		percent := func(now, before float64) float64 { return 100 * change(now, before) }
		t.Row("%s|%+.1f %%|%+.1f %%|%.1f %%|%+.1f %%|%+.1f %%|%.1f %%", name, percent(with.p90, base.p90),
			percent(with.p99, base.p99), with.cpu, percent(by.p90, base.p90), percent(by.p99, base.p99), by.cpu)
	}
	for _, s := range studies() {
		row(s.mechanism+" ("+s.machine+")", s.base, s.with, s.experiment)
	}
	base, with, best := r.row(baseline), r.row(control), r.best()
	if base != nil && with != nil && best != nil {
		own := func(f *figures) times { return times{f.P90, f.P99, 100 * f.Machine} }
		row(string(best.Row)+" (here)", own(base), own(with), own(best))
	}
	fmt.Fprintln(page, "Published by OpenAnolis, and measured here:")
	experiment.Columns(page, 0, t)
}
