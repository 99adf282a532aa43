package loadline

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
		got, err := Play(c.node, c.demands)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// The account of one container is its History, but that it begins with a full burst and not with what a turn left.
func TestPlayIsHistory(t *testing.T) {
	r := record(t, exp(t, 0.6), 5000, 2)
	a, err := Play(Node{Capacity: 4, Containers: []Container{{Quota: 1, Burst: 0.7}}}, [][]float64{r.Samples()})
	if err != nil {
		t.Fatal(err)
	}
	h := must[*History](t)(NewHistory(r, 1))
	near(t, "throttled", float64(a[0].Throttled)/5000, h.Throttled(0.7), 0.002)
	near(t, "held", a[0].Held/5000, h.Backlog(0.7), 0.002)
	b := must[Outcome](t)(Benefit(r, 1, 0.7))
	near(t, "benefit", b.ThrottledWith, h.Throttled(0.7), 0)
	near(t, "benefit without", b.ThrottledWithout, h.Throttled(0), 0)
	if _, err := Benefit(r, 1, -1); !errors.Is(err, ErrInput) {
		t.Errorf("burst -1: %v", err)
	}
}

func TestRefusesPlays(t *testing.T) {
	n := Node{Capacity: 1, Containers: []Container{{Quota: 1}, {Quota: 1}}}
	ok := []float64{1, 2}
	for name, c := range map[string]struct {
		node    Node
		demands [][]float64
	}{
		"one list for two": {n, [][]float64{ok}}, "lengths": {n, [][]float64{ok, {1, 2, 3}}},
		"empty":       {n, [][]float64{{}, {}}},
		"NaN":         {n, [][]float64{ok, {1, math.NaN()}}},
		"no capacity": {Node{Containers: n.Containers}, [][]float64{ok, ok}},
		"no quota":    {Node{Capacity: 1, Containers: make([]Container, 1)}, [][]float64{ok}},
	} {
		if _, err := Play(c.node, c.demands); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
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
