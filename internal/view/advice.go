package view

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/recent"
)

// What another burst or limit would have done.
//
// Problem: the periods were recorded under a limit. A throttled period shows how long work stood still, and not how
// much of it there was, so that the demand without the limit is not known.
//
// Approach: two readings bound it, as loadline.Uncensor has it. At least: what was used is what was wanted. At most:
// while the group stood still it would have gone on, on as many CPUs as it used at most in one period. Each reading is
// taken through a limit and a burst by Lindley's recursion, period by period in their order, as loadline.History does:
// V is what is taken from the tokens and what is held back. A period with V above the burst is throttled.
//
// Known limits: a program that could do its work later, or in another order, is not asked. What refills did is not part
// of an alternative: it is what limit and burst do alone.

// demand is the mean of both readings, in CPUs.
func demand(length time.Duration, periods []recent.Period) *Demand {
	if length <= 0 {
		return nil
	}
	low, high := readings(length, periods)
	d := &Demand{Periods: len(periods)}
	for i, p := range periods {
		d.Low += low[i]
		d.High += high[i]
		d.Censored = d.Censored || p.Throttles > 0 || p.Lost > 0
	}
	all := float64(length.Microseconds()) * float64(len(periods))
	d.Low, d.High = d.Low/all, d.High/all
	return d
}

// readings are the demands of each period in us: at least, and at most.
func readings(length time.Duration, periods []recent.Period) (low, high []float64) {
	most := int32(0)
	for _, p := range periods {
		most = max(most, p.Used)
	}
	threads := max(1, math.Ceil(float64(most)/float64(length.Microseconds())))
	low, high = make([]float64, len(periods)), make([]float64, len(periods))
	for i, p := range periods {
		low[i] = float64(p.Used)
		high[i] = low[i] + float64(p.Lost)*threads
	}
	return low, high
}

// advice lists bursts at this limit, and then other limits. What is in force is among the bursts.
func advice(row Row, periods []recent.Period) []Alternative {
	if row.Limit == nil || row.Period <= 0 || *row.Limit <= 0 {
		return []Alternative{}
	}
	limit := *row.Limit
	list := []Alternative{
		{Text: "the limit alone", Limit: limit},
		{Text: "a burst of half the limit", Limit: limit, Burst: limit / 2},
		{Text: "a burst of the limit", Limit: limit, Burst: limit},
	}
	at := slices.IndexFunc(list, func(a Alternative) bool { return a.Burst == row.Burst })
	if at < 0 {
		at = len(list)
		list = append(list, Alternative{Text: "the burst that is in force", Limit: limit, Burst: row.Burst})
	}
	list[at].Now = true
	for _, times := range []float64{1.25, 1.5, 2, 3} {
		other := time.Duration(float64(limit) * times)
		text := "a limit of " + cpus(other, row.Period)
		list = append(list, Alternative{Text: text, Limit: other},
			Alternative{Text: text + ", and as much burst", Limit: other, Burst: other})
	}
	low, high := readings(row.Period, periods)
	for i := range list {
		a := &list[i]
		a.Throttled[0], a.Delay[0] = play(low, a.Limit, a.Burst)
		a.Throttled[1], a.Delay[1] = play(high, a.Limit, a.Burst)
	}
	if n, alone := throttled(limit, row.Burst, periods); alone {
		list[at].Throttled = [2]int{n, n}
	}
	return list
}

// throttled counts the periods that were throttled; false where limit and burst were not alone in it.
func throttled(limit, burst time.Duration, periods []recent.Period) (n int, alone bool) {
	for _, p := range periods {
		if p.Refills > 0 || p.Quota != recent.Us(limit) || p.Burst != recent.Us(burst) {
			return 0, false
		}
		if p.Throttles > 0 || p.Lost > 0 {
			n++
		}
	}
	return n, true
}

// play takes a demand through a limit with a burst, which is full at the begin: how many periods are throttled, and how
// many periods work is late on average (mean backlog by mean demand, Little).
func play(demand []float64, limit, burst time.Duration) (throttled int, delay float64) {
	quota, most := float64(limit.Microseconds()), float64(burst.Microseconds())
	var v, backlog, sum float64
	for _, x := range demand {
		v = max(0, v+x-quota)
		sum += x
		if held := v - most; held > tie*quota {
			throttled++
			backlog += held
		}
	}
	if sum > 0 {
		delay = backlog / sum
	}
	return throttled, delay
}

// tie is how much of a quota is no throttle: uses are counted to the last tick, and a slice may be overrun.
const tie = 0.02
