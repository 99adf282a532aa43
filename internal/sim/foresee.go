package sim

import (
	"time"

	"plimsoll/internal/bandwidth"
)

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
