package policy

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// TestRefuse: of a tenant's throttles in one batch so many are let through as it has writes for, the others are booked,
// and those that are throttled all the time send no events for a while. Another tenant's are let through.
func TestRefuse(t *testing.T) {
	s, now := NewState(0), time.Unix(1000, 0)
	const groups = 1000
	id := func(i int) workload.ID { return workload.ID{Path: fmt.Sprint("/", i), Inode: uint64(i)} }
	for i := range groups + 2 {
		m := &memory{owner: tenant.Owner{Pod: fmt.Sprint("/", i), Namespace: "attacker"}}
		if i >= groups {
			m.owner.Namespace = "victim"
		}
		s.groups[id(i)] = m
	}
	s.groups[id(groups+1)].started = now
	throttle := func(i int, at time.Time) bandwidth.Throttle {
		return bandwidth.Throttle{Inode: uint64(i), At: at, Bandwidth: cpu.Bandwidth{Quota: 5 * ms, Period: 100 * ms}}
	}
	let := func(at time.Time) (n int) {
		b := map[string]int{}
		for i := range groups {
			if !s.Refuse(at, id(i), throttle(i, at), b) {
				n++
			}
		}
		for _, i := range []int{groups, groups + 1} {
			if s.Refuse(at, id(i), throttle(i, at), b) {
				t.Errorf("the throttle of group %d is refused", i)
			}
		}
		return n
	}
	most := int(20 * ms / (50 * time.Microsecond)) // tenant's budget over the cost of a write
	if n := let(now); n == 0 || n > most {
		t.Errorf("%d let through at once, at most %d", n, most)
	}
	last := s.groups[id(groups-1)]
	if !last.everThrottled || last.why != notRefilled+tooManyWrites || !last.quiet.Ready(now) {
		t.Errorf("after one period: %+v", last)
	}
	for range 10 {
		now = now.Add(100 * ms)
		let(now)
	}
	if last.quiet.Ready(now) {
		t.Error("a group that is throttled all the time goes on sending events")
	}
	if until := last.quiet.Until(); until.After(now.Add(firstQuiet)) {
		t.Errorf("events that came before they were suppressed make it %v", until.Sub(now))
	}
	if s.Refuse(now, id(groups+5), throttle(0, now), map[string]int{}) {
		t.Error("a group that nobody has seen is refused")
	}
	last.refilled = now.Add(ms)
	if s.Refuse(now, id(groups-1), throttle(groups-1, now), map[string]int{}) {
		t.Error("a throttle that a write has ended is refused")
	}
}
