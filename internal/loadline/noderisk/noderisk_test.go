package noderisk

import (
	"math"
	"testing"
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
		list = append(list, Demand{Quota: 0.5, Asked: 2, Uses: exponential(u, 6000)})
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
		{"limits fit, bursts do not all", 5, fleet(10, 0.85), 99.9, true, 0.01, 0.99},
		{"a weaker target allows more", 5, fleet(10, 0.85), 60, true, 1, 1},
		{"twice as many pods as fit", 2.5, fleet(10, 0.7), 99.9, false, 0, 0},
		{"nobody wants anything", 1, []Demand{{Quota: 0.5, Asked: 2, Uses: []int64{600, 0}}}, 99.9, true, 1, 1},
		{"nobody is there", 1, nil, 99.9, true, 1, 1},
	} {
		r, err := LoadLine(c.capacity, c.demands, c.target)
		if err != nil || r.Met != c.met || r.Share < c.low || r.Share > c.high || c.met &&
			r.Now > 1-c.target/100+1e-12 || c.met && r.Asked < r.Now {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	if _, err := LoadLine(-1, fleet(2, 0.5), 99); err == nil {
		t.Error("a node without CPUs has a load line")
	}
}

// TestSamples: as frequent as counted, rounded up to the class, and not too many.
func TestSamples(t *testing.T) {
	few := Demand{Quota: 1.6, Uses: []int64{2, 0, 1}}.samples()
	if len(few) != 3 || few[0] != 0 || few[1] != 0 || math.Abs(few[2]-0.2) > 1e-12 {
		t.Errorf("%v", few)
	}
	many := Demand{Quota: 1, Uses: []int64{30000, 0, 30000}}.samples()
	if len(many) != samplesMost || many[samplesMost/2-1] != 0 || many[samplesMost/2] == 0 {
		t.Errorf("%d samples, %v and %v in the middle", len(many), many[samplesMost/2-1], many[samplesMost/2])
	}
}

// busyNode is a node of containers that can bear a part of its bursts, so that the part must be searched for. One
// period in ten is busy, and needs more than the limit in half of the cases; as the kernel's programs count it in ten
// minutes.
func busyNode(containers int) (capacity float64, list []Demand) {
	const periods, busy, usual, peak = 6000, 0.1, 0.2, 1.5 // the last two are means, in limits
	for i := range containers {
		quota := 0.25 * float64(1+i%4)
		d := Demand{Quota: quota, Asked: 2, Uses: make([]int64, 4*UsesPerQuota+1)}
		for class := 1; class < len(d.Uses); class++ {
			from, to := float64(class-1)/UsesPerQuota, float64(class)/UsesPerQuota
			between := func(mean float64) float64 { return math.Exp(-from/mean) - math.Exp(-to/mean) }
			d.Uses[class] = int64(periods * ((1-busy)*between(usual) + busy*between(peak)))
		}
		list = append(list, d)
		capacity += quota * ((1-busy)*usual + busy*peak)
	}
	return capacity * (1 + 2.4/math.Sqrt(float64(containers))), list
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
