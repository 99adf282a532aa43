package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
)

// spurt makes the group's process run until it has used so much CPU time, or should have long ago, and then wait.
func spurt(t *testing.T, g *cgrouptest.Group, p *cgrouptest.Process, cost, rest time.Duration) {
	t.Helper()
	send := func(s syscall.Signal) {
		if err := syscall.Kill(p.PID(), s); err != nil {
			t.Fatal(err)
		}
	}
	used := func() time.Duration {
		u, err := g.Tree().Usage(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	before := used()
	send(syscall.SIGCONT)
	for end := time.Now().Add(2 * time.Second); used() < before+cost && time.Now().Before(end); {
		time.Sleep(ms)
	}
	send(syscall.SIGSTOP)
	time.Sleep(rest)
}

// lasting is in how many periods a demand is to come back for a raise (policy.lastingPeriods).
const lasting = 5

// TestRunRefills: spurts of more than the limit are throttled for a moment only, while no value moves. A kernel that
// has no burst to rewrite raises the quota, and gives it back.
func TestRunRefills(t *testing.T) {
	s := newShipped(t)
	s.baseline = true
	g := cgrouptest.New(t)
	g.Prevail()
	g.Limit(hogLimit)
	p := g.Spin(1)[0]
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil { // else the demand may last as the agent starts
		t.Fatal(err)
	}
	before := files(t, g)
	s.configure("cfsQuotaBurstOnly", g.Path)
	agent := s.start()
	if e := s.status().Events; !e.Subscribed {
		t.Fatalf("no throttle events: %s", e.Why)
	}
	eventually(t, patience(5*time.Second), func() string { // the priority is known once the reader runs
		if s.status().Events.Priority == "" {
			return "the status has no priority of the thread that answers throttles"
		}
		return ""
	})
	for range 3 {
		spurt(t, g, p, 2*hogLimit, patience(400*ms)) // the agent gets to know the node
	}
	stop := watch(t, g)
	container := func() report.Container {
		c, err := report.Find(s.status().Containers, g.Path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const wanted = 10
	first, spurts := container().Totals, 0
	for done := false; !done; spurts++ {
		spurt(t, g, p, 2*hogLimit, (lasting+1)*100*ms)
		eventually(t, patience(10*time.Second), func() string { // under a raised quota nothing is throttled
			if quota, _ := bandwidthNow(t, g); quota != hogLimit {
				return fmt.Sprintf("raised to %v: %s", quota, container().Why)
			}
			return ""
		})
		c := container()
		done = spurts >= wanted && (c.Totals.Refills-first.Refills >= wanted || !hasBurst(g) && c.Totals.Raises > 0)
		if spurts == 100 { // on a full machine a spurt may last through so many periods that nothing is throttled
			t.Fatalf("after %d spurts: %+v; %s", spurts, c.Totals, c.Why)
		}
	}
	readings := stop()
	if c := container(); hasBurst(g) {
		e := s.status().Events
		t.Logf("%d spurts, %d refills (%d without need, %d without effect), p50 %v, p99 %v", spurts,
			c.Totals.Refills-first.Refills, e.Unneeded, e.Ineffective, e.DelayP50, e.DelayP99)
		if 4*e.Ineffective > e.Refills { // one may be a throttle that ended by itself
			t.Errorf("the kernel refills, and %+v counts so many as without effect", e)
		}
		switch raised := c.Totals.Raises > 0; {
		case !raised:
			same(t, 0, before, g)
		case !emulated(): // there a spurt lasts through many periods
			t.Errorf("raised: %s", c.Why)
		}
	}
	if !emulated() {
		checkCap(t, readings, 3*hogLimit)
	}
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestRunPolls: with --poll the agent uses no throttle events, and says so.
func TestRunPolls(t *testing.T) {
	s := newShipped(t)
	s.baseline = true
	g, _ := newHog(t)
	s.configure("cfsQuotaBurstOnly", g.Path)
	s.flags = append(s.flags, "--poll")
	s.start()
	if e := s.status().Events; e.Subscribed || e.Why == "" {
		t.Errorf("events %+v", e)
	}
	eventually(t, raiseWait, func() string {
		if quota, _ := bandwidthNow(t, g); quota > hogLimit {
			return ""
		}
		return fmt.Sprintf("not raised; node %+v", s.status().Node)
	})
}
