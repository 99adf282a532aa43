package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/strategy"
)

// Waited is the CPU time that a container's threads wanted, received and waited for, since the agent measures it. Waits
// count when they are over; kernel threads count as neighbours.
type Waited struct {
	Wanted   time.Duration `json:"wanted_ns"`   // the sum of what it received and waited for
	Received time.Duration `json:"received_ns"` // what it ran
	Waits    []Wait        `json:"waits"`       // by cause; of waits that are over
	// of `received_ns`: the core's other hardware thread ran another group
	Beside time.Duration `json:"sibling_busy_ns"`
	// the first three that had the CPU, kernel threads among them, at most 5 s old; the longest first
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Less is what was added since.
func (w Waited) Less(o Waited) Waited {
	d := Waited{Wanted: w.Wanted - o.Wanted, Received: w.Received - o.Received, Beside: w.Beside - o.Beside}
	for _, one := range w.Waits {
		for _, before := range o.Waits {
			if before.Cause == one.Cause {
				one.Time, one.Short = one.Time-before.Time, one.Short-before.Short
			}
		}
		d.Waits = append(d.Waits, one)
	}
	return d
}

// Waits is what online and offline containers waited for, those that are gone included.
type Waits struct {
	Problem string      `json:"problem,omitempty"`            // why nothing is measured
	Ranks   []RankWaits `json:"ranks"`                        // what online and offline containers waited for
	Lost    int64       `json:"threads_not_seen"`             // threads for which the table had no room
	Unnamed int64       `json:"waits_without_name,omitempty"` // waits without a known neighbour: the table was full

	// how much containers wait for each other; absent: not measured
	Contention *Contention `json:"contention,omitempty"`
}

// Contention is how much the containers of the node, but for the offline ones, wait for each other: see
// internal/diagnose. Times are thread time, of containers that are gone too.
type Contention struct {
	Contended time.Duration `json:"contended_ns"` // they waited for a CPU that another group used
	Runnable  time.Duration `json:"runnable_ns"`  // they ran, or waited for a CPU, without what limits took
	// of both, over the last ten seconds; `null` before that (Contention)
	Ratio *float64 `json:"ratio"`
}

// RankWaits are waits for a CPU, without what limits took of them.
type RankWaits struct {
	Rank    strategy.Rank `json:"rank"`            // `online` or `offline`
	Waits   int64         `json:"waits"`           // how many
	Time    time.Duration `json:"time_ns"`         // how long, without what limits took
	Lengths []Length      `json:"lengths"`         // how many lasted so long; the others lasted longer
	Beside  time.Duration `json:"beside_other_ns"` // it ran while the core's other thread ran the other rank
	// waits and shortfall by cause, of the containers that are there now
	Causes []Wait `json:"causes,omitempty"`
	// how many of these have a reservation, without which no shortfall is known
	Reserving int `json:"reserving"`
}

// Add adds the waits of a container to those of its rank.
func (r *RankWaits) Add(w Waited, reserves bool) {
	if reserves {
		r.Reserving++
	}
	for _, one := range w.Waits {
		i := slices.IndexFunc(r.Causes, func(c Wait) bool { return c.Cause == one.Cause })
		if i < 0 {
			i = len(r.Causes)
			r.Causes = append(r.Causes, Wait{Cause: one.Cause})
		}
		r.Causes[i].Time += one.Time
		r.Causes[i].Short += one.Short
	}
}

// line is "online waited 1200 times for a CPU, half of them up to 4us, all but one in a hundred up to 1ms".
func (w *Waits) line() string {
	if w.Problem != "" {
		return "not measured: " + w.Problem
	}
	var parts []string
	for _, r := range w.Ranks {
		if r.Waits == 0 {
			continue
		}
		text := fmt.Sprintf("%s waited %s for a CPU, p50 %s, p99 %s", r.Rank, several(r.Waits, "time"),
			r.quantile(0.5), r.quantile(0.99))
		if r.Beside > 0 {
			text += fmt.Sprintf(", and ran %s beside the other on a core", span(r.Beside))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing online or offline has waited yet")
	}
	if c := w.Contention; c != nil && c.Ratio != nil {
		parts = append(parts, fmt.Sprintf("contention %s of the time of runnable threads", percent(*c.Ratio)))
	}
	return strings.Join(parts, "; ")
}

// quantile is "up to 4ms", the upper end of the class that it lies in, or "more than 8.388608s".
func (r RankWaits) quantile(q float64) string {
	var n int64
	var longest time.Duration
	for _, l := range r.Lengths {
		longest = l.UpTo
		if n += l.N; float64(n) >= q*float64(r.Waits) {
			return "up to " + longest.String()
		}
	}
	return "more than " + longest.String()
}

// waitsMetrics are the descriptions of what collect sends.
type waitsMetrics struct {
	waits, short, wanted, received, beside, ranks, rankBeside *prometheus.Desc
	contention, contended, runnable                           *prometheus.Desc
}

func newWaitsMetrics() waitsMetrics {
	caused := append(containerLabels(), "cause")
	return waitsMetrics{
		waits: describe("container_wait_seconds_total",
			"Thread time spent waiting for a CPU, by cause; a wait is counted when it is over.", caused...),
		short: describe("container_shortfall_seconds_total",
			"CPU time wanted and reserved, and not received, by cause.", caused...),
		wanted: describe("container_wanted_seconds_total", "Thread time running, runnable or throttled.",
			containerLabels()...),
		received: describe("container_received_seconds_total",
			"Thread time running, without interrupts and stolen time.", containerLabels()...),
		beside: describe("container_sibling_busy_seconds_total",
			"Thread time running while the other thread of the core ran another group.", containerLabels()...),
		ranks: describe("rank_wait_seconds",
			"How long threads of a rank waited for a CPU, without time throttled.", "rank"),
		rankBeside: describe("rank_beside_seconds_total",
			"Time that a rank ran while the core's other thread ran the other rank.", "rank"),
		contention: describe("node_contention", "Share of the time of runnable threads in which another group used "+
			"the CPU that they waited for; over the last 10 s."),
		contended: describe("node_contended_seconds_total",
			"Thread time in which containers waited for a CPU that another group used."),
		runnable: describe("node_runnable_seconds_total",
			"Thread time in which containers ran or waited for a CPU, without time throttled."),
	}
}

func (m waitsMetrics) list() []*prometheus.Desc {
	return []*prometheus.Desc{m.waits, m.short, m.wanted, m.received, m.beside, m.ranks, m.rankBeside, m.contention,
		m.contended, m.runnable}
}

// container sends nothing where nothing is measured.
func (m waitsMetrics) container(w *Waited, labels []string, send sender) {
	if w == nil {
		return
	}
	send(m.wanted, prometheus.CounterValue, w.Wanted.Seconds(), labels...)
	send(m.received, prometheus.CounterValue, w.Received.Seconds(), labels...)
	send(m.beside, prometheus.CounterValue, w.Beside.Seconds(), labels...)
	for _, v := range w.Waits {
		caused := append(append([]string{}, labels...), string(v.Cause))
		send(m.waits, prometheus.CounterValue, v.Time.Seconds(), caused...)
		send(m.short, prometheus.CounterValue, v.Short.Seconds(), caused...)
	}
}

func (w *Waits) collect(m waitsMetrics, ch chan<- prometheus.Metric, send sender) {
	if w == nil {
		return
	}
	w.Contention.collect(m, send)
	for _, r := range w.Ranks {
		buckets, n := map[float64]uint64{}, int64(0)
		for _, l := range r.Lengths {
			n += l.N
			buckets[l.UpTo.Seconds()] = uint64(n)
		}
		ch <- prometheus.MustNewConstHistogram(m.ranks, uint64(r.Waits), r.Time.Seconds(), buckets, string(r.Rank))
		send(m.rankBeside, prometheus.CounterValue, r.Beside.Seconds(), string(r.Rank))
	}
}

// collect sends nothing where nothing is measured: a node that nobody looks at is not a calm one.
func (c *Contention) collect(m waitsMetrics, send sender) {
	if c == nil {
		return
	}
	send(m.contended, prometheus.CounterValue, c.Contended.Seconds())
	send(m.runnable, prometheus.CounterValue, c.Runnable.Seconds())
	if c.Ratio != nil {
		send(m.contention, prometheus.GaugeValue, *c.Ratio)
	}
}
