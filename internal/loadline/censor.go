package loadline

import "math"

// Uncensored is what a recording that was taken under a limit says about the demand without it.
//
// A throttled period shows how long work stood still, not how much of it there was, and the recording shows the work
// again when it is done later. Two readings bound the truth. Work that waits: a run of throttled periods that ended has
// done, up to its end, all that it held back, so the sum is known and only its place in time is estimated, as early as
// the throttled time allows. Work that does not come back, or still waits when the recording ends: then the threads
// that stood still would have gone on, and each throttled period is short of its throttled time. Likely takes the first
// for runs that ended, the second for one that did not.
type Uncensored struct {
	Likely    *Recording
	Low, High float64 // mean demand: what was used, and with all throttled time added
	Throttled float64 // fraction of periods
	Saturated float64 // fraction of periods in a throttled run that lasts to the end
}

// Uncensor estimates the demand from the CPU time used in each period and the time in which threads were throttled
// (throttled_usec, which the kernel sums over CPUs).
func Uncensor(used, throttled []float64) (Uncensored, error) {
	if len(used) != len(throttled) {
		return Uncensored{}, refuse("read both from the same cpu.stat", "%d samples of use and %d of throttled time",
			len(used), len(throttled))
	}
	u := Uncensored{}
	n := float64(len(used))
	for i, x := range throttled {
		if !(x >= 0 && used[i] >= 0) || math.IsInf(x, 1) {
			return Uncensored{}, refuse("time is 0 or more, and finite", "period %d: used %v, throttled for %v", i,
				used[i], x)
		}
		u.Low += used[i] / n
		u.High += (used[i] + x) / n
		if x > 0 {
			u.Throttled += 1 / n
		}
	}
	open := len(used)
	for open > 0 && throttled[open-1] > 0 {
		open--
	}
	u.Saturated = float64(len(used)-open) / n
	demand := make([]float64, len(used))
	held := 0.0 // of the period in hand, what is done later
	for k := len(used) - 1; k >= 0; k-- {
		if k >= open {
			demand[k] = used[k] + throttled[k]
			continue
		}
		// The period before can have held back no more than is done from this one on.
		demand[k] = used[k] + held
		before := 0.0
		if k > 0 {
			before = min(throttled[k-1], demand[k])
		}
		demand[k] -= before
		held = before
	}
	var err error
	u.Likely, err = NewRecording(demand)
	return u, err
}
