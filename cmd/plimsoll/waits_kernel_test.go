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
	s.write(fmt.Sprintf("overrides:\n- {cgroup: %q, class: LS, request: 1}\n- {cgroup: %q, class: BE}\n", web.Path,
		batch.Path))
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
			if (r.Rank != strategy.Online && r.Rank != strategy.Offline) || r.Waits == 0 || n != r.Waits ||
				r.Time < 100*ms {
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

// TestRunContention: of two spinners on one CPU without limits each waits behind the other for half of its time. A
// spinner that its own limit throttles for most of the time waits behind nobody.
func TestRunContention(t *testing.T) {
	for _, c := range []struct {
		name        string
		make        func(t *testing.T) []*cgrouptest.Group
		least, most float64
	}{
		{"two without limits on one CPU", func(t *testing.T) []*cgrouptest.Group {
			a, b := cgrouptest.New(t), cgrouptest.New(t)
			cgrouptest.Pin(t, 0, a.Spin(1)[0], b.Spin(1)[0])
			return []*cgrouptest.Group{a, b}
		}, 0.4, 0.6},
		{"one behind its own limit", func(t *testing.T) []*cgrouptest.Group {
			a := cgrouptest.New(t)
			a.Limit(20 * ms)
			cgrouptest.Pin(t, 0, a.Spin(1)[0])
			return []*cgrouptest.Group{a}
		}, 0, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShipped(t)
			groups := c.make(t)
			for _, g := range groups {
				g.Prevail() // what else runs on the machine is not in the way
			}
			s.configure("none", paths(groups)...)
			s.flags = append(s.flags, "--waits")
			agent := s.start()
			defer agent.stop(syscall.SIGTERM)
			eventually(t, patience(40*time.Second), func() string {
				status := s.status()
				if status.Waits == nil || status.Waits.Problem != "" || status.Waits.Contention == nil ||
					status.Waits.Contention.Ratio == nil {
					return fmt.Sprintf("waits: %+v", status.Waits)
				}
				n := status.Waits.Contention
				share := n.Contended.Seconds() / n.Runnable.Seconds()
				t.Logf("contention %.3f in the last interval, %.3f in all: %v of %v", *n.Ratio, share, n.Contended,
					n.Runnable)
				for _, got := range []float64{*n.Ratio, share} {
					if got < c.least || got > c.most {
						t.Fatalf("contention %.3f, want %g to %g", got, c.least, c.most)
					}
				}
				for _, g := range groups {
					w := waitedOf(status, g.Path)
					if w == nil || w.Wanted < 5*time.Second {
						t.Fatalf("%s: %+v", g.Path, w)
					}
				}
				return ""
			})
		})
	}
}

func paths(groups []*cgrouptest.Group) (list []string) {
	for _, g := range groups {
		list = append(list, g.Path)
	}
	return list
}
