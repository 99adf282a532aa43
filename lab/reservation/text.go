package main

import (
	"bytes"
	"fmt"
	"strings"

	"plimsoll/internal/experiment"
	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

// WriteText writes the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	c := r.Conditions
	fmt.Fprintf(page, "A target that has reserved %g of %d CPUs, and a neighbour that has reserved the rest, with "+
		"the weights that go with it.\n", c.Request, c.CPUs)
	fmt.Fprintf(page, "%g s a measurement, rounds: %d. Kernel %s, cgroup %s.\n\n", c.Seconds, c.Rounds, c.Kernel,
		c.Cgroup)
	r.table(page)
	r.splits(page)
	if c.Cgroup == "v1" {
		fmt.Fprintln(page, "With reserve, the other programs of the machine are kept off the target's CPU, as far as "+
			"the kernel lets them go.")
	}
	if c.Emulated {
		fmt.Fprintln(page,
			"Careful: the CPUs are emulated: shares of CPU time are valid, and response times are those of no machine.")
	}
	if worst := r.worst(); worst != nil {
		fmt.Fprintf(page, "\nLeast received: %.0f %% of the CPU reserved, beside %s.\n", 100*worst.Utilization,
			worst.situation.Neighbour.name())
	}
	if aims := r.Aims(); len(aims) > 0 {
		page.WriteByte('\n')
		experiment.WriteFigures(page, aims)
	}
}

func (r *result) table(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("|batch job||CPU|scheduling|hardware|neighbour|memcached|||most")
	t.Row("neighbour|took||utilization|||CPUs|p50|p99||p99 <= %g ms", r.Conditions.Bound)
	for _, f := range r.Rows {
		slowdown, hardware := fmt.Sprintf("x%.2f", f.Slowdown), fmt.Sprintf("x%.2f", f.Hardware)
		if r.Conditions.Emulated {
			slowdown, hardware = "-", "-"
		}
		t.Row("%s|%.2f s|%s|%.0f %%|x%.2f|%s|%.2f|%.2f ms|%.2f ms|x%.1f|%s", f.name(), f.Took, slowdown,
			100*f.Utilization, f.Scheduling, hardware, f.Neighbour, f.P50, f.P99, 1+f.ChangeP99, f.most())
	}
	t.Write(page)
	fmt.Fprintln(page, "CPU utilization: what the batch job consumed of what is reserved for it. It took longer than "+
		"alone by two factors: scheduling")
	fmt.Fprintf(page, "(CPU time that it did not receive) and hardware (CPU time that did less). memcached: response "+
		"time at %g requests a second,\n", r.Conditions.Rate)
	fmt.Fprintf(page, "and the most requests a second at which its p99 is %g ms or less; none: its p99 at %g a "+
		"second.\n", r.Conditions.Bound, lowest)
}

// splits says where the time went that the target wanted, as plimsoll diagnose tells.
func (r *result) splits(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("of the time wanted||received|shortfall|of it owed|forced|phantom|waking|waits")
	line := func(name, what string, s split) {
		if s.Wanted <= 0 {
			return
		}
		percent := func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part/s.Wanted) }
		var waits []string
		for _, cause := range s.causes() {
			waits = append(waits, cause+" "+percent(s.Waits[cause]))
		}
		t.Row("%s|%s|%s|%s|%s|%s|%s|%s|%s", name, what, percent(s.Received), percent(s.Shortfall), percent(s.Owed),
			percent(s.Forced), percent(s.Phantom), percent(s.Waking), strings.Join(waits, ", "))
	}
	for _, f := range r.Rows {
		line(f.name(), "batch", f.Batch)
		line("", "memcached", f.Asked)
	}
	if len(t) == 1 {
		return
	}
	page.WriteByte('\n')
	experiment.Columns(page, 0, t) // the last column is long
	fmt.Fprintln(page, "Shortfall: of what was wanted and reserved, not received; owed: behind the neighbour, and "+
		"not behind other programs (others),")
	fmt.Fprintln(page, "the kernel or the machine. Of the waits behind the neighbour, forced: it had its share on "+
		"other CPUs; phantom: a CPU that the")
	fmt.Fprintln(page,
		"target may use was idle; waking: the target woke while a slice was running (plimsoll diagnose).")
}

// Chart draws where the time went that the batch job wanted, beside the response time of memcached. Where plimsoll
// diagnose did not watch, all that was not received is one part.
func (r *result) Chart() *figure.Canvas {
	c := r.Conditions
	bars := figure.Bars{
		Title: "A reserved CPU, beside a neighbour",
		Subtitle: fmt.Sprintf("%g of %d CPUs reserved, medians of %d rounds of %g s, Linux %s, cgroup %s", c.Request,
			c.CPUs, c.Rounds, c.Seconds, c.Kernel, c.Cgroup),
		Parts: []string{"received", "behind the neighbour", "behind others", "the rest"},
		X:     figure.Axis{Label: "of the CPU time that the batch job wanted, %", Max: 1, Percent: true},
		Texts: fmt.Sprintf("memcached: p99 at %g/s, most at <= %g ms", c.Rate, c.Bound),
		Note: "go run ./lab/reservation -svg FILE. The rest: kernel threads, interrupts, the hypervisor, the " +
			"job's own limit and threads.",
	}
	for _, f := range r.Rows {
		bars.Bars = append(bars.Bars, figure.Bar{Name: f.name(), Parts: f.parts(),
			Text: fmt.Sprintf("%.2f ms   %s", f.P99, f.most())})
	}
	return bars.Draw()
}

// parts are those of a bar.
func (f figures) parts() []float64 {
	s := f.Batch
	if s.Wanted <= 0 {
		return []float64{f.Utilization, 0, 0, max(1-f.Utilization, 0)}
	}
	parts := []float64{s.Received / s.Wanted, s.Waits[string(report.CauseNeighbour)] / s.Wanted,
		s.Waits[others] / s.Wanted}
	rest := 1.0
	for _, p := range parts {
		rest -= p
	}
	return append(parts, max(rest, 0))
}

// most is the highest throughput in words.
func (f figures) most() string {
	switch {
	case f.Most > 0:
		return fmt.Sprintf("%.0f/s", f.Most)
	case f.Least > 0:
		return fmt.Sprintf("none: %.2f ms", f.Least)
	}
	return "-"
}
