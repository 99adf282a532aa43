package noderisk

import (
	"math"
	"testing"

	"plimsoll/internal/loadline"
)

// exponential is the counts of so many periods of a container that uses a part u of its limit on average.
func exponential(u float64, periods int) []int64 {
	uses := make([]int64, 65)
	for class := 1; class < 64; class++ {
		lo, hi := float64(class-1)/UsesPerQuota, float64(class)/UsesPerQuota
		uses[class] = int64(float64(periods) * (math.Exp(-lo/u) - math.Exp(-hi/u)))
	}
	return uses
}

func fleet(m int, u float64) []Demand {
	var list []Demand
	for range m {
		list = append(list, Demand{Quota: 0.5, Burst: 2, Uses: exponential(u, 6000)})
	}
	return list
}

func TestLoadLine(t *testing.T) {
	for _, c := range []struct {
		name      string
		capacity  float64
		demands   []Demand
		target    float64
		met       bool
		low, high float64 // share
	}{
		{"far more than they need", 20, fleet(10, 0.4), 99.9, true, 1, 1},
		{"limits fit, bursts do not all", 5, fleet(10, 0.6), 99.5, true, 0.01, 0.99},
		{"a weaker target allows more", 5, fleet(10, 0.85), 60, true, 1, 1},
		{"twice as many pods as fit", 2.5, fleet(10, 0.7), 99.9, false, 0, 0},
		{"nobody wants anything", 1, []Demand{{Quota: 0.5, Burst: 2, Uses: []int64{600, 0}}}, 99.9, true, 1, 1},
		{"nobody is there", 1, nil, 99.9, true, 1, 1},
		{"no CPU is left", 0, fleet(2, 0.5), 99.9, false, 0, 0},
		{"next to no CPU is left", 1e-4, fleet(2, 0.5), 99.9, false, 0, 0},
	} {
		r, err := LoadLine(c.capacity, c.demands, c.target)
		if err != nil || r.Met != c.met || r.Share < c.low || r.Share > c.high || c.met &&
			r.Now > 1-c.target/100+1e-12 || c.met && r.Asked < r.Now {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}

// TestRiskIsTheModels: the risk of counted periods is that of the law that they were counted of, but that each is
// rounded up to its class.
func TestRiskIsTheModels(t *testing.T) {
	for _, c := range []struct {
		containers int
		u, burst   float64
	}{{10, 0.5, 1}, {10, 0.7, 1}, {10, 0.7, 0.3}, {20, 0.7, 2}, {10, 0.85, 1}} {
		demands := fleet(c.containers, c.u)
		law, err := loadline.Exponential(c.u / 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range demands {
			demands[i].Burst = c.burst
		}
		capacity := float64(c.containers) / 2
		n, err := loadline.Homogeneous(c.containers, capacity, c.burst, law)
		if err != nil {
			t.Fatal(err)
		}
		want, err := loadline.Coincidence(n, loadline.IID)
		if err != nil {
			t.Fatal(err)
		}
		r, err := LoadLine(capacity, demands, 99.9)
		if err != nil || r.Asked < 0.9*want || r.Asked > 1.25*want {
			t.Errorf("%+v: risk %.6f, %v, of the law %.6f", c, r.Asked, err, want)
		}
	}
}

// TestRaises: a raise need not be saved. Containers that use more than their limits for ever leave their neighbour what
// is not theirs.
func TestRaises(t *testing.T) {
	steady := make([]int64, 65)
	steady[48] = 6000 // three limits in each period
	bursty := Demand{Quota: 4, Raise: 1, Uses: make([]int64, 65)}
	bursty.Uses[2], bursty.Uses[24] = 5700, 300 // 6 CPUs in 5 % of the periods
	demands := []Demand{bursty}
	for range 4 {
		demands = append(demands, Demand{Quota: 1, Burst: 1, Raise: 2, Uses: steady})
	}
	r, err := LoadLine(16, demands, 99.9)
	if err != nil || math.Abs(r.Asked-0.05) > 1e-6 || r.Share >= 1 || r.Now > 0.001 {
		t.Errorf("%+v, %v; want a risk of 5 %%", r, err)
	}
	for i := range demands {
		demands[i].Burst, demands[i].Raise = demands[i].Burst+demands[i].Raise, 0 // to be saved
	}
	if r, err := LoadLine(16, demands, 99.9); err != nil || r.Asked > 1e-9 {
		t.Errorf("saved: %+v, %v; want no risk", r, err)
	}
	peaks := Demand{Quota: 1, Burst: 1, Raise: 2, Uses: make([]int64, 65)}
	peaks.Uses[1], peaks.Uses[64] = 5700, 300 // 4 CPUs, and the cap is 3
	if r, err := LoadLine(3.5, []Demand{peaks}, 99.9); err != nil || r.Asked != 0 {
		t.Errorf("a burst on top of the cap: %+v, %v; want no risk", r, err)
	}
}

// TestRarePeaks: what a container demands in one period of a thousand is in the risk of many.
func TestRarePeaks(t *testing.T) {
	var demands []Demand
	for range 40 {
		d := Demand{Quota: 0.5, Raise: 3, Uses: make([]int64, 65)}
		d.Uses[1], d.Uses[64] = 5991, 9
		demands = append(demands, d)
	}
	want := 1 - math.Pow(1-0.0015, 40) // one at its peak is too much: 2 CPUs beside 39 thirty-seconds of one
	r, err := LoadLine(2.5, demands, 99)
	if err != nil || math.Abs(r.Asked-want) > 0.001 {
		t.Errorf("%+v, %v; want a risk of %.4f", r, err, want)
	}
}

// busyNode is a node of containers that can bear a part of its bursts, so that the part must be searched for. One
// period in ten is busy, and needs more than the limit in half of the cases; as the kernel's programs count it in ten
// minutes.
func busyNode(containers int) (capacity float64, list []Demand) {
	const periods, busy, usual, peak = 6000, 0.1, 0.2, 1.5 // the last two are means, in limits
	for i := range containers {
		quota := 0.25 * float64(1+i%4)
		d := Demand{Quota: quota, Burst: 1, Raise: 2, Uses: make([]int64, 4*UsesPerQuota+1)}
		for class := 1; class < len(d.Uses); class++ {
			from, to := float64(class-1)/UsesPerQuota, float64(class)/UsesPerQuota
			between := func(mean float64) float64 { return math.Exp(-from/mean) - math.Exp(-to/mean) }
			d.Uses[class] = int64(periods * ((1-busy)*between(usual) + busy*between(peak)))
		}
		list = append(list, d)
		capacity += quota * ((1-busy)*usual + busy*peak)
	}
	return capacity * (1 + 3/math.Sqrt(float64(containers))), list
}

// What the agent does once every Every on a node of 250 containers with a load line.
func BenchmarkLoadLine250(b *testing.B) {
	capacity, list := busyNode(250)
	for b.Loop() {
		if r, err := LoadLine(capacity, list, 99.9); err != nil || r.Share <= 0 || r.Share >= 1 {
			b.Fatalf("%+v, %v: the easy case", r, err)
		}
	}
}
