package sample

import (
	"time"

	"plimsoll/internal/cpu"
)

// History is what a group did of late, oldest first. The zero value is empty and ready.
type History struct {
	windows []Usage
}

// Add appends a window and forgets those that ended more than keep before it.
func (h *History) Add(u Usage, keep time.Duration) {
	drop := 0
	for drop < len(h.windows) && u.To.Sub(h.windows[drop].To) > keep {
		drop++
	}
	kept := h.windows[drop:]
	if len(kept) < cap(h.windows)/4 { // it has become idle, as most groups of a node are
		h.windows = make([]Usage, 0, len(kept)+1)
	}
	h.windows = append(append(h.windows[:0], kept...), u)
}

// Rush books that a group used its quota up before its period's end: at that rate it would have wanted more by the
// end of it. The demand is added to that of the last window.
func (h *History) Rush(at time.Time, b cpu.Bandwidth, expires time.Time) {
	left := expires.Sub(at)
	if len(h.windows) == 0 || left <= 0 || left >= b.Period || !b.Limited() {
		return
	}
	last := &h.windows[len(h.windows)-1]
	last.Rushed = max(last.Rushed, time.Duration(float64(b.Quota)*float64(b.Period)/float64(b.Period-left)))
}

// Reset forgets all.
func (h *History) Reset() { h.windows = nil }

// UsedWithin bounds what was used in the d before now from above: the windows that reach into it count whole. Where
// less is known than that, ok is false.
func (h *History) UsedWithin(now time.Time, d time.Duration) (used time.Duration, ok bool) {
	if len(h.windows) == 0 || h.windows[len(h.windows)-1].To.Before(now) {
		return 0, false
	}
	from := now.Add(-d)
	for i := len(h.windows) - 1; i >= 0; i-- {
		used += h.windows[i].Used
		if !h.windows[i].From.After(from) {
			return used, true
		}
	}
	return used, false
}

// Demands lists the demand per period of the windows that ended in the last d. Windows that are shorter than a period
// are joined.
func (h *History) Demands(period, d time.Duration) []time.Duration {
	var demands []time.Duration
	for windows := h.last(d); len(windows) > 0; {
		u, joined := join(windows, period)
		for range max(1, int(u.Elapsed()/period)) {
			demands = append(demands, u.Demand(period))
		}
		windows = windows[joined:]
	}
	return demands
}

// Peak is the largest demand in a period of the windows that ended in the last d, wherever in them the period began.
func (h *History) Peak(period, d time.Duration) time.Duration {
	var peak time.Duration
	for windows := h.last(d); len(windows) > 0; windows = windows[1:] {
		u, _ := join(windows, period)
		peak = max(peak, u.Demand(period))
	}
	return peak
}

// join makes one window of the first ones, of as many as come nearest to a period, and says how many these are. Its
// demand is no less than that of each.
func join(windows []Usage, period time.Duration) (whole Usage, n int) {
	whole = windows[0]
	for n = 1; n < len(windows) && whole.Elapsed()+windows[n].Elapsed()/2 < period; n++ {
		u := windows[n]
		whole.Rushed = max(whole.Demand(period), u.Demand(period))
		whole.To, whole.Used, whole.ThrottledTime = u.To, whole.Used+u.Used, whole.ThrottledTime+u.ThrottledTime
	}
	return whole, n
}

// Mean is the mean number of CPUs used in the windows that ended in the last d.
func (h *History) Mean(d time.Duration) float64 {
	windows := h.last(d)
	if len(windows) == 0 {
		return 0
	}
	whole := Usage{From: windows[0].From, To: windows[len(windows)-1].To}
	for _, u := range windows {
		whole.Used += u.Used
	}
	return whole.CPUs()
}

// MeanBefore is the mean number of CPUs used in the d before now. Where nothing is known, nothing counts as used.
func (h *History) MeanBefore(now time.Time, d time.Duration) float64 {
	from, used := now.Add(-d), 0.0
	for _, u := range h.windows {
		begin := u.From
		if begin.Before(from) {
			begin = from
		}
		used += u.CPUs() * max(0, u.To.Sub(begin).Seconds())
	}
	return used / d.Seconds()
}

func (h *History) last(d time.Duration) []Usage {
	if len(h.windows) == 0 {
		return nil
	}
	end := h.windows[len(h.windows)-1].To
	i := len(h.windows) - 1
	for i > 0 && end.Sub(h.windows[i-1].To) < d {
		i--
	}
	return h.windows[i:]
}
