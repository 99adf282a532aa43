package trial

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestRefillsWithoutEffect: on a kernel that does nothing at an unchanged write, throttles are answered by raises after
// three refills, and the status says so; no time counts as saved. A refill is tried again after a minute, and two
// minutes later; once it has effect, throttles are ended by refills again.
func TestRefillsWithoutEffect(t *testing.T) {
	for name, ahead := range map[string]bool{"begun": false, "foreseen": true} {
		t.Run(name, func(t *testing.T) {
			g := Group{Path: "/lab/web", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.CFSQuotaBurstOnly),
				Load: sim.Periodic(5*time.Second, sim.Fixed(300*ms), 2)}
			w := mustNew(t, Scenario{Kernel: mainline(4, 1), Threshold: 80, Events: true, Ahead: ahead,
				Groups: []Group{g}})
			w.Kernel.Ignores = true
			w.Run(30*time.Second, nil)
			c, e := w.Agent.Status().Containers[0], w.Agent.Status().Events
			if c.Totals.Ineffective != 3 || e.Ineffective != 3 || c.Totals.Refills+e.Refills+c.Totals.Unneeded != 0 ||
				c.Totals.WallSaved != 0 || c.RefillsOff == nil {
				t.Fatalf("%+v, %+v", c, e)
			}
			if problems := strings.Join(w.Agent.Status().Problems, "\n"); !strings.Contains(problems,
				"refills have no effect") {
				t.Errorf("problems %q", problems)
			}
			tried := func() int64 { return w.Agent.Status().Writes.Decisions[string(policy.KindRefill)] }
			refills, raises, still := tried(), c.Totals.Raises, w.Kernel.Throttled(g.Path)
			w.Run(24*time.Second, nil)
			if got := w.Agent.Status().Containers[0].Totals.Raises; got <= raises || tried() != refills {
				t.Errorf("%d raises, then %d; %d refills, then %d", raises, got, refills, tried())
			}
			// A throttle with an event is answered by a raise at the next turn; without events, it is found after its
			// period.
			polled := mustNew(t, Scenario{Kernel: mainline(4, 1), Threshold: 80, Groups: []Group{g}})
			polled.Run(24*time.Second, nil)
			if still = w.Kernel.Throttled(g.Path) - still; still > polled.Kernel.Throttled(g.Path) {
				t.Errorf("five jobs were throttled for %v, and polled for %v", still, polled.Kernel.Throttled(g.Path))
			}
			w.Run(36*time.Second, nil)
			if c := w.Agent.Status().Containers[0]; c.Totals.Ineffective != 4 || c.RefillsOff == nil {
				t.Errorf("not tried again after a minute: %+v", c)
			}
			w.Kernel.Ignores = false
			w.Run(3*time.Minute, nil)
			s := w.Agent.Status()
			if c := s.Containers[0]; c.Totals.Ineffective != 4 || c.Totals.Refills < 5 || c.RefillsOff != nil ||
				c.Totals.WallSaved == 0 || len(s.Problems) != 0 {
				t.Errorf("the kernel refills again: %+v; problems %q", c, s.Problems)
			}
			raises = s.Containers[0].Totals.Raises
			w.Run(time.Minute, nil)
			if got := w.Agent.Status().Containers[0].Totals.Raises; got != raises {
				t.Errorf("still raised: %d, then %d", raises, got)
			}
		})
	}
}

// TestEffectsAreSeen: on a kernel that refills, a refill at a throttle has effect, and a refill ahead of one
// has effect or was not needed: no refill counts as ineffective.
func TestEffectsAreSeen(t *testing.T) {
	var sum report.Events
	for seed := range uint64(20) {
		var groups []Group
		for i, load := range []sim.Load{sim.Poisson(6, sim.Exponential(50*ms), 4),
			sim.Periodic(700*ms, sim.Fixed(120*ms), 2), sim.OnOff(2*time.Second, 5*time.Second, 2)} {
			groups = append(groups, Group{Path: "/lab/" + string(rune('a'+i)), Quota: 50 * ms, Period: 100 * ms,
				Strategy: with(strategy.Auto), Load: load})
		}
		w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: 80, Events: true, Ahead: seed%4 > 1,
			Groups: groups})
		w.Run(time.Minute, nil)
		s := w.Agent.Status()
		tried := s.Writes.Decisions[string(policy.KindRefill)]
		e := s.Events
		if pending := tried - e.Refills - e.Unneeded - e.Ineffective; e.Ineffective != 0 || pending < 0 ||
			pending > int64(len(groups)) {
			t.Errorf("seed %d: %d refills, of which %d had effect, %d were not needed, %d had none", seed, tried,
				e.Refills, e.Unneeded, e.Ineffective)
		}
		sum.Refills, sum.Unneeded = sum.Refills+e.Refills, sum.Unneeded+e.Unneeded
	}
	t.Logf("%d had effect, %d were not needed", sum.Refills, sum.Unneeded)
	if sum.Unneeded == 0 || sum.Refills < 4*sum.Unneeded {
		t.Errorf("%d had effect, %d were not needed", sum.Refills, sum.Unneeded)
	}
}

// TestNoRefillHasEffect: after ineffective refills in several tenants, all groups are raised at once when they are
// throttled, also those without a refill of their own; and one refill with effect is enough to trust refills again.
func TestNoRefillHasEffect(t *testing.T) {
	var groups []Group
	for i := range 5 { // throttled in one period, in turns
		groups = append(groups, Group{Path: "/lab/" + string(rune('a'+i)), Quota: 50 * ms, Period: 100 * ms,
			Strategy: with(strategy.CFSQuotaBurstOnly),
			Load:     sim.Periodic(time.Duration(7+i)*time.Second, sim.Fixed(80*ms), 2)})
	}
	w := mustNew(t, Scenario{Kernel: mainline(4, 1), Threshold: 80, Events: true, Groups: groups})
	w.Kernel.Ignores = true
	w.Run(50*time.Second, nil)
	s := w.Agent.Status()
	if s.Events.RefillsOff == nil || s.Events.Ineffective != 3 || s.Events.Refills != 0 {
		t.Fatalf("%+v", s.Events)
	}
	if problems := strings.Join(s.Problems, "\n"); problems == "" ||
		strings.Count(problems, "refills have no effect on this node") != 1 {
		t.Errorf("problems %q", problems)
	}
	for _, c := range s.Containers {
		if c.Totals.Raises == 0 {
			t.Errorf("%s was never raised: %s", c.Name, c.Why)
		}
	}
	w.Kernel.Ignores = false
	w.Run(time.Minute, nil)
	if s := w.Agent.Status(); s.Events.RefillsOff != nil || s.Events.Refills == 0 || len(s.Problems) != 0 {
		t.Errorf("the kernel refills again: %+v, problems %q", s.Events, s.Problems)
	}
}
