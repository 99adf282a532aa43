package report

import (
	"fmt"
	"time"
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
