package policy

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// TestRoomIsSharedByNamespaces: below 90 % of the threshold of 4 CPUs a refill of 0.05 is made for whoever is first.
// From there to the threshold for those that have less above their limits than an equal part.
func TestRoomIsSharedByNamespaces(t *testing.T) {
	full := map[string]float64{"attacker": 1.2}
	for _, c := range []struct {
		name     string
		used     float64
		has      map[string]float64 // CPUs above limits by namespace
		over     float64            // of these, used
		starting bool
		want     bool
	}{
		{"there is room", 3.5, nil, 0, false, true},
		{"none below 90 %", 3.59, nil, 0, false, false},
		{"nor for who is alone", 3.59, map[string]float64{"web": 0.1}, 0.1, false, false},
		{"another has it all", 3.59, full, 1.2, false, true},
		{"above 90 %", 3.8, full, 1.2, false, true},
		{"not above the threshold", 3.98, full, 1.2, false, false},
		{"granted to another, who does not use it", 3.5, map[string]float64{"attacker": 5}, 0, false, true},
		{"it has its part itself", 3.59, map[string]float64{"attacker": 0.6, "web": 0.6}, 1.2, false, false},
		{"two others", 3.59, map[string]float64{"attacker": 0.6, "web": 0.3, "third": 0.5}, 1.4, false, true},
		{"and its part is smaller then", 3.59, map[string]float64{"attacker": 0.6, "web": 0.45, "third": 0.5}, 1.4,
			false, false},
		{"nobody may have anything", 3.8, map[string]float64{"attacker": 0.1}, 0.1, false, false},
		{"a start that is alone", 3.8, nil, 0, true, true},
		{"a start within its part", 3.8, full, 1.2, true, true},
		{"a start beyond it", 3.8, map[string]float64{"attacker": 0.6, "web": 0.6}, 1.2, true, false},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.namespace, r.node.Used, r.group.Starting = "web", c.used, c.starting
		r.state.sums.tenants, r.state.sums.over = c.has, c.over
		for _, cpus := range c.has {
			r.state.sums.granted += cpus
		}
		r.state.sums.above = c.over
		out := r.answer()
		if got := len(out.Intents) == 1; got != c.want {
			t.Errorf("%s: refilled %v, want %v: %s", c.name, got, c.want, out.Views[0].Why)
		}
	}
}

// TestPendingRefillsCountForTheirNamespace: of 0.61 CPUs above limits each of two namespaces has 0.305. Where refills
// of 0.3 of a namespace do not yet show in the node's use, it has its part, and the other one has not.
func TestPendingRefillsCountForTheirNamespace(t *testing.T) {
	for of, want := range map[string]bool{"web": false, "attacker": true} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.namespace, r.node.Used = "web", 3.59
		sums := &r.state.sums
		sums.tenants, sums.over, sums.granted, sums.above = map[string]float64{"attacker": 0.6}, 0.6, 0.6, 0.6
		r.state.refills = []relief{{workload.ID{Path: "/pending"}, of, r.event.Expires, 0.3}}
		out := r.answer()
		if got := len(out.Intents) == 1; got != want {
			t.Errorf("%s: refilled %v, want %v: %s", of, got, want, out.Views[0].Why)
		}
	}
}

// TestQuietWhenWritesAreSpent: where a tenant's share is used up, its groups that are throttled all the time send no
// events for a while; those that seldom are do, and another tenant's do.
func TestQuietWhenWritesAreSpent(t *testing.T) {
	for _, c := range []struct {
		name    string
		spends  string
		lasting bool
		want    bool
	}{
		{"throttled all the time", "/a", true, true},
		{"throttled once", "/a", false, false},
		{"another has spent its own", "/b", true, false},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		if m := r.state.groups[r.group.ID]; c.lasting {
			m.throttledPeriods.recent = [lastingHits]time.Time{r.event.At.Add(-200 * ms), r.event.At.Add(-100 * ms),
				r.event.At}
		}
		r.leave(0, c.spends, tenant.Ordinary)
		v := r.answer().Views[0]
		if v.SuppressEvents != c.want || c.want != strings.Contains(v.Why, "too many writes") && c.lasting {
			t.Errorf("%s: events suppressed %v, want %v: %s", c.name, v.SuppressEvents, c.want, v.Why)
		}
		if !c.want {
			continue
		}
		for at, suppressed := range map[time.Duration]bool{900 * ms: true, 1100 * ms: false} {
			r.group.Reading.At = r.event.At.Add(at)
			r.group.Reading.Counters.Periods += 9
			r.group.Reading.Counters.Throttled += 9
			if v := r.state.Decide(r.input(r.event.At.Add(at))).Views[0]; v.SuppressEvents != suppressed {
				t.Errorf("%v later: events suppressed %v, want %v: %s", at, v.SuppressEvents, suppressed, v.Why)
			}
		}
	}
}

// TestRefusalsArePaid: what a tenant is refused uses its share up, as a refill does.
func TestRefusalsArePaid(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	r.node.Used = 3.8 // no room
	r.leave(3, "/a", tenant.Ordinary)
	for range 3 {
		if why := r.answer().Views[0].Why; !strings.Contains(why, "90 %") {
			t.Fatal(why)
		}
	}
	if r.state.Wrote(0, 0); r.state.writes.Afford(r.event.At, "/a", tenant.Ordinary) {
		t.Error("three refusals cost nothing")
	}
}

// TestOwner: a pod is its own tenant where nothing tells of namespaces, and so is a container without a pod.
func TestOwner(t *testing.T) {
	one := []Group{{ID: workload.ID{Path: "/pod/c"}}}
	for want, p := range map[tenant.Owner]Pod{
		{Pod: "/pod", Namespace: "web"}: {Group: Group{ID: workload.ID{Path: "/pod"}}, Namespace: "web",
			Containers: one},
		{Pod: "/pod"}:   {Group: Group{ID: workload.ID{Path: "/pod"}}, Containers: one},
		{Pod: "/pod/c"}: {Containers: one},
	} {
		if got := p.owner(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
