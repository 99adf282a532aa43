package replay

import (
	"math"
	"math/rand/v2"
	"time"
)

// When the work of a limited thread came.
//
// Problem: of a thread that was busy for seconds under its limit, the record shows how much it did, and not how many
// requests that were, or when they came. Requests of clients come at any time. That it was busy all along says more:
// at no time had less come than was done.
//
// Approach: how often work comes is seen where the group does not stand (comings). The times are drawn from that, and
// the amounts as if they were exponential, with the sum that was done. What is drawn so may have the thread idle in
// the middle. It is turned around like a wheel, to begin where it lacks most: then nowhere is less there than was done,
// and all turns of a wheel are equally likely (Takacs' ballot theorem, 1962; Vervaat's transformation, 1979). Drawing
// again until it fits gives the same, and takes for ever where a spell is long.
//
// A spell is long because much came. That there are n comings at a rate r in a time t is as likely as (r t)^n / n!, and
// that n exponential amounts with the mean m have the sum w as (w/m)^(n-1) / (n-1)!. The product is greatest near the
// root of (r t) (w/m): so the rate in a spell is taken as r times the root of w / (r m t). r m is what the group uses
// on average.
//
// Known limits: each thread's work comes by itself, as often as that of the others. A turn that takes a place apart
// moves the work in it by some ms.

// spell is what one thread did one after another: it had work at all times.
type spell []stint

// spells cuts an episode into those of its threads. A thread that was alone and had nothing to do for a while in a
// place in the middle of an episode did some of the place's work before, and some after. In the first place it may have
// done all after, and in the last one before: that is so where work does not come as soon after other work.
func (e episode) spells(h history, period time.Duration, rng *rand.Rand) (list []spell) {
	of := map[int]int{} // the spell of each lane, from 1
	for _, x := range e.work {
		if !x.follows || of[x.lane] == 0 {
			list = append(list, nil)
			of[x.lane] = len(list)
		}
		at := &list[of[x.lane]-1]
		place := int(x.ran / period)
		if x.idle == 0 || (place == e.first || place == e.last) && rng.ExpFloat64() > h.comings[bin(1)] {
			*at = append(*at, x)
			continue
		}
		if place == e.first {
			x.ran -= x.idle
		}
		rest := x
		x.work = 1 + time.Duration(rng.Float64()*float64(x.work-2)) // both are something
		rest.work -= x.work
		rest.ran, rest.follows = x.ran+x.work+x.idle, false
		rest.came = rest.ran
		*at = append(*at, x)
		list = append(list, spell{rest})
		of[x.lane] = len(list)
	}
	return list
}

// span is from when to when it was done, and how much it was.
func (w spell) span() (begin, end, work time.Duration) {
	for _, x := range w {
		work += x.work
	}
	last := w[len(w)-1]
	return w[0].ran, last.ran + last.work, work
}

// progress says how much of it was done until an instant, each time a later one. In each place it is taken to be done
// evenly.
func (w spell) progress(period time.Duration) func(until time.Duration) time.Duration {
	begin, end, _ := w.span()
	sum, next := time.Duration(0), 0
	return func(until time.Duration) time.Duration {
		for ; next < len(w); next++ {
			place := w[next].ran / period * period
			from, to := max(place, begin), min(place+period, end)
			if until < to {
				return sum + time.Duration(float64(w[next].work)*max(0, (until-from).Seconds()/(to-from).Seconds()))
			}
			sum += w[next].work
		}
		return sum
	}
}

// arrival is the time from which on work comes: all up to so much of it, in the order in which it was done.
type arrival struct{ at, upTo time.Duration }

// arrivals draws when the work of a spell came, and how much of it at a time, where so many threads did their part of
// what the group did.
func (w spell) arrivals(h history, threads int, period time.Duration, rng *rand.Rand) (list []arrival) {
	begin, end, work := w.span()
	most := float64(end-begin) / float64(period)
	usual := h.usual.Seconds() / float64(threads)
	times := math.Sqrt(work.Seconds()/most/usual) / float64(threads)
	sum := 0.0
	for at := 0.0; len(list) == 0 || at < most; at += h.comings.next(rng, most, times) {
		sum += rng.ExpFloat64()
		list = append(list, arrival{begin + time.Duration(at*float64(period)),
			time.Duration(sum * float64(time.Second))})
	}
	for i := range list {
		list[i].upTo = time.Duration(list[i].upTo.Seconds() / sum * float64(work))
	}
	return w.turned(list, period)
}

// turned begins arrivals where they lack most of what was done.
func (w spell) turned(list []arrival, period time.Duration) (turned []arrival) {
	begin, end, work := w.span()
	done := w.progress(period)
	first, least, came := 0, time.Duration(math.MaxInt64), time.Duration(0)
	for i, a := range list {
		if there := came - done(a.at); there < least {
			first, least = i, there
		}
		came = a.upTo
	}
	shift, before := list[first].at-begin, time.Duration(0)
	if first > 0 {
		before = list[first-1].upTo
	}
	for i := range list {
		a := list[(first+i)%len(list)]
		a.at, a.upTo = a.at-shift, a.upTo-before
		if first+i >= len(list) {
			a.at, a.upTo = a.at+end-begin, a.upTo+work
		}
		turned = append(turned, a)
	}
	return turned
}

// parts divides a spell by arrivals: each came with one. None came later than its thread was seen to be there in the
// place in which it was done: as the place's throttle began.
func (s *Series) parts(w spell, arrivals []arrival) (list []stint) {
	var done time.Duration
	for _, x := range w {
		place := x.ran / s.Period
		there := max(x.ran, (place+1)*s.Period-s.Places[place].Lost-x.work)
		for x.work > 0 {
			for len(arrivals) > 1 && arrivals[0].upTo <= done {
				arrivals = arrivals[1:]
			}
			part := x
			if len(arrivals) > 1 {
				part.work = min(x.work, arrivals[0].upTo-done)
			}
			part.came = min(arrivals[0].at, there)
			list = append(list, part)
			done, there = done+part.work, there+part.work
			x.ran, x.work, x.follows = x.ran+part.work, x.work-part.work, true
		}
	}
	return list
}
