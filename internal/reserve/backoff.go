package reserve

import "time"

// backoff spaces attempts with doubling gaps. The first is longer than the kubelet's reconcile period (10 s,
// cpuManagerReconcilePeriod), so that one who writes in each of these is met ever more rarely.
type backoff struct {
	gap   time.Duration
	until time.Time
}

const (
	firstGap = 15 * time.Second
	maxGap   = 10 * time.Minute
)

func (b *backoff) hit(now time.Time) {
	if now.Sub(b.until) > 2*maxGap {
		b.gap = 0
	}
	b.gap = min(maxGap, max(firstGap, 2*b.gap))
	b.until = now.Add(b.gap)
}

func (b *backoff) ready(now time.Time) bool { return !now.Before(b.until) }
