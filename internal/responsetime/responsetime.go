// Package responsetime says what the counts of a container's requests mean: its response times, or why there are none.
// It is pure: counts in, figures and words out.
//
// # Problem
//
// The kernel sees bytes, not requests. A request is taken to begin as data arrives at a quiet connection, and to end with
// the last send before more data arrive. That is right for one request at a time, as HTTP/1, memcached and most
// protocols of databases have it. On a connection with several open requests (HTTP/2, gRPC, pipelining) the time is that
// from some request to the answer of another one: 1.2 ms instead of 5.7 ms in one measurement, and nothing in the figure
// shows it.
//
// # Approach
//
// Whoever has one request at a time is silent until the answer has come. Data that arrive while an answer is owed are a
// further request, or more of the same one. After a long arrival (a full segment) they are taken for more of the same one:
// an upload. After a short one they put the request in doubt, and all later requests of the connection as well: two
// requests that overlap in strict alternation show only as they begin. In the first two exchanges of a connection one such
// arrival puts only its own exchange in doubt: in TLS the last message of the handshake and the first request are
// sent one right after the other.
//
// Requests in doubt are in no time. Where they are more than DoubtLimit of all, the container has no times at all.
// Up to there a quantile q that is shown lies between the quantiles q-DoubtLimit and q+DoubtLimit of all requests,
// whatever the times of those in doubt were.
//
// A time is known by its bucket, 16 for each power of two. A quantile is the middle of the bucket that it lies in, so
// that it is wrong by Error at most, from a microsecond up. A quantile for which there are too few requests is not given:
// of 99 requests none is the slowest of a hundred.
//
// # Known limits
//
// Several requests in one arrival, which a pipelining client may send, are one request here. A client that sends the
// head and the body of a short request apart, or a handshake of TLS for each few requests, looks like one that does not
// wait: its server's times are withheld. gRPC with messages above 1.2 KB shows only by its shorter frames.
// A stream (server-sent events, a long poll) is a long answer. The time of a request that is answered is counted
// when the next one arrives or the connection ends, so the last request of a silent connection is missing.
// The first message of a handshake and its answer are a request of their own.
package responsetime

import (
	"fmt"
	"time"

	"plimsoll/internal/report"
)

const (
	// Buckets of a histogram.
	Buckets = 448
	octave  = 16 // buckets for each power of two
	first   = 10 // the power of two at which they begin: times below 1,024 ns are in the first bucket

	// Error is how far a quantile may be off, as a part of it: half a bucket.
	Error = 1.0 / (2 * octave)
	// DoubtLimit is the part of requests in doubt from which no times are given.
	DoubtLimit = 0.005
)

// Histogram counts times by bucket.
type Histogram [Buckets]uint32

// Counts are those of the requests of one container in some time.
type Counts struct {
	Response, FirstByte, Upload Histogram
	Throttled                   Histogram // the first bucket is empty: it has all requests of Response that no other one has

	Doubtful      uint64        // answered, and not in Response: data arrived while the answer was owed
	Opening       uint64        // the same in the first exchanges of a connection
	Overtaken     uint64        // the same of requests whose answer's send was seen after the next request
	Clockless     uint64        // of Response: the throttled part is not known
	Total         time.Duration // the sum of the times in Response
	ClocklessTime time.Duration // of Total: of Clockless
	Kept          time.Duration // of Total without it: throttled
}

// Told is how many requests have times.
func (c Counts) Told() uint64 { return c.Response.sum() }

// Answered is how many requests were answered.
func (c Counts) Answered() uint64 { return c.Told() + c.Doubtful + c.Opening + c.Overtaken }

// Since is what came to an earlier reading.
func (c Counts) Since(o Counts) Counts {
	c.Response, c.FirstByte = c.Response.since(o.Response), c.FirstByte.since(o.FirstByte)
	c.Upload, c.Throttled = c.Upload.since(o.Upload), c.Throttled.since(o.Throttled)
	c.Doubtful -= o.Doubtful
	c.Opening -= o.Opening
	c.Overtaken -= o.Overtaken
	c.Total -= o.Total
	c.Clockless -= o.Clockless
	c.ClocklessTime -= o.ClocklessTime
	c.Kept -= o.Kept
	return c
}

// since takes differences modulo 2^32, as the kernel counts.
func (h Histogram) since(o Histogram) Histogram {
	for i := range h {
		h[i] -= o[i]
	}
	return h
}

func (h Histogram) sum() (n uint64) {
	for _, one := range h {
		n += uint64(one)
	}
	return n
}

// Judge says what the counts of some time mean.
func Judge(c Counts, elapsed time.Duration) report.Requests {
	r := report.Requests{N: int64(c.Answered()), Doubtful: int64(c.Doubtful + c.Opening + c.Overtaken), Error: Error}
	if elapsed > 0 {
		r.PerSecond = float64(r.N) / elapsed.Seconds()
	}
	if r.Withheld = withheld(c); r.Withheld != "" {
		r.PerSecond = 0
		return r
	}
	r.Response, r.FirstByte = c.Response.quantiles(), c.FirstByte.quantiles()
	r.Upload = c.Upload.quantiles()
	c.Throttled[0] = uint32(c.Told() - c.Clockless - c.Throttled.sum())
	r.Throttled = c.Throttled.quantiles()
	if timed := c.Total - c.ClocklessTime; timed > 0 {
		share := c.Kept.Seconds() / timed.Seconds()
		r.ThrottledShare = &share
	}
	return r
}

// withheld says why the times of a container cannot be told; "": they can. Connections that are opened are looked at
// apart: of a handshake for each few requests every third exchange may be in doubt, and none of them is a request.
func withheld(c Counts) string {
	all, doubt := c.Answered(), c.Doubtful+c.Overtaken
	switch {
	case all == 0:
		return ""
	case float64(doubt) > DoubtLimit*float64(all):
		return fmt.Sprintf("cannot be told: more data arrived while an answer was owed, around %d of %d requests: several are open on one "+
			"connection (HTTP/2, gRPC, pipelining), or are sent in parts", doubt, all)
	case float64(c.Opening) > openingLimit*float64(all):
		return fmt.Sprintf("cannot be told: %d of %d exchanges open a connection (TLS), and cannot be told from requests", c.Opening, all)
	}
	return ""
}

// openingLimit is larger than DoubtLimit, for a handshake is no request: leaving it out makes the figures better.
const openingLimit = 0.1

// quantiles are nil where nothing was counted.
func (h Histogram) quantiles() *report.Quantiles {
	q := report.Quantiles{N: int64(h.sum())}
	if q.N == 0 {
		return nil
	}
	q.P50, q.P90, q.P99 = h.quantile(q.N, 50), h.quantile(q.N, 90), h.quantile(q.N, 99)
	return &q
}

// quantile is nil where fewer than one time lies above it on average.
func (h Histogram) quantile(all int64, percent int64) *time.Duration {
	if all*(100-percent) < 100 {
		return nil
	}
	rank := uint64((all*percent + 99) / 100) // 1 is the shortest
	var below uint64
	for i, n := range h {
		if below += uint64(n); below >= rank {
			middle := Middle(i)
			return &middle
		}
	}
	return nil // not reached: the last bucket has the rest
}

// Middle is the time that stands for those of a bucket: for those below a microsecond it is 0.
func Middle(i int) time.Duration {
	if i == 0 {
		return 0
	}
	low, high := bounds(i)
	return (low + high) / 2
}

// bounds are those of a bucket: low is in it, high is not (bucket in requests.bpf.c).
func bounds(i int) (low, high time.Duration) {
	if i == 0 {
		return 0, 1 << first
	}
	power, part := (i-1)/octave+first, (i-1)%octave
	width := time.Duration(1) << (power - 4)
	low = time.Duration(1)<<power + time.Duration(part)*width
	return low, low + width
}
