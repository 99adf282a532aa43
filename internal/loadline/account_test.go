package loadline

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
func Play(n Node, demands [][]float64) []Account {
	s, groups := scale{n.Capacity}, make([]group, len(n.Containers))
	for j, c := range n.Containers {
		groups[j] = s.group(c)
	}
	c, accounts, row := newContention(groups), make([]Account, len(groups)), make([]int64, len(groups))
	for t := range demands[0] {
		before := slices.Clone(c.state)
		for j := range row {
			row[j] = s.fixed(demands[j][t])
		}
		c.period(row)
		for j := range accounts {
			accounts[j].add(groups[j], s, before[j].need+row[j]-c.state[j].need, c.state[j])
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

func TestPlayByHand(t *testing.T) {
	two := Node{Capacity: 2, Containers: []Container{{Quota: 1, Burst: 1}, {Quota: 1, Burst: 0.5}}}
	alone := Node{Capacity: 2, Containers: two.Containers[:1]}
	for _, c := range []struct {
		name    string
		node    Node
		demands [][]float64
		want    []Account
	}{
		{"a burst, then too much, then a late rest", alone, [][]float64{{1.5, 0.5, 2.5, 0, 0}}, []Account{
			// Tokens: 1, 0.5, 1, then all of 1 are used and 0.5 wait for the next quota.
			{Periods: 5, Throttled: 1, Bursts: 2, BurstTime: 1.5, Held: 0.5, Late: 1},
		}},
		{"the neighbour's quota is in use", two, [][]float64{{2, 0}, {1, 0}}, []Account{
			// The first wants two, and the second's one is its own: the tokens stay,
			// and are used in the next period's quota.
			{Periods: 2, Waiting: 1, Late: 1}, {Periods: 2},
		}},
		{"what is left is shared evenly", Node{Capacity: 3, Containers: two.Containers}, [][]float64{{2, 0}, {1.5, 0}},
			[]Account{
				// Of one that is free both get a half, though the first wants a whole.
				{Periods: 2, Bursts: 1, BurstTime: 0.5, Waiting: 0.5, Late: 1}, {Periods: 2, Bursts: 1, BurstTime: 0.5},
			}},
	} {
		if diff := cmp.Diff(c.want, Play(c.node, c.demands), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// The account of one container is its History, but that it begins with a full burst and not with what a turn left.
func TestPlayIsHistory(t *testing.T) {
	r := record(t, exp(t, 0.6), 5000, 2)
	a := Play(Node{Capacity: 4, Containers: []Container{{Quota: 1, Burst: 0.7}}}, [][]float64{r.samples})
	h := must[*History](t)(NewHistory(r, 1))
	near(t, "throttled", float64(a[0].Throttled)/5000, h.Throttled(0.7), 0.002)
	near(t, "held", a[0].Held/5000, h.Backlog(0.7), 0.002)
}

// The water level: what is free is used up, nobody gets more than he claims, and who gets less has the most.
func TestWaterLevel(t *testing.T) {
	r := stream(5)
	for range 1000 {
		c := newContention(make([]group, 1+r.below(6)))
		total := int64(0)
		for j := range c.state {
			c.state[j].claim = int64(r.below(50))
			total += c.state[j].claim
		}
		free := int64(0)
		if total > 0 {
			free = int64(r.below(int(total)))
		}
		c.level(free)
		highest := int64(0)
		for _, s := range c.state {
			free -= s.grant
			highest = max(highest, s.grant)
		}
		for _, s := range c.state {
			if s.grant > s.claim || s.grant < s.claim && s.grant < highest-1 || free != 0 {
				t.Fatalf("%+v, %d left", c.state, free)
			}
		}
	}
}
