package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest latency that is told apart; longer ones count as this.
const maxLatency = 10 * time.Minute

// Latencies is a distribution of latencies with three significant digits. It is not safe for concurrent use.
type Latencies struct {
	h *hdrhistogram.Histogram // in microseconds
}

// NewLatencies makes an empty distribution.
func NewLatencies() *Latencies {
	return &Latencies{hdrhistogram.New(1, maxLatency.Microseconds(), 3)}
}

// Record adds one latency.
func (l *Latencies) Record(d time.Duration) {
	// The value is inside the histogram's range, so it cannot be refused.
	_ = l.h.RecordValue(min(max(d, time.Microsecond), maxLatency).Microseconds())
}

// Merge adds all of another distribution.
func (l *Latencies) Merge(from *Latencies) { l.h.Merge(from.h) }

// Count is the number of latencies.
func (l *Latencies) Count() int64 { return l.h.TotalCount() }

// Mean is the mean latency; 0 when there is none.
func (l *Latencies) Mean() time.Duration {
	return time.Duration(l.h.Mean() * float64(time.Microsecond))
}

// Quantile is the latency that the share q of requests did not exceed, q in [0,1].
func (l *Latencies) Quantile(q float64) time.Duration {
	return time.Duration(l.h.ValueAtQuantile(100*q)) * time.Microsecond
}

// Max is the longest latency.
func (l *Latencies) Max() time.Duration { return time.Duration(l.h.Max()) * time.Microsecond }
