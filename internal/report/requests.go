package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests says how long a container takes to answer the requests that reach its TCP sockets (internal/probe/requests).
// Times are wall time.
type Requests struct {
	RequestWindow
	Total RequestTotals `json:"total"` // since the agent measures the container
}

// RequestWindow is how long the requests of a time took: of a measurement, or of the last full minute.
type RequestWindow struct {
	Window   time.Duration `json:"window_ns"` // how long that is; the first minute is shorter
	Answered int64         `json:"answered"`  // requests that were answered
	// requests on connections that carry several at a time; in no other figure
	Doubtful int64 `json:"doubtful"`
	Withheld bool  `json:"withheld"` // more than one in a hundred is doubtful: all times are 0

	// from the arrival of the request's last bytes to the last send of the answer
	Response    Quantiles     `json:"response"`
	FirstByte   Quantiles     `json:"first_byte"`   // from the same to the first send
	Upload      Quantiles     `json:"upload"`       // from the arrival of the request's first bytes to that of its last
	Unthrottled Quantiles     `json:"unthrottled"`  // the response without throttled time
	Time        time.Duration `json:"time_ns"`      // of all responses
	Throttled   time.Duration `json:"throttled_ns"` // of it: the container was throttled by its own limit

	// false: the throttled time is not known, and it and `unthrottled` are 0
	ThrottledKnown bool `json:"throttled_known"`
}

// Quantiles are those of response times; 0 where there are none.
type Quantiles struct {
	P50 time.Duration `json:"p50_ns"` // the median
	P90 time.Duration `json:"p90_ns"` // the 90th percentile
	P99 time.Duration `json:"p99_ns"` // the 99th percentile
}

// RequestTotals are counted since the container is measured, of trusted requests only.
type RequestTotals struct {
	Answered int64 `json:"answered"` // requests that were answered
	// requests on connections that carry several at a time; in no other figure
	Doubtful  int64         `json:"doubtful"`
	Time      time.Duration `json:"time_ns"`      // of all responses
	Throttled time.Duration `json:"throttled_ns"` // of it: the container was throttled by its own limit
	Lengths   []Length      `json:"lengths"`      // how many took so long; none while the figures are withheld

	ThrottledKnown bool `json:"throttled_known"` // false: the throttled time is not known, and 0
}

// RequestTimes say whether requests are measured.
type RequestTimes struct {
	Problem string `json:"problem,omitempty"` // why response times are not measured
	// connections that came when 65,536 were traced on the node: their requests are in no figure
	Untraced int64 `json:"connections_untraced"`
}

func (r RequestTimes) line() string {
	if r.Problem != "" {
		return "not measured: " + Printable(r.Problem)
	}
	line := "response times are measured at the containers' sockets"
	if r.Untraced > 0 {
		line += fmt.Sprintf("; %s not traced, because there were too many", several(r.Untraced, "connection"))
	}
	return line
}

// Line is "12.0/s answered in 1.2ms (p50), 3ms (p90), 105ms (p99); 34.0 % of the time throttled, p99 without it 8ms".
func (r *RequestWindow) Line() string {
	switch {
	case r.Withheld:
		return fmt.Sprintf("response times cannot be told: %d of %d came on connections that carry several requests "+
			"at a time", r.Doubtful, r.Answered+r.Doubtful)
	case r.Answered == 0:
		return "none answered in the last " + span(r.Window)
	}
	line := fmt.Sprintf("%.1f/s answered in %s (p50), %s (p90), %s (p99)",
		float64(r.Answered)/max(r.Window.Seconds(), 1e-9),
		span(r.Response.P50), span(r.Response.P90), span(r.Response.P99))
	switch {
	case !r.ThrottledKnown:
		line += "; how much of it throttled is not known"
	case r.Throttled > 0:
		line += fmt.Sprintf("; %s of the time throttled, p99 without it %s", share(r.Throttled, r.Time),
			span(r.Unthrottled.P99))
	}
	return line
}

func (r *Requests) same(o *Requests) bool {
	if r == nil || o == nil {
		return r == o
	}
	a, b := r.Total, o.Total
	return r.RequestWindow == o.RequestWindow && a.Answered == b.Answered && a.Doubtful == b.Doubtful &&
		a.Time == b.Time &&
		a.Throttled == b.Throttled && a.ThrottledKnown == b.ThrottledKnown && slices.Equal(a.Lengths, b.Lengths)
}

// requestLines are those of the containers whose requests are measured.
func (s Status) requestLines(p *page) {
	if s.Requests == nil {
		return
	}
	p.printf("requests: %s\n", s.Requests.line())
	for _, c := range s.Containers {
		if r := c.Requests; r != nil && r.Answered+r.Doubtful > 0 {
			p.printf("  %s: %s\n", Printable(c.Name), r.Line())
		}
	}
}

// requestMetrics are the descriptions of what collect sends.
type requestMetrics struct{ times, throttled, doubtful, untraced *prometheus.Desc }

func newRequestMetrics() requestMetrics {
	return requestMetrics{
		times: describe("container_request_seconds",
			"Time from the arrival of a request's last bytes to the last send of its answer.", containerLabels()...),
		throttled: describe("container_request_throttled_seconds_total",
			"Part of the response times in which the container was throttled.", containerLabels()...),
		doubtful: describe("container_requests_doubtful_total", "Requests on connections that carry several at a "+
			"time; they are in no response time.", containerLabels()...),
		untraced: describe("connections_untraced_total", "Connections to servers of the node that came when 65,536 "+
			"were traced; their requests are in no figure."),
	}
}

func (m requestMetrics) list() []*prometheus.Desc {
	return []*prometheus.Desc{m.times, m.throttled, m.doubtful, m.untraced}
}

func (r *RequestTimes) collect(m requestMetrics, send sender) {
	if r != nil {
		send(m.untraced, prometheus.CounterValue, float64(r.Untraced))
	}
}

// container sends nothing where nothing is measured, and no time that is withheld.
func (m requestMetrics) container(r *Requests, labels []string, ch chan<- prometheus.Metric, send sender) {
	if r == nil {
		return
	}
	send(m.doubtful, prometheus.CounterValue, float64(r.Total.Doubtful), labels...)
	if len(r.Total.Lengths) == 0 {
		return
	}
	if r.Total.ThrottledKnown {
		send(m.throttled, prometheus.CounterValue, r.Total.Throttled.Seconds(), labels...)
	}
	buckets := map[float64]uint64{}
	var n int64
	for _, l := range r.Total.Lengths {
		n += l.N
		buckets[l.UpTo.Seconds()] = uint64(n)
	}
	ch <- prometheus.MustNewConstHistogram(m.times, uint64(r.Total.Answered), r.Total.Time.Seconds(), buckets,
		labels...)
}

// Parallelism says how many threads the language runtimes of a container run at once, and whether a burst can give more
// CPUs than these threads can use.
type Parallelism struct {
	Limit     float64 `json:"limit_cpus"`     // the declared limit
	Burst     float64 `json:"burst_cpus"`     // the most CPUs that a burst can give in one period
	BurstFrom string  `json:"burst_from"`     // why so many
	Proposed  bool    `json:"burst_proposed"` // nothing lets it burst now: `burst_cpus` is what `auto` would give
	// threads of all its runtimes together, on the CPUs that they may use; `null`: not known
	Threads *int `json:"parallelism"`
	// a tenth of `burst_cpus` or more finds no thread, and most of the CPU time is not used by `other_processes`
	Unusable bool             `json:"burst_unusable"`
	Runtimes []RuntimeProcess `json:"runtimes"`        // the one that used most CPU time first
	Others   int              `json:"other_processes"` // processes of no known runtime
	// processes that were not looked at: there were too many, or it took too long
	Unread  int    `json:"unread_processes"`
	Verdict string `json:"verdict"` // in words; empty where there is nothing to say
	Next    string `json:"next"`    // what to do, in words
}

// RuntimeProcess is one process of a runtime.
type RuntimeProcess struct {
	PID         int    `json:"pid"`               // of the process
	Name        string `json:"name"`              // of the process
	Runtime     string `json:"runtime"`           // `go`, `jvm` or `node`
	Version     string `json:"version,omitempty"` // of the runtime
	Threads     int    `json:"threads,omitempty"` // threads of the kernel, all that the process has; absent: not known
	Parallelism *int   `json:"parallelism"`       // threads that run code at once; `null`: not known
	From        string `json:"parallelism_from"`  // where the number comes from, or why it is not known
	// false: pools are sized by the number, and other threads run beside them
	Strict bool   `json:"parallelism_strict"`
	Set    string `json:"set,omitempty"` // what makes the burst usable
}
