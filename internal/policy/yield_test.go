package policy

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestYoungerReadingStands: a throttle that is answered while a turn decides has a younger reading than the turn. What
// is booked in the end is what was used, once.
func TestYoungerReadingStands(t *testing.T) {
	r := newAnswered(strategy.Auto)
	at := func(after, used time.Duration, periods int64) sample.Reading {
		return sample.Reading{At: t0.Add(after), Counters: cpu.Counters{HasUsage: true, Usage: used, Periods: periods}}
	}
	var used time.Duration
	book := func(out Output) {
		for _, v := range out.Views {
			used += v.Window.Used
		}
	}
	r.group.Reading = at(900*ms, 300*ms, 9)
	turn := r.input(t0.Add(900 * ms))
	yielded := false
	turn.Yield = func() {
		if yielded {
			return
		}
		yielded = true
		r.group.Reading = at(time.Second, 400*ms, 10)
		book(r.answer())
	}
	book(r.state.Decide(turn))
	r.group.Reading = at(1100*ms, 450*ms, 11)
	book(r.state.Decide(r.input(t0.Add(1100 * ms))))
	if !yielded || used != 450*ms {
		t.Errorf("yielded %v; %v booked as used, want 450 ms", yielded, used)
	}
}

// TestDecideYields: however many pods there are, no more than one is decided on between two yields.
func TestDecideYields(t *testing.T) {
	r := newAnswered(strategy.Auto)
	in := r.input(t0.Add(2 * time.Second))
	const pods = 100
	for i := range pods {
		g := r.group
		g.ID = workload.ID{Path: fmt.Sprint("/g", i), Inode: uint64(100 + i)}
		in.Pods = append(in.Pods, Pod{Containers: []Group{g}})
	}
	yields := 0
	in.Yield = func() { yields++ }
	r.state.Decide(in)
	if want := 3 * (pods + 1); yields < want { // books, sizes, makes intents
		t.Errorf("%d yields with %d pods, want %d", yields, pods+1, want)
	}
}

// TestSumsStandDuringATurn: a throttle that is answered while a turn decides finds what the last turn has added up,
// until the turn has sums of its own.
func TestSumsStandDuringATurn(t *testing.T) {
	r := newAnswered(strategy.Auto)
	in := r.input(t0.Add(2 * time.Second))
	last := sums{above: 1, granted: 2, over: 3, tenants: map[string]float64{"a": 4}}
	r.state.sums = last
	var seen []sums
	in.Yield = func() { seen = append(seen, r.state.sums) }
	r.state.Decide(in)
	if len(seen) < 3 { // it observes, sizes and makes intents
		t.Fatalf("%d yields", len(seen))
	}
	if now := seen[1]; now.above != last.above || now.granted != last.granted || now.over != last.over ||
		now.tenants["a"] != 4 {
		t.Errorf("%+v while raises are sized, want %+v", now, last)
	}
	if seen[len(seen)-1].above != 0 {
		t.Errorf("%+v at the end", seen[len(seen)-1])
	}
}
