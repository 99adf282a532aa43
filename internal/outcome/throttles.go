package outcome

import (
	"time"

	"plimsoll/internal/report"
)

// throttles sums up a group's throttles, so that the totals never decrease. The eBPF programs forget a group that is
// unsubscribed (its policy is none for a while) and count from zero afterwards; meanwhile the time lost is estimated.
type throttles struct {
	before   *report.Throttles // eBPF counts before the last unsubscription; nil: there was none
	now      *report.Throttles // eBPF counts since then; nil: the group was never subscribed
	sum      *report.Throttles // of both. Nobody writes to it: it is in the status as long as nothing changes
	estimate time.Duration     // of the time lost, without that by a scheduler, at the last call
	guessed  time.Duration     // the part of the estimate without eBPF counts
}

// add adds the eBPF counts of a watched group, and puts the sums into totals, which contains the estimate. The estimate
// includes what a scheduler has counted, which addThrottles adds.
func (h *throttles) add(t report.Throttles, watched bool, scheduled time.Duration, totals *report.Totals) {
	more := totals.ThrottledWall - scheduled - h.estimate // below 0 where the scheduler is ahead of the last reading
	h.estimate += max(0, more)
	if watched {
		h.take(t)
	} else {
		h.guessed += max(0, more)
	}
	if h.now == nil {
		return
	}
	totals.Events = h.sum
	totals.ThrottledWall = h.sum.Wall + h.guessed
}

// take replaces the counts since the last unsubscription.
func (h *throttles) take(t report.Throttles) {
	if h.now.Same(&t) {
		return
	}
	if h.now != nil && (t.Begun < h.now.Begun || t.Wall < h.now.Wall) {
		sum := *h.now
		if h.before != nil {
			sum = h.before.Plus(*h.now)
		}
		sum.Last = 0 // its last period has ended
		h.before = &sum
	}
	now := t // t itself would escape to the heap at each call
	h.now, h.sum = &now, &now
	if h.before != nil && h.before.Begun > 0 {
		sum := now.Plus(*h.before)
		h.sum = &sum
	}
}
