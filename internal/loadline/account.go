package loadline

import (
	"math"
	"slices"
)

// Account is what a known demand makes of a container, in the terms of the kernel's counters (cpu.stat).
type Account struct {
	Periods   int
	Throttled int     // nr_throttled: periods in which quota and tokens did not suffice
	Bursts    int     // nr_bursts: periods that used tokens
	BurstTime float64 // burst_time (burst_usec)
	Held      float64 // the sum over periods of the work held back by the limit
	Waiting   float64 // the sum over periods of the work kept waiting by the neighbours
	Late      int     // periods whose work was not done when they ended, for either reason
}

// Play takes a node through known demands, one list a container, all of one length, by the model that shares out period
// by period. The containers begin with full bursts; their Demand is not used.
func Play(n Node, demands [][]float64) ([]Account, error) {
	if !positive(n.Capacity) || len(n.Containers) == 0 || len(demands) != len(n.Containers) {
		return nil, refuse("a list of demands for each container", "%d lists for %d containers on a capacity of %v",
			len(demands), len(n.Containers), n.Capacity)
	}
	groups := make([]group, len(n.Containers))
	s := scale{n.Capacity}
	for j, d := range demands {
		r, err := NewRecording(d)
		if err != nil {
			return nil, err
		}
		if len(d) != len(demands[0]) {
			return nil, refuse("record them together", "%d and %d periods", len(demands[0]), len(d))
		}
		c := n.Containers[j]
		c.Demand = r
		if err := c.check(n.Capacity); err != nil {
			return nil, err
		}
		groups[j] = s.group(c)
	}
	return play(newContention(groups), s, demands), nil
}

func play(c *contention, s scale, demands [][]float64) []Account {
	accounts, row := make([]Account, len(demands)), make([]int64, len(demands))
	for t := range demands[0] {
		before := slices.Clone(c.state)
		for j := range row {
			row[j] = s.fixed(demands[j][t])
		}
		c.period(row)
		for j := range accounts {
			accounts[j].add(c.groups[j], s, before[j].need+row[j]-c.state[j].need, c.state[j])
		}
	}
	for j := range accounts {
		accounts[j].Held = s.float(c.shares[j].held)
		accounts[j].Waiting = s.float(c.shares[j].waiting)
		accounts[j].Throttled = int(c.shares[j].throttled)
	}
	return accounts
}

// add books a period in which the container used some CPU time. The kernel counts what was used beyond the quota
// (__refill_cfs_bandwidth_runtime).
func (a *Account) add(g group, s scale, used int64, after holding) {
	a.Periods++
	if over := used - g.quota; over > g.slack {
		a.Bursts++
		a.BurstTime += s.float(float64(over))
	}
	if after.need > g.slack {
		a.Late++
	}
}

// Benefit is what a burst does to one container with a recorded demand: the share of its periods that are throttled and
// the mean delay in periods, without and with it.
func Benefit(r *Recording, quota, burst float64) (Outcome, error) {
	if !(burst >= 0) {
		return Outcome{}, refuse("a burst of 0 or more", "burst %v", burst)
	}
	h, err := NewHistory(r, quota)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{h.Throttled(0), h.Throttled(burst), h.Delay(0), h.Delay(burst), math.NaN()}, nil
}
