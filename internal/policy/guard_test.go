package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/workload"
)

func TestNodeState(t *testing.T) {
	for _, c := range []struct {
		name string
		node Node
		want NodeState
	}{
		{"not measured", Node{Capacity: 2, ThresholdPercent: 50}, NodeUnknown},
		{"idle", Node{Known: true, Used: 0.89, Capacity: 2, ThresholdPercent: 50}, NodeIdle},
		{"cooling from 90 %", Node{Known: true, Used: 0.9, Capacity: 2, ThresholdPercent: 50}, NodeCooling},
		{"overload from the threshold", Node{Known: true, Used: 1, Capacity: 2, ThresholdPercent: 50}, NodeOverload},
		{"no share pool", Node{Known: true, ThresholdPercent: 50}, NodeOverload},
		{"threshold 0", Node{Known: true, Capacity: 2}, NodeOverload},
	} {
		if got := c.node.State(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestHeadroomDoesNotCountRaisesTwice(t *testing.T) {
	n := Node{Known: true, Used: 1.0, Capacity: 4, ThresholdPercent: 50}
	if got := n.headroom(0); math.Abs(got-0.8) > 1e-9 {
		t.Errorf("headroom = %v, want 0.8", got)
	}
	if got := n.headroom(0.5); math.Abs(got-1.3) > 1e-9 {
		t.Errorf("headroom with half a CPU used by raises = %v, want 1.3", got)
	}
	n.Used = 3
	if got := n.headroom(0); got != 0 {
		t.Errorf("headroom of a full node = %v, want 0", got)
	}
}

func TestShed(t *testing.T) {
	n := Node{Known: true, Used: 3, Capacity: 4, ThresholdPercent: 50}
	type use struct {
		tenant string
		above  float64
	}
	for _, c := range []struct {
		name   string
		above  []use
		relief float64
		want   []int
	}{
		{"the largest is enough", []use{{"", 0.1}, {"", 1.5}, {"", 0.3}}, 0, []int{1}},
		{"the largest two", []use{{"", 0.2}, {"", 0.8}, {"", 0.4}}, 0, []int{1, 2}},
		{"not enough: all", []use{{"", 0.1}, {"", 0.1}}, 0, []int{0, 1}},
		{"what was taken back a moment ago counts", []use{{"", 0.1}, {"", 1.5}}, 1.1, nil},
		{"many small ones of one tenant", []use{{"victim", 0.9}, {"a", 0.5}, {"a", 0.5}, {"a", 0.5}}, 0.3, []int{1, 2}},
		{"until it has less than the other", []use{{"victim", 0.9}, {"a", 0.5}, {"a", 0.6}, {"victim", 0.1}}, 0,
			[]int{2, 0}},
	} {
		var raised []excess
		place := map[*candidate]int{}
		for i, a := range c.above {
			u := new(candidate)
			raised, place[u] = append(raised, excess{u, a.tenant, a.above}), i
		}
		var got []int
		for _, e := range shed(n, raised, c.relief) {
			got = append(got, place[e.u])
		}
		if !slices.Equal(c.want, got) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSharePool(t *testing.T) {
	of := func(class workload.Class, behind bool, request, used float64) *candidate {
		m := &memory{}
		m.history.Add(sample.Usage{From: t0, To: t0.Add(time.Second), Used: time.Duration(used * float64(time.Second))},
			time.Minute)
		return &candidate{Group: Group{Class: class, Deprioritized: behind, Request: request}, m: m}
	}
	n := Node{Known: true, CPUs: 16, Capacity: 16, Used: 10}
	for _, c := range []struct {
		name           string
		u              *candidate
		capacity, used float64
	}{
		{"latency sensitive: all counts", of(workload.ClassLS, false, 2, 1), 16, 10},
		{"exclusive CPUs and what is used of them", of(workload.ClassLSE, false, 4, 3), 12, 7},
		{"beyond its reservation it is in the pool", of(workload.ClassLSR, false, 2, 3), 14, 8},
		{"offline work that nothing holds back counts", of(workload.ClassBE, false, 0, 3), 16, 10},
		{"offline work that is kept behind does not", of(workload.ClassBE, true, 0, 3), 16, 7},
	} {
		got := poolOf([]podCandidates{{containers: []*candidate{c.u}}}).off(n)
		if math.Abs(got.Capacity-c.capacity) > 1e-9 || math.Abs(got.Used-c.used) > 1e-9 {
			t.Errorf("%s: %v of %v CPUs, want %v of %v", c.name, got.Used, got.Capacity, c.used, c.capacity)
		}
	}
}

// TestGrantIsWholeWhereThrottlesAreEnded: a raise that the node can only spare in part is made where throttles are
// polled for, or where the demand for it endures.
func TestGrantIsWholeWhereThrottlesAreEnded(t *testing.T) {
	n := Node{Known: true, CPUs: 4, Capacity: 4, ThresholdPercent: 50, Used: 1.25} // 0.55 below 90 % of the threshold
	for _, c := range []struct {
		name                    string
		endsThrottles, enduring bool
		want, quota             time.Duration // wished for, got
	}{
		{"polled", false, false, 150 * ms, 100 * ms},
		{"refilled", true, false, 150 * ms, 50 * ms},
		{"refilled, and whole", true, false, 100 * ms, 100 * ms},
		{"refilled, and enduring", true, true, 150 * ms, 100 * ms},
	} {
		b := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
		u := &candidate{Group: Group{Disk: b}, m: &memory{}, limit: b, now: t0,
			decision: decision{quota: c.want, kind: KindRaise}}
		for ago := demandSpan + time.Second; c.enduring && ago >= 0; ago -= b.Period {
			u.m.throttledPeriods.want(t0.Add(-ago), b.Period)
		}
		grant(n, []*candidate{u}, nil, c.endsThrottles)
		if u.quota != c.quota {
			t.Errorf("%s: %v, want %v: %s", c.name, u.quota, c.quota, u.why)
		}
	}
}
