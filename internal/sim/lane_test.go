package sim

import (
	"testing"
	"time"
)

// TestLanes: the jobs of a lane run one after the other, beside those of another one.
func TestLanes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		lanes [3]int
		want  [3]time.Duration // when each is done, the first ones first
	}{
		{[3]int{0, 0, 0}, [3]time.Duration{10 * ms, 10 * ms, 20 * ms}},
		{[3]int{1, 1, 1}, [3]time.Duration{10 * ms, 20 * ms, 30 * ms}},
		{[3]int{1, 1, 2}, [3]time.Duration{10 * ms, 10 * ms, 20 * ms}},
	} {
		k := New(Config{CPUs: 4})
		k.AddGroup("/a")
		var jobs []Job
		for _, lane := range c.lanes {
			jobs = append(jobs, Job{Cost: 10 * ms, Lane: lane})
		}
		k.SetLoad("/a", Script(2, jobs...))
		begin := k.Now()
		k.Advance(time.Second)
		for i, r := range k.Responses("/a") {
			if got := r.Done.Sub(begin); got != c.want[i] {
				t.Errorf("lanes %v: job %d is done after %v, want %v", c.lanes, i, got, c.want[i])
			}
		}
		if n := len(k.Responses("/a")); n != len(jobs) {
			t.Errorf("lanes %v: %d jobs are done", c.lanes, n)
		}
	}
}

// TestExpiryAndWallTime: a period timer fires when it is told to, and throttled time is counted by the wall: half of
// each period, of two threads with a quota of one CPU.
func TestExpiryAndWallTime(t *testing.T) {
	k := New(Config{CPUs: 4, Seed: 5})
	k.AddGroup("/a")
	if err := k.ForeignWrite("a/cpu.max", "100000 100000"); err != nil {
		t.Fatal(err)
	}
	at := k.Now().Add(-30 * time.Millisecond) // and so 70 ms from now
	k.SetExpiry("/a", at)
	k.SetLoad("/a", Spin(2))
	k.Advance(70 * time.Millisecond)
	before := k.ThrottledWall("/a")
	k.Advance(time.Second)
	if got := k.ThrottledWall("/a") - before; got != 500*time.Millisecond {
		t.Errorf("throttled for %v of a second, want 500ms", got)
	}
	if first := k.Periods("/a")[0].To; first.Sub(at) != 100*time.Millisecond {
		t.Errorf("the timer fires first %v late", first.Sub(at)-100*time.Millisecond)
	}
	if got := k.NextExpiry("/a").Sub(at) % (100 * time.Millisecond); got != 0 {
		t.Errorf("the timer fires %v late", got)
	}
}
