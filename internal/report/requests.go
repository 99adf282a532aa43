package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests is how long a container's requests took, seen at its servers' sockets: see internal/responsetime.
type Requests struct {
	N         int64   `json:"requests"`   // answered
	PerSecond float64 `json:"per_second"` // 0 where it cannot be told
	Doubtful  int64   `json:"doubtful"`   // of N: in none of the times
	Withheld  string  `json:"withheld"`   // why there are no times; "": they can be told
	Error     float64 `json:"error"`      // of each time, as a part of it

	Response  *Quantiles `json:"response"`   // last arrival of the request to last send of the answer; null: none
	FirstByte *Quantiles `json:"first_byte"` // to its first send
	Upload    *Quantiles `json:"upload"`     // first arrival to last, of requests that arrived in parts
	Throttled *Quantiles `json:"throttled"`  // the part of Response in which the container was throttled
	// ThrottledShare is the throttled part of all response times together; nil: not known.
	ThrottledShare *float64 `json:"throttled_share"`
}

// Quantiles of times. One for which there are too few requests is null.
type Quantiles struct {
	N   int64          `json:"requests"`
	P50 *time.Duration `json:"p50_ns"`
	P90 *time.Duration `json:"p90_ns"`
	P99 *time.Duration `json:"p99_ns"`
}

// line is "1200 (120.0/s); response p50 1.2ms p90 3ms p99 12ms; throttled for 30.0 % of the response time".
func (r *Requests) line() string {
	switch {
	case r.N == 0:
		return "no request was answered"
	case r.Withheld != "":
		return r.Withheld
	}
	text := fmt.Sprintf("%d (%.1f/s)", r.N, r.PerSecond)
	for _, q := range []struct {
		name string
		of   *Quantiles
	}{{"response", r.Response}, {"first byte", r.FirstByte}, {"upload", r.Upload}, {"throttled", r.Throttled}} {
		if q.of != nil {
			text += "; " + q.name + " " + q.of.text()
		}
	}
	if r.ThrottledShare != nil {
		text += fmt.Sprintf("; throttled for %s of the response time", percent(*r.ThrottledShare))
	}
	return text
}

func (q *Quantiles) text() string {
	text := ""
	for _, one := range []struct {
		name string
		at   *time.Duration
	}{{"p50", q.P50}, {"p90", q.P90}, {"p99", q.P99}} {
		if one.at != nil {
			text += " " + one.name + " " + span(*one.at)
		}
	}
	if text == "" {
		return "of too few requests"
	}
	return text[1:]
}

// RequestTotals is what the agent has measured of a container's requests.
type RequestTotals struct {
	Answered  int64         `json:"answered"`     // those in doubt left out
	Response  time.Duration `json:"response_ns"`  // their response times, summed up; 0 where they are withheld
	Throttled time.Duration `json:"throttled_ns"` // of it
	Lately    *Requests     `json:"last_minute"`
}

// RequestTimes says whether request times are measured.
type RequestTimes struct {
	Problem string   `json:"problem,omitempty"` // why nothing is measured
	Notes   []string `json:"notes,omitempty"`   // what is missing of it
}

// mostRequests is of how many containers a status shows the request times.
const mostRequests = 10

// requestLines are those of a status: the containers with the most requests in the last minute first.
func (s Status) requestLines(p *page) {
	if s.Requests == nil {
		return
	}
	if s.Requests.Problem != "" {
		p.printf("requests: not measured: %s\n", s.Requests.Problem)
		return
	}
	var list []Container
	for _, c := range s.Containers {
		if r := c.Totals.Requests; r != nil && r.Lately != nil && r.Lately.N > 0 {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Container) int {
		return cmp.Or(cmp.Compare(b.Totals.Requests.Lately.N, a.Totals.Requests.Lately.N), cmp.Compare(a.Name, b.Name))
	})
	p.printf("requests: %d containers answered some in the last minute\n", len(list))
	for i, c := range list {
		if i == mostRequests {
			p.printf("  and %d containers more (--json)\n", len(list)-i)
			break
		}
		p.printf("  %s: %s\n", c.Name, c.Totals.Requests.Lately.line())
	}
	for _, n := range s.Requests.Notes {
		p.printf("  %s\n", n)
	}
}

func (t *RequestTotals) same(o *RequestTotals) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.Answered == o.Answered && t.Response == o.Response && t.Throttled == o.Throttled && t.Lately.same(o.Lately)
}

func (r *Requests) same(o *Requests) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.N == o.N && r.PerSecond == o.PerSecond && r.Doubtful == o.Doubtful && r.Withheld == o.Withheld && r.Error == o.Error &&
		r.Response.same(o.Response) && r.FirstByte.same(o.FirstByte) && r.Upload.same(o.Upload) && r.Throttled.same(o.Throttled) &&
		sameValue(r.ThrottledShare, o.ThrottledShare)
}

func (q *Quantiles) same(o *Quantiles) bool {
	if q == nil || o == nil {
		return q == o
	}
	return q.N == o.N && sameValue(q.P50, o.P50) && sameValue(q.P90, o.P90) && sameValue(q.P99, o.P99)
}

// requestMetrics are the descriptions of what container sends.
type requestMetrics struct{ response, throttled, withheld *prometheus.Desc }

func newRequestMetrics() requestMetrics {
	return requestMetrics{
		response:  describe("container_response_seconds", "Response times at the sockets of servers, with the quantiles of the last minute.", containerLabels()...),
		throttled: describe("container_response_throttled_seconds_total", "Part of response times in which the container was throttled.", containerLabels()...),
		withheld:  describe("container_response_withheld", "1 while response times cannot be told, as with several requests at once on a connection.", containerLabels()...),
	}
}

func (m requestMetrics) list() []*prometheus.Desc {
	return []*prometheus.Desc{m.response, m.throttled, m.withheld}
}

// container sends nothing where nothing is measured, and no time where times are withheld.
func (m requestMetrics) container(t *RequestTotals, labels []string, ch chan<- prometheus.Metric, send sender) {
	if t == nil || t.Lately == nil {
		return
	}
	send(m.withheld, prometheus.GaugeValue, bit(t.Lately.Withheld != ""), labels...)
	if t.Lately.Withheld != "" {
		return
	}
	at := map[float64]float64{}
	if q := t.Lately.Response; q != nil {
		for part, d := range map[float64]*time.Duration{0.5: q.P50, 0.9: q.P90, 0.99: q.P99} {
			if d != nil {
				at[part] = d.Seconds()
			}
		}
	}
	ch <- prometheus.MustNewConstSummary(m.response, uint64(t.Answered), t.Response.Seconds(), at, labels...)
	send(m.throttled, prometheus.CounterValue, t.Throttled.Seconds(), labels...)
}
