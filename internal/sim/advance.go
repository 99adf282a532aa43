package sim

import "time"

// Advance runs the machine for a time. All that is due at its end is done when it returns.
func (k *Kernel) Advance(d time.Duration) {
	if k.acting {
		panic("sim: Advance inside an action")
	}
	end := k.now + d
	for k.now < end {
		k.due()
		k.place()
		for k.drain() {
			k.place()
		}
		k.run(k.horizon(end))
	}
	k.due()
	k.place()
}

// due does everything that is due now.
func (k *Kernel) due() {
	for len(k.actions) > 0 && k.actions[0].at <= k.now {
		do := k.actions[0].do
		k.actions = k.actions[1:]
		k.acting = true
		do()
		k.acting = false
	}
	for _, g := range k.order {
		g.source.due(k.now)
		for g.pool.Active() && g.expiry <= k.now {
			k.expire(g)
		}
	}
}

// expire is the period timer firing.
func (k *Kernel) expire(g *group) {
	k.note(g)
	g.pool.Expire(g.standing > 0)
	if g.standing > 0 && !g.pool.Empty() {
		g.unthrottle()
	}
	g.expiry += g.pool.Bandwidth().Period
}

// unthrottle adds the time of the throttle (unthrottle_cfs_rq).
func (g *group) unthrottle() {
	g.standing = 0
	g.stood.book()
}

// wake starts the period timer of a group that was idle. The timer keeps its phase: it goes on at the first
// whole number of periods after it last fired (hrtimer_forward_now in start_cfs_bandwidth).
func (k *Kernel) wake(g *group, start func()) {
	resting := !g.pool.Active()
	start()
	if period := g.pool.Bandwidth().Period; resting && g.pool.Active() && g.expiry <= k.now {
		g.expiry += period * ((k.now-g.expiry)/period + 1)
	}
}

// place says which threads run and which stand throttled, and at what rate.
func (k *Kernel) place() {
	for _, g := range k.order {
		g.running, g.stuck = 0, 0
	}
	for _, g := range k.order {
		if n := int64(len(g.serving)); n > 0 {
			k.placeThreads(g, n)
		}
	}
	k.num, k.den = 1, 1
	if cpus := int64(k.config.CPUs); k.root.running > cpus {
		k.num, k.den = cpus, k.root.running
	}
}

// placeThreads walks from a group to the root. The first empty pool throttles its threads: they are dequeued there,
// and count nowhere above.
func (k *Kernel) placeThreads(g *group, n int64) {
	cpus := int64(k.config.CPUs)
	for at := g; at != nil; at = at.parent {
		if !at.pool.Active() {
			k.wake(at, at.pool.Touch)
		}
		if !at.pool.Empty() {
			continue
		}
		for below := g; below != at.parent; below = below.parent {
			below.stuck = min(cpus, below.stuck+n)
		}
		begins := at.standing == 0 && at.stuck > 0
		at.standing = max(at.standing, at.stuck)
		if begins && k.OnThrottle != nil {
			k.OnThrottle(k.throttle(at))
		}
		return
	}
	for at := g; at != nil; at = at.parent {
		at.running += n
	}
}

// drain empties the pools with less than a nanosecond for each running thread, and says whether there were
// any.
func (k *Kernel) drain() bool {
	found := false
	for _, g := range k.order {
		if rest := g.pool.Runtime(); g.running > 0 && rest < time.Duration(g.running) {
			g.pool.Take(rest)
			found = true
		}
	}
	return found
}

// takes is the wall time in which every running thread gets this much CPU time, rounded up: it has exactly that
// much then, for no thread gets more than a nanosecond in a nanosecond. More than an hour is as good as an hour, so
// nothing overflows.
func (k *Kernel) takes(each time.Duration) time.Duration {
	num, den := time.Duration(k.num), time.Duration(k.den)
	return (min(each, time.Hour)*den + num - 1) / num
}

// horizon is the time to the next event, at most until end.
func (k *Kernel) horizon(end time.Duration) time.Duration {
	next := end
	if len(k.actions) > 0 {
		next = min(next, k.actions[0].at)
	}
	for _, g := range k.order {
		next = min(next, g.next.At)
		if g.pool.Active() {
			next = min(next, g.expiry)
		}
		if g.running > 0 && g.pool.Bandwidth().Limited() {
			next = min(next, k.now+k.takes(g.pool.Runtime()/time.Duration(g.running)))
		}
		for _, j := range g.serving {
			next = min(next, j.until)
			if j.left != Forever && g.stuck == 0 {
				next = min(next, k.now+k.takes(j.left))
			}
		}
	}
	return max(next-k.now, 1)
}

// run lets the threads that were placed run for a time in which nothing happens.
func (k *Kernel) run(dt time.Duration) {
	k.now += dt
	each := dt * time.Duration(k.num) / time.Duration(k.den)
	for _, g := range k.order {
		if g.standing > 0 {
			g.wall += dt
		}
		g.stood.pending += dt * time.Duration(g.standing)
		if len(g.serving) == 0 || g.stuck > 0 {
			continue
		}
		used := g.source.work(each, k.now)
		for at := g; at != nil; at = at.parent {
			at.usage += used
			if at.pool.Bandwidth().Limited() {
				at.pool.Take(used)
				at.spent += used
			}
		}
	}
}
