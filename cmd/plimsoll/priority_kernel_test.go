package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/strategy"
)

// comesTo is the mechanism that a request leads to on this kernel.
func comesTo(t *testing.T, asked strategy.Mechanism, g *cgrouptest.Group) strategy.Mechanism {
	t.Helper()
	_, err := g.Tree().Idle(g.Path)
	switch {
	case asked == strategy.MechanismSchedExt && noScheduler(t) == "":
		return asked
	case asked == strategy.MechanismWeight, err != nil:
		return strategy.MechanismWeight
	}
	return strategy.MechanismIdle
}

// inForce waits until the mechanism is in force for the offline group.
func (s *shipped) inForce(m strategy.Mechanism, offline *cgrouptest.Group) {
	s.t.Helper()
	eventually(s.t, patience(10*time.Second), func() string {
		c := s.status().Colocation
		switch {
		case c == nil || c.Mechanism != m || !c.InForce():
			return fmt.Sprintf("want %s in force: %+v", m, c)
		case m == strategy.MechanismSchedExt && (c.Scheduler == nil || !c.Scheduler.InForce ||
			schedExtState() != "enabled"):
			return fmt.Sprintf("the scheduler: %+v, the kernel says %s", c.Scheduler, schedExtState())
		}
		idle, err := offline.Tree().Idle(offline.Path)
		if want := m != strategy.MechanismWeight; err == nil && idle != want {
			return fmt.Sprintf("idle %v with %s", idle, m)
		}
		return ""
	})
}

func schedExtState() string {
	data, err := os.ReadFile("/sys/kernel/sched_ext/state")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// TestRunPrefers: a mechanism comes into force, a change of the configuration turns it into another one, and after a
// stop, and after kill -9 and a restore, the files are as before and no scheduler is loaded.
func TestRunPrefers(t *testing.T) {
	for _, asked := range []strategy.Mechanism{strategy.MechanismIdle, strategy.MechanismSchedExt} {
		t.Run(string(asked), func(t *testing.T) {
			s := newShipped(t)
			s.flags = []string{"--poll"}
			top := cgrouptest.New(t)
			online, offline := top.Child("online"), top.Child("offline")
			online.Idle()
			offline.Spin(1)
			if err := offline.Tree().SetWeight(offline.Path, 300); err != nil {
				t.Fatal(err)
			}
			groups := []*cgrouptest.Group{top, online, offline}
			before := files(t, groups...)
			configure := func(m strategy.Mechanism) {
				s.write(fmt.Sprintf("experimental: true\nstrategy: {policy: none, sharePoolThresholdPercent: "+
					"100}\ncolocation: {enable: true, mechanism: %s}\noverrides:\n  - {cgroup: %s, class: LS}\n  - "+
					"{cgroup: %s, class: BE}\n", m, online.Path, offline.Path))
			}
			configure(asked)
			agent := s.start()
			s.inForce(comesTo(t, asked, offline), offline)
			if asked == strategy.MechanismIdle {
				configure(strategy.MechanismWeight)
				s.inForce(strategy.MechanismWeight, offline)
				configure(strategy.MechanismNone)
				same(t, patience(10*time.Second), before, groups...)
			}
			agent.stop(syscall.SIGTERM)
			same(t, 0, before, groups...)

			configure(asked)
			agent = s.start()
			s.inForce(comesTo(t, asked, offline), offline)
			agent.stop(syscall.SIGKILL)
			if cmp.Equal(before, files(t, groups...)) {
				t.Fatal("nothing was left behind: the scenario proves nothing")
			}
			s.unlocked("restore")
			same(t, 0, before, groups...)
			eventually(t, patience(5*time.Second), func() string {
				if now := schedExtState(); now == "enabled" {
					return "a scheduler is loaded"
				}
				return ""
			})
		})
	}
}
