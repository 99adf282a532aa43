package sim

import (
	"path"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// Write is one attempt to write a file.
type Write struct {
	At      time.Time
	Name    string      // as given
	Group   workload.ID // zero when the file was not there
	Data    string
	Foreign bool
	Err     error         // nil when it was done
	Granted time.Duration // the runtime that the write put into the pool
}

// Writes are all attempts to write so far, in order.
func (k *Kernel) Writes() []Write { return append([]Write(nil), k.writes...) }

// throttle is what a kernel can report of a group that has just used its runtime up.
func (k *Kernel) throttle(g *group) bandwidth.Throttle {
	return bandwidth.Throttle{Inode: g.id.Inode, At: k.Now(), Bandwidth: g.pool.Bandwidth(), Snap: g.pool.Snap(),
		Expires: k.config.Start.Add(g.expiry), UseKnown: true, Used: g.spent, Left: g.pool.Runtime()}
}

// Period is what a limited group used in one bandwidth period, between two expiries of its timer.
type Period struct {
	Group     workload.ID
	From, To  time.Time
	Used      time.Duration
	Bandwidth cpu.Bandwidth // as it stood at the end
}

// Periods are the bandwidth periods of all groups that ever had this path, oldest first. In the time between two of
// them that do not touch, nothing was used, or there was no limit.
func (k *Kernel) Periods(name string) []Period {
	return append([]Period(nil), k.periods[path.Clean("/"+name)]...)
}

// note ends a period.
func (k *Kernel) note(g *group) {
	b := g.pool.Bandwidth()
	if !b.Limited() {
		g.spent = 0
		return
	}
	to := k.config.Start.Add(g.expiry)
	k.periods[g.id.Path] = append(k.periods[g.id.Path], Period{g.id, to.Add(-b.Period), to, g.spent, b})
	g.spent = 0
}

// Responses are the jobs of a group that are done, since it was made.
func (k *Kernel) Responses(name string) []Response {
	g := k.must(name)
	list := make([]Response, len(g.responses))
	for i, r := range g.responses {
		list[i] = Response{k.config.Start.Add(r.arrived), k.config.Start.Add(r.done), r.cost}
	}
	return list
}

// Waiting is the number of jobs of a group that have arrived and are not done.
func (k *Kernel) Waiting(name string) int {
	g := k.must(name)
	return len(g.serving) + len(g.waiting)
}

// Used is the CPU time that a group and all below it have used. It is what a usage file says, also where a group
// has none.
func (k *Kernel) Used(name string) time.Duration { return k.must(name).usage }

// Runtime is the runtime in a group's pool: what the group could use at once.
func (k *Kernel) Runtime(name string) time.Duration {
	g := k.must(name)
	return g.pool.Runtime()
}

// Bandwidth is what stands in a group's files.
func (k *Kernel) Bandwidth(name string) cpu.Bandwidth {
	g := k.must(name)
	return g.pool.Bandwidth()
}

// Throttled is the time for which a group's CPUs were throttled by its own limit, with the throttle
// not ended yet included.
func (k *Kernel) Throttled(name string) time.Duration {
	g := k.must(name)
	return g.stood.booked + g.stood.pending
}

// ThrottledWall is the wall time for which a group was throttled by its own limit, however many CPUs were.
func (k *Kernel) ThrottledWall(name string) time.Duration { return k.must(name).wall }

// NextExpiry is when a group's period timer would fire next, if the group were always runnable.
func (k *Kernel) NextExpiry(name string) time.Time {
	g := k.must(name)
	at, period := g.expiry, g.pool.Bandwidth().Period
	if at <= k.now {
		at += period * ((k.now-at)/period + 1)
	}
	return k.config.Start.Add(at)
}

// Groups lists the groups, parents before their children, oldest first.
func (k *Kernel) Groups() []string {
	var names []string
	for _, g := range k.order {
		names = append(names, g.id.Path)
	}
	return names
}

// Foreseen lists the groups that will be throttled within a time, before their periods end, if the running threads go
// on: what a program in the kernel sees that reads the pool at each tick.
func (k *Kernel) Foreseen(within time.Duration) []bandwidth.Throttle {
	var list []bandwidth.Throttle
	for _, g := range k.order {
		if g.running == 0 || !g.pool.Bandwidth().Limited() || g.pool.Empty() {
			continue
		}
		if lasts := k.takes(g.pool.Runtime() / time.Duration(g.running)); lasts <= within && k.now+lasts < g.expiry {
			t := k.throttle(g)
			t.Ahead, t.Dry = true, t.At.Add(lasts)
			list = append(list, t)
		}
	}
	return list
}
