package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// TestRunWaits: beside an online spinner that has a CPU reserved, an offline one runs on the same CPU. The agent counts
// the shortfall and its cause, and how long online threads wait.
func TestRunWaits(t *testing.T) {
	s := newShipped(t)
	web, batch := cgrouptest.New(t), cgrouptest.New(t)
	cgrouptest.Pin(t, 0, web.Spin(1)[0], batch.Spin(1)[0])
	s.write(fmt.Sprintf("overrides:\n- {cgroup: %q, class: LS, request: 1}\n- {cgroup: %q, class: BE}\n", web.Path, batch.Path))
	s.flags = append(s.flags, "--waits")
	agent := s.start()
	eventually(t, patience(20*time.Second), func() string {
		status := s.status()
		if status.Waits == nil || status.Waits.Problem != "" || len(status.Waits.Ranks) != 2 {
			return fmt.Sprintf("waits: %+v", status.Waits)
		}
		for _, r := range status.Waits.Ranks {
			var n int64
			for _, l := range r.Lengths {
				n += l.N
			}
			if (r.Rank != strategy.Online && r.Rank != strategy.Offline) || r.Waits == 0 || n != r.Waits || r.Time < 100*ms {
				return fmt.Sprintf("rank %+v", r)
			}
		}
		w, b := waitedOf(status, web.Path), waitedOf(status, batch.Path)
		if w == nil || b == nil {
			return "a container is not measured"
		}
		if short(w) < 200*ms || short(b) != 0 || w.Wanted < w.Received || w.Wanted < time.Second {
			return fmt.Sprintf("web %+v, batch %+v", w, b)
		}
		return ""
	})
	agent.stop(syscall.SIGTERM)
}

func waitedOf(s report.Status, cgroup string) *report.Waited {
	for _, c := range s.Containers {
		if c.Cgroup == cgroup {
			return c.Totals.Waited
		}
	}
	return nil
}

// short is the shortfall behind neighbours.
func short(w *report.Waited) time.Duration {
	for _, v := range w.Waits {
		if v.Cause == report.CauseNeighbour {
			return v.Short
		}
	}
	return 0
}
