package record

import (
	"time"

	"plimsoll/internal/report"
)

// throttles sums up a group's throttles, so that the totals never decrease. The eBPF programs forget a group that is
// unsubscribed (its policy is none for a while) and count from zero afterwards; meanwhile the time lost is estimated.
type throttles struct {
	before   report.Throttles // eBPF counts before the last unsubscription
	now      report.Throttles // eBPF counts since then
	ever     bool
	estimate time.Duration // of the time lost, at the last call
	guessed  time.Duration // the part of the estimate without eBPF counts
}

// add adds the eBPF counts of a watched group, and puts the sums into totals, which contains the estimate.
func (h *throttles) add(t report.Throttles, watched bool, totals *report.Totals) {
	if watched {
		t.Uses = nil // only the load line needs them, and they take a thousand bytes a group
		if t.Begun < h.now.Begun || t.Wall < h.now.Wall {
			h.before = h.before.Plus(h.now)
			h.before.Last = 0 // its last period has ended
		}
		h.now, h.ever = t, true
	} else {
		h.guessed += totals.ThrottledWall - h.estimate
	}
	h.estimate = totals.ThrottledWall
	if h.ever {
		sum := h.now
		if h.before.Begun > 0 {
			sum = sum.Plus(h.before)
		}
		totals.Events, totals.ThrottledWall = &sum, sum.Wall+h.guessed
	}
}
