package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// bounded are two hogs whose quotas are raised, with what the administrator bounds their CPUs above limits to.
type bounded struct {
	*shipped
	a, b *cgrouptest.Group
}

func newBounded(t *testing.T) bounded {
	s := newShipped(t)
	s.baseline = true
	a, _ := newHog(t)
	b, _ := newHog(t)
	return bounded{s, a, b}
}

func (w bounded) bound(cpus float64) {
	w.write(fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\ntenants: {extraCoresPerNode: "+
		"%g}\noverrides:\n  - {cgroup: %q, policy: cfsQuotaBurstOnly, startupSeconds: 0}\n  - {cgroup: %q, policy: "+
		"cfsQuotaBurstOnly, startupSeconds: 0}\n", cpus, w.a.Path, w.b.Path))
}

// TestRunKeepsBounds: the raises of two hogs come to what the administrator bounds CPUs above limits to and no more,
// each has its part, and a bound of 0 takes both back. Without events the begin of a period, when such a raise can be
// written, is seldom known.
func TestRunKeepsBounds(t *testing.T) {
	w := newBounded(t)
	bound := 0.2
	w.bound(bound)
	agent := w.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.must("status", "--json"))
		}
	})
	above := func(g *cgrouptest.Group) float64 {
		quota, _ := bandwidthNow(t, g)
		return (quota - hogLimit).Seconds() * 10
	}
	raised := func() string {
		if x, y := above(w.a), above(w.b); x+y > bound+0.001 {
			t.Fatalf("%.3f and %.3f CPUs above the limits, the bound is %g", x, y, bound)
		} else if x < bound/4 || y < bound/4 {
			return fmt.Sprintf("%.3f and %.3f CPUs above the limits, the bound is %g", x, y, bound)
		}
		return ""
	}
	eventually(t, patience(20*time.Second), raised)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * ms) {
		raised()
	}
	if n := len(w.status().Cuts); n == 0 {
		t.Error("the status does not tell of the bound")
	}
	bound = 0
	w.bound(bound)
	eventually(t, patience(10*time.Second), func() string {
		if x, y := above(w.a), above(w.b); x+y > 0 {
			return fmt.Sprintf("%.3f and %.3f CPUs above the limits, the bound is 0", x, y)
		}
		return ""
	})
	agent.stop(syscall.SIGTERM)
}

// TestRunKeepsBoundsOfRefills: with events, which refill too, two hogs use no more than their limits and the bound.
func TestRunKeepsBoundsOfRefills(t *testing.T) {
	w := newBounded(t)
	const bound = 0.2
	w.bound(bound)
	agent := w.start()
	used := func() (sum time.Duration) {
		for _, g := range []*cgrouptest.Group{w.a, w.b} {
			u, err := g.Tree().Usage(g.Path)
			if err != nil {
				t.Fatal(err)
			}
			sum += u
		}
		return sum
	}
	time.Sleep(time.Second)
	before, begin := used(), time.Now()
	time.Sleep(5 * time.Second)
	cpus := (used() - before).Seconds() / time.Since(begin).Seconds()
	limits := 2 * hogLimit.Seconds() * 10
	if t.Logf("%.3f CPUs used, limits of %g, bound %g", cpus, limits, bound); cpus > limits+bound+0.05 {
		t.Error("more than limits and bound")
	}
	agent.stop(syscall.SIGTERM)
}
