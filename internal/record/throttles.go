package record

import (
	"time"

	"plimsoll/internal/report"
)

// throttles adds up what is known of a group's throttles, so that it never runs backwards. The kernel's programs
// forget a group that is not subscribed to (its policy is none for a while) and begin anew; meanwhile the time lost
// is estimated.
type throttles struct {
	before   report.Throttles // what the programs had counted when they forgot
	now      report.Throttles // what they have counted since
	ever     bool
	estimate time.Duration // as of the last time
	guessed  time.Duration // of it, what nobody counted
}

// book takes what the programs tell, if they do, and puts the sums into the totals, which hold the estimate.
func (h *throttles) book(t report.Throttles, watched bool, totals *report.Totals) {
	if watched {
		t.Uses = nil // the load line has its own, and a group's would be a thousand bytes here
		if t.Begun < h.now.Begun || t.Wall < h.now.Wall {
			h.before = h.before.Plus(h.now)
			h.before.Last = 0 // there is no period of it any more
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
