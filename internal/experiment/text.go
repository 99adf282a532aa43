package experiment

import (
	"bytes"
	"fmt"
)

// WriteText writes the result for people: the conditions, a table, a plot, and what to conclude.
func (r *Result) WriteText(page *bytes.Buffer) {
	c := r.Conditions
	fmt.Fprintf(page, "A service with a limit of %g CPUs, %.1f ms of CPU time a request, %.2f requests a second: "+
		"%.0f %% of the limit on average.\n", c.Limit, c.Work, c.Rate, 100*c.Utilization)
	fmt.Fprintf(page, "%.0f s for each mode, rounds: %d, seed: %d. Kernel %s, cgroup %s, %d CPUs, plimsoll %s.\n\n",
		c.Seconds, c.Rounds, c.Seed, c.Kernel, c.Cgroup, c.CPUs, c.Version)
	r.table(page)
	page.WriteByte('\n')
	page.Write(plot(r.Modes, 60))
	page.WriteByte('\n')
	Lines(page, r.conclude())
}

// table has the columns of the published tables: response time, throttled ratio, average CPU.
func (r *Result) table(page *bytes.Buffer) {
	var t Table
	t.Row("mode|RT p50|p90|p99|mean|throttled|time lost|CPU|requests|errors")
	for _, m := range r.Modes {
		t.Row("%s|%s|%s|%s|%s|%.1f %%|%.2f s|%.3f|%d|%d", m.Name, spell(m.P50), spell(m.P90), spell(m.P99),
			spell(m.Mean), 100*m.ThrottledRatio, m.Lost, m.CPUs, m.Requests, m.Errors)
	}
	t.Write(page)
	fmt.Fprintln(page, "RT: response time, from when the request was due. Throttled: share of the 100 ms periods in "+
		"which the service ran")
	fmt.Fprintln(page,
		"that ended throttled. Time lost: wall time for which the group was throttled. CPU: mean number of CPUs used.")
}

// spell writes milliseconds with three digits.
func spell(ms float64) string {
	switch {
	case ms >= 9999.5:
		return fmt.Sprintf("%.1f s", ms/1e3)
	case ms >= 99.95:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}
