package loadline

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// fleet is a node of unlike containers with recordings, as the agent has them.
func fleet(t testing.TB, m int, u float64) Node {
	t.Helper()
	n := Node{}
	for i := range m {
		quota := 0.25 * float64(1+i%4)
		r := record(t, exp(t, u*quota), 600, uint64(i))
		n.Containers = append(n.Containers, Container{Quota: quota, Burst: quota, Demand: r})
		n.Capacity += quota
	}
	return n
}

// scaled is the node with a share of its bursts.
func (n Node) scaled(share float64) Node {
	list := slices.Clone(n.Containers)
	for i := range list {
		list[i].Burst *= share
	}
	return Node{n.Capacity, list}
}

func TestSize(t *testing.T) {
	n := fleet(t, 20, 0.7)
	s := must[Sizing](t)(Size(n.scaled, 0.001))
	if !s.Met || s.Risk > 0.001 || s.Asked <= 0.001 || s.Share <= 0 || s.Share >= 1 {
		t.Errorf("%+v", s)
	}
	exact := must[float64](t)(Coincidence(n.scaled(s.Share), Offsets))
	near(t, "the exact risk", exact, s.Risk, 0.05*s.Risk)
	if more := must[float64](t)(Risk(n.scaled(s.Share + 0.02))); more <= 0.001 {
		t.Errorf("two percent more would do: %v", more)
	}
	all := must[Sizing](t)(Size(n.scaled, 0.5))
	near(t, "share under a loose bound", all.Share, 1, 0)
	n.Capacity *= 0.75
	none := must[Sizing](t)(Size(n.scaled, 0.001))
	if none.Met || none.Share != 0 || none.Risk <= 0.001 {
		t.Errorf("too little capacity: %+v", none)
	}
}

func TestRefusesSizes(t *testing.T) {
	n := fleet(t, 3, 0.5)
	for _, bound := range []float64{0, 1, -1, math.NaN()} {
		if _, err := Size(n.scaled, bound); !errors.Is(err, ErrInput) {
			t.Errorf("bound %v: %v", bound, err)
		}
	}
	if _, err := Size(Node{Capacity: 1}.scaled, 0.1); !errors.Is(err, ErrInput) {
		t.Errorf("no containers: %v", err)
	}
}

func benchmarkSize(b *testing.B, m int) {
	n := fleet(b, m, 0.7)
	for b.Loop() {
		if _, err := Risk(n); err != nil {
			b.Fatal(err)
		}
	}
}

// The node's risk from 600 periods of each container.
func BenchmarkRisk20(b *testing.B)  { benchmarkSize(b, 20) }
func BenchmarkRisk250(b *testing.B) { benchmarkSize(b, 250) }
