package noderisk

import "testing"

// TestInterval: minutes that differ make it wide, minutes that are alike make it narrow, and few minutes make none. It
// holds the risk itself, and the same seed gives the same interval.
func TestInterval(t *testing.T) {
	minutes := func(n int, u func(int) float64) []Demand {
		var list []Demand
		for range 8 {
			d := Demand{Quota: 0.5, Burst: 1}
			for m := range n {
				d.Minutes = append(d.Minutes, exponential(u(m), 600))
			}
			d.Uses = make([]int64, len(d.Minutes[0]))
			for _, m := range d.Minutes {
				for class, n := range m {
					d.Uses[class] += n
				}
			}
			list = append(list, d)
		}
		return list
	}
	alike, unlike := minutes(10, func(int) float64 { return 0.5 }), minutes(10,
		func(m int) float64 { return 0.3 + 0.05*float64(m) })
	of := func(list []Demand, seed uint64) (Risk, *[2]float64) {
		t.Helper()
		r, err := LoadLine(4, list, 99.9)
		if err != nil || r.Now <= 0 {
			t.Fatal(err, r)
		}
		return r, Interval(4, list, r, seed)
	}
	r, wide := of(unlike, 1)
	if wide == nil || wide[0] >= r.Now || wide[1] <= 1.5*r.Now || wide[0] < 0 || wide[1] > 1 {
		t.Fatalf("minutes that differ: %v around %v", wide, r.Now)
	}
	if _, again := of(unlike, 1); *again != *wide {
		t.Errorf("the same seed: %v, then %v", *wide, *again)
	}
	if r, narrow := of(alike, 1); narrow == nil || narrow[1]-narrow[0] > 0.01*r.Now {
		t.Errorf("minutes that are alike: %v around %v", narrow, r.Now)
	}
	if _, few := of(minutes(leastMinutes-1, func(m int) float64 { return 0.4 + 0.1*float64(m) }), 1); few != nil {
		t.Errorf("few minutes: %v", *few)
	}
	if none := Interval(100, unlike, Risk{Share: 1}, 1); none != nil {
		t.Errorf("no risk: %v", *none)
	}
	mixed := append(minutes(6, func(m int) float64 { return 0.3 + 0.1*float64(m) }),
		Demand{Quota: 0.5, Burst: 1, Uses: exponential(0.5, 600), Minutes: [][]int64{exponential(0.5, 600)}})
	if r, got := of(mixed, 2); got == nil || got[0] > r.Now || got[1] < r.Now {
		t.Errorf("with a container that is younger: %v around %v", got, r.Now)
	}
}
