package sample

import "time"

// Phase tracks when a group's bandwidth periods begin.
//
// Problem: a write of a quota refills the group at once. Whether the CPU used in one period stays below a cap
// depends on when in the period the write comes, and no file tells when a period began.
//
// Approach: nr_periods counts the period timer's expiries, which are exactly one period apart while the group is
// active, and keep their phase across idle times (kernel/sched/fair.c, hrtimer_forward_now in start_cfs_bandwidth
// and do_sched_cfs_period_timer). Two readings that are r apart (modulo the period) and differ by one count more,
// or less, say that an expiry lies, or does not lie, in that r. Each reading so narrows an arc of the period's
// circle; readings at intervals other than the period sweep around it.
//
// Known limits: only readings of a group that was active throughout may be given. A new period length or a
// contradiction starts afresh.
type Phase struct {
	period time.Duration
	origin time.Time     // a fixed instant: offsets are counted from it
	from   time.Duration // the arc in which the expiry lies: [from, from+width), from in [0, period)
	width  time.Duration
}

// Observe narrows the arc by a window of an active group.
func (p *Phase) Observe(u Usage, period time.Duration) {
	if period <= 0 || u.Elapsed() <= 0 {
		return
	}
	if p.period != period {
		*p = Phase{period: period, origin: u.From, width: period}
	}
	whole, rest := int64(u.Elapsed()/period), u.Elapsed()%period
	switch u.Periods {
	case whole + 1: // an expiry lies in the last rest before To
		p.narrow(p.offset(u.To.Add(-rest)), rest)
	case whole: // none lies there
		p.narrow(p.offset(u.To), period-rest)
	default: // the timer was idle for a part of the window: it says nothing
	}
}

// pinSlack is how exactly an expiry is known that the kernel tells: its timer may fire a little late.
const pinSlack = 2 * time.Millisecond

// Pin sets the phase by an expiry that the kernel told.
func (p *Phase) Pin(expiry time.Time, period time.Duration) {
	if period > pinSlack {
		*p = Phase{period: period, origin: expiry, from: period - pinSlack/2, width: pinSlack}
	}
}

// Of has the phase be of this period length: what is known of another one is forgotten.
func (p *Phase) Of(period time.Duration) {
	if p.period != period {
		p.Reset()
	}
}

// Reset forgets what is known.
func (p *Phase) Reset() { *p = Phase{} }

// Known is how exactly the phase is known: the width of the arc; false when not at all.
func (p *Phase) Known() (width time.Duration, ok bool) {
	return p.width, p.period > 0 && p.width < p.period
}

// Next is the middle of the arc of the next expiry whose middle is at or after t.
func (p *Phase) Next(t time.Time) time.Time {
	middle := p.from + p.width/2
	ahead := (middle - p.offset(t)) % p.period
	if ahead < 0 {
		ahead += p.period
	}
	return t.Add(ahead)
}

// Distance is how far t is from the nearest middle of an arc.
func (p *Phase) Distance(t time.Time) time.Duration {
	ahead := p.Next(t).Sub(t)
	return min(ahead, p.period-ahead)
}

func (p *Phase) offset(t time.Time) time.Duration {
	o := t.Sub(p.origin) % p.period
	if o < 0 {
		o += p.period
	}
	return o
}

// narrow intersects the arc with [from, from+width). Two arcs of a circle may meet in two places; then the shorter
// of the two stands as it is, which still holds the expiry. When they do not meet, an assumption was wrong.
func (p *Phase) narrow(from, width time.Duration) {
	if p.width >= p.period {
		p.from, p.width = from, width
		return
	}
	ahead := (from - p.from + p.period) % p.period // where the new arc begins, seen from the old one's begin
	switch {
	case ahead < p.width && ahead+width > p.period: // meets both ends
		if width < p.width {
			p.from, p.width = from, width
		}
	case ahead < p.width:
		p.from, p.width = from, min(p.width-ahead, width)
	case ahead+width > p.period:
		p.width = min(p.width, ahead+width-p.period)
	default:
		p.Reset()
	}
}
