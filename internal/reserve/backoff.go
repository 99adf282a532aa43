package reserve

import (
	"time"

	"plimsoll/internal/plan"
)

// backoff is that of a group which another program writes too. The first gap is longer than the kubelet's reconcile period
// (10 s, cpuManagerReconcilePeriod), so that one who writes in each of these is met ever more rarely.
type backoff struct{ plan.Backoff }

const (
	firstGap = 15 * time.Second
	maxGap   = 10 * time.Minute
)

func (b *backoff) hit(now time.Time) { b.Hit(now, firstGap, maxGap) }
