package ledger

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestScaledByKernel: a value that the kernel has scaled with the period has the writer that it had, and what its owner
// wrote counts scaled, whether the limit is declared or not.
func TestScaledByKernel(t *testing.T) {
	const period = 5 * time.Millisecond
	limit := cpu.Bandwidth{Quota: 10 * time.Millisecond, Period: period}
	for name, c := range map[string]struct {
		knob    plan.Knob
		ours    plan.Value // "": nothing is written
		held    plan.Value // as the period is `now`
		now     time.Duration
		state   State
		base    plan.Value
		event   Event
		restore plan.Value // what is written once nothing is requested; "": nothing
	}{
		"ours, twice":              {plan.Quota, "30ms", "60ms", 2 * period, Ours, "20ms", Scaled, "20ms"},
		"ours, eight times":        {plan.Quota, "30ms", "240ms", 8 * period, Ours, "80ms", Scaled, "80ms"},
		"a burst of ours":          {plan.Burst, "8ms", "16ms", 2 * period, Ours, "4ms", Scaled, "4ms"},
		"no burst of ours":         {plan.Burst, "0s", "0s", 2 * period, Ours, "4ms", Scaled, "4ms"},
		"the owner's":              {plan.Quota, "", "20ms", 2 * period, Untouched, "20ms", Scaled, ""},
		"the value alone":          {plan.Quota, "30ms", "60ms", period, Foreign, "10ms", None, ""},
		"the value more":           {plan.Quota, "30ms", "120ms", 2 * period, Foreign, "10ms", None, ""},
		"three times":              {plan.Quota, "30ms", "90ms", 3 * period, Foreign, "10ms", None, ""},
		"beyond the kernel's most": {plan.Quota, "30ms", "7.68s", 256 * period, Foreign, "10ms", None, ""},
	} {
		for _, declared := range []*workload.Declared{nil, {Bandwidth: limit}} {
			if declared != nil && c.state == Foreign && c.now != period {
				continue // the declared limit is that of the other period
			}
			l, k := New(), plan.Key{ID: key.ID, Knob: c.knob}
			sight := func(v plan.Value, period time.Duration) Sight {
				d, _ := v.Time()
				return Bandwidth(cpu.Bandwidth{Quota: d, Burst: d, Period: period}, declared, c.knob)
			}
			first := plan.Time(limit.Quota)
			if c.knob == plan.Burst {
				first = "2ms"
			}
			l.See(t0, k, sight(first, period))
			if c.ours != "" {
				changes := l.Plan(t0, []plan.Intent{{Key: k, Value: c.ours}})
				l.Learn(t0, []plan.Result{{Change: changes[0], Outcome: plan.Applied, InForce: c.ours}})
			}
			event := l.See(t0.Add(time.Second), k, sight(c.held, c.now))
			if e, _ := l.Entry(k); e.State != c.state || e.Baseline != c.base || event != c.event {
				t.Errorf("%s, declared %v: %s, baseline %s, %q", name, declared != nil, e.State, e.Baseline, event)
			}
			restores := l.Restores(t0.Add(time.Second), nil, func(plan.Key) bool { return true })
			switch {
			case c.restore == "" && len(restores) == 0:
			case len(restores) != 1 || restores[0].From != c.held || restores[0].To != c.restore:
				t.Errorf("%s, declared %v: restores %+v", name, declared != nil, restores)
			}
		}
	}
}

// TestScaledBetween: the kernel scales a value of ours after it was written and before it was read back, and the
// owner's write of its own period and quota is a reset.
func TestScaledBetween(t *testing.T) {
	const period = 5 * time.Millisecond
	l := New()
	l.See(t0, key, Sight{InFile: "10ms", Period: period})
	changes := l.Plan(t0, []plan.Intent{{Key: key, Value: "30ms"}})
	l.Learn(t0, []plan.Result{{Change: changes[0], Outcome: plan.Trampled, InForce: "60ms"}})
	if event := l.See(t0, key, Sight{InFile: "60ms", Period: 2 * period}); event != Scaled {
		t.Errorf("%q", event)
	}
	if e, _ := l.Entry(key); e.State != Ours || e.Wrote != "60ms" || e.Baseline != "20ms" {
		t.Errorf("%+v", e)
	}
	if event := l.See(t0, key, Sight{InFile: "10ms", Period: period}); event != Reset {
		t.Errorf("%q", event)
	}
	if e, _ := l.Entry(key); e.State != Untouched || e.Baseline != "10ms" {
		t.Errorf("%+v", e)
	}
}
