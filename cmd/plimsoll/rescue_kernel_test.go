package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// spurts has a process run for a while each time, and stand still in between.
func spurts(t *testing.T, p *cgrouptest.Process, times int, run, rest time.Duration) {
	t.Helper()
	for range times {
		for _, step := range []struct {
			signal syscall.Signal
			wait   time.Duration
		}{{syscall.SIGCONT, run}, {syscall.SIGSTOP, rest}} {
			if err := syscall.Kill(p.PID(), step.signal); err != nil {
				t.Fatal(err)
			}
			time.Sleep(step.wait)
		}
	}
}

// TestRunRescues: spurts of more than the limit are throttled for a moment only, while no value moves. A kernel that has
// no burst to rewrite raises the quota, and gives it back.
func TestRunRescues(t *testing.T) {
	s := newShipped(t)
	g := cgrouptest.New(t)
	g.Limit(hogLimit)
	p := g.Spin(1)[0]
	before := files(t, g)
	s.configure("cfsQuotaBurstOnly", g.Path)
	agent := s.start()
	if e := s.status().Events; !e.Heard {
		t.Fatalf("the kernel does not tell of throttles: %s", e.Why)
	}
	spurts(t, p, 3, 40*ms, patience(400*ms)) // the agent gets to know the node
	stop := watch(t, g)
	already := s.status().Events.Rescues
	spurts(t, p, 20, 40*ms, 400*ms)
	readings := stop()
	status := s.status()
	switch rescues := status.Events.Rescues - already; {
	case !hasBurst(g):
		if c := status.Containers[0]; c.Totals.Raises == 0 {
			t.Errorf("neither rescued nor raised: %s", c.Why)
		}
	case rescues < 5:
		t.Errorf("%d of 20 spurts were rescued; %s; node %+v", rescues, status.Containers[0].Why, status.Node)
	default:
		t.Logf("%d rescues, p50 %v, p99 %v", rescues, status.Events.DelayP50, status.Events.DelayP99)
		same(t, 0, before, g)
	}
	if !emulated() {
		checkCap(t, readings, 3*hogLimit)
	}
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestRunPolls: asked to, the agent does without the kernel's word, and says so.
func TestRunPolls(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	s.configure("cfsQuotaBurstOnly", g.Path)
	s.flags = append(s.flags, "--poll")
	s.start()
	if e := s.status().Events; e.Heard || e.Why == "" {
		t.Errorf("events %+v", e)
	}
	eventually(t, raiseWait, func() string {
		if quota, _ := bandwidthNow(t, g); quota > hogLimit {
			return ""
		}
		return fmt.Sprintf("not raised; node %+v", s.status().Node)
	})
}
