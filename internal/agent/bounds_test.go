package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestABoundIsShown: what a bound on CPUs above limits keeps a container from is in the status while it does, and is
// reported once; without throttle events and with them.
func TestABoundIsShown(t *testing.T) {
	for name, events := range map[string]bool{"polled": false, "subscribed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if events {
				w.subscribes(true)
			}
			var reported []string
			w.agent.Bounded = func(group, what string) { reported = append(reported, group+": "+what) }
			s := strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 100}}
			s.Extra.PerNode = strategy.Bound{Set: true, CPUs: 0.2}
			w.agent.Configure(s, nil)
			w.run(time.Second)
			w.alone(w.container("/a", 50*ms, sim.Script(2, sim.Job{Cost: sim.Forever, For: 10 * time.Second},
				sim.Job{Cost: sim.Forever, For: 10 * time.Second})))
			w.alone(w.container("/b", 50*ms, sim.Load{}))
			for range 90 {
				w.run(100 * ms)
				if got := w.kernel.Bandwidth("/a").Quota; got > 70*ms {
					t.Fatalf("the quota is %v, the bound allows 70ms", got)
				}
			}
			want := []report.Cut{{Object: "/a", Key: "CPUs above the limit", Asked: "1.00", Given: "0.20",
				Bound: "extraCoresPerNode"}}
			if diff := cmp.Diff(want, w.agent.Status().Cuts); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff([]string{"/a: extraCoresPerNode is the administrator's bound on CPUs above limits, " +
				"and keeps it from more"}, reported); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			w.run(20 * time.Second)
			if got := w.agent.Status().Cuts; len(got) != 0 {
				t.Errorf("nothing is wanted any more, and cuts are %+v", got)
			}
		})
	}
}
