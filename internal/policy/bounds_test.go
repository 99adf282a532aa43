package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

func extra(pod, namespace, node float64) strategy.ExtraCores {
	of := func(v float64) strategy.Bound { return strategy.Bound{Set: v >= 0, CPUs: max(0, v)} }
	return strategy.ExtraCores{PerPod: of(pod), PerNamespace: of(namespace), PerNode: of(node)}
}

const unbounded = -1

// TestRefillsKeepBounds: a refill of half a CPU is made where the bounds leave so much, with what others hold.
func TestRefillsKeepBounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		extra strategy.ExtraCores
		first *answered // refilled before; nil: nobody
		later time.Duration
		by    string // the bound that refuses it; "": it is refilled
	}{
		{"exactly enough", extra(0.5, 0.5, 0.5), nil, 0, ""},
		{"a pod's", extra(0.4, 5, 5), nil, 0, "extraCoresPerPod"},
		{"a namespace's", extra(5, 0.4, 5), nil, 0, "extraCoresPerNamespace"},
		{"the node's", extra(5, 5, 0.4), nil, 0, "extraCoresPerNode"},
		{"nothing at all", extra(unbounded, unbounded, 0), nil, 0, "extraCoresPerNode"},
		{"another pod of the namespace has some", extra(unbounded, 0.9, unbounded), &answered{namespace: "web"}, ms,
			"extraCoresPerNamespace"},
		{"until its period is over", extra(unbounded, 0.9, unbounded), &answered{namespace: "web"}, 60 * ms, ""},
		{"one of another namespace", extra(unbounded, 0.9, unbounded), &answered{namespace: "batch"}, ms, ""},
		{"or the node", extra(unbounded, unbounded, 0.9), &answered{namespace: "batch"}, ms, "extraCoresPerNode"},
		{"which has enough for both", extra(0.5, 0.5, 1), &answered{namespace: "batch"}, ms, ""},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.namespace, r.extra = "web", c.extra
		if c.first != nil {
			other := *r
			other.namespace, other.group.ID = c.first.namespace, workload.ID{Path: "/b", Inode: 8}
			other.event.Inode, other.group.Reading.At = 8, t0
			other.state.Decide(other.input(t0))
			other.group.Reading.At = r.event.At
			if out := other.answer(); len(out.Intents) != 1 {
				t.Fatalf("%s: the first is not refilled: %+v", c.name, out.Views)
			}
			r.event.At, r.event.Expires = r.event.At.Add(c.later), r.event.Expires.Add(100*ms)
		}
		out := r.answer()
		v := out.Views[0]
		if refilled := len(out.Intents) == 1; refilled != (c.by == "") || v.Bounded.By != c.by {
			t.Errorf("%s: refilled %v, bounded by %+v: %s", c.name, refilled, v.Bounded, v.Why)
		}
		if c.by != "" && (!strings.Contains(v.Why, c.by) || v.Bounded.Asked != 1) {
			t.Errorf("%s: %+v, %s", c.name, v.Bounded, v.Why)
		}
	}
}

// claimant is a container of 50 ms in 100 ms with a quota in force, which is to have another one.
type claimant struct {
	namespace   string
	disk, wants time.Duration
	request     float64
	want        time.Duration
}

// TestRaisesKeepBounds: raises come to what the bounds allow and what nobody holds, by reservation; and who has more
// than its part gives the rest back for others that want it.
func TestRaisesKeepBounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		extra strategy.ExtraCores
		all   []claimant
	}{
		{"no bound", strategy.ExtraCores{}, []claimant{{"", 50 * ms, 150 * ms, 0, 150 * ms}}},
		{"a pod's", extra(0.4, unbounded, unbounded),
			[]claimant{{"", 50 * ms, 150 * ms, 0, 90 * ms}, {"", 50 * ms, 150 * ms, 0, 90 * ms}}},
		{"a namespace's, by request", extra(unbounded, 0.8, unbounded),
			[]claimant{{"x", 50 * ms, 150 * ms, 1, 70 * ms}, {"x", 50 * ms, 150 * ms, 3, 110 * ms},
				{"y", 50 * ms, 150 * ms, 1, 130 * ms}}},
		{"which bounds nothing where there is none", extra(unbounded, 0.8, unbounded),
			[]claimant{{"", 50 * ms, 150 * ms, 1, 150 * ms}, {"", 50 * ms, 150 * ms, 1, 150 * ms}}},
		{"one wants less than its part", extra(unbounded, unbounded, 1),
			[]claimant{{"", 50 * ms, 70 * ms, 0, 70 * ms}, {"", 50 * ms, 150 * ms, 0, 130 * ms}}},
		{"who was first gives back its half, and until it has the other waits", extra(unbounded, unbounded, 1),
			[]claimant{{"", 150 * ms, 150 * ms, 0, 100 * ms}, {"", 50 * ms, 150 * ms, 0, 50 * ms}}},
		{"and has it then", extra(unbounded, unbounded, 1),
			[]claimant{{"", 100 * ms, 100 * ms, 0, 100 * ms}, {"", 50 * ms, 150 * ms, 0, 100 * ms}}},
		{"what is being given back is not to be had yet", extra(unbounded, unbounded, 1),
			[]claimant{{"", 150 * ms, 50 * ms, 0, 50 * ms}, {"", 50 * ms, 150 * ms, 0, 50 * ms}}},
		{"two raises in one turn have together what is left", extra(unbounded, unbounded, 1.4),
			[]claimant{{"", 150 * ms, 50 * ms, 0, 50 * ms}, {"", 50 * ms, 150 * ms, 0, 90 * ms},
				{"", 50 * ms, 150 * ms, 0, 50 * ms}}},
		{"a bound that is lower now", extra(unbounded, unbounded, 0.9),
			[]claimant{{"", 150 * ms, 150 * ms, 0, 140 * ms}}},
		{"none at all", extra(unbounded, unbounded, 0),
			[]claimant{{"", 150 * ms, 150 * ms, 0, 50 * ms}, {"", 50 * ms, 150 * ms, 0, 50 * ms}}},
	} {
		s, in := NewState(0), Input{Now: t0, Extra: c.extra, Rules: Rules{Burst: true}}
		var pods []podCandidates
		for i, b := range c.all {
			limit := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
			st := strategy.Default()
			st.Policy = strategy.CFSQuotaBurstOnly
			u := &candidate{Group: Group{ID: workload.ID{Path: fmt.Sprint(i)}, Disk: limit, Request: b.request,
				Strategy: st}, limit: limit, ceiling: math.Inf(1), now: t0,
				m: &memory{owner: tenant.Owner{Pod: fmt.Sprint(i), Namespace: b.namespace}}}
			u.Disk.Quota = b.disk
			if b.wants > b.disk { // it is throttled period after period
				u.m.everThrottled, u.m.throttledAt = true, t0
				u.m.throttledPeriods.recent = [lastingHits]time.Time{t0, t0, t0}
			}
			pods = append(pods, podCandidates{containers: []*candidate{u}})
		}
		s.boundCeilings(in, pods)
		for i, b := range c.all {
			u := pods[i].containers[0]
			u.decision = decision{min(b.wants, max(u.cap(), b.disk)), KindRaise, "it is throttled"}
			if b.wants < b.disk {
				u.decision = decision{b.wants, KindGiveBack, "it is not"}
			}
		}
		s.keepBounds(in, pods)
		for i, b := range c.all {
			u := pods[i].containers[0]
			if u.quota != b.want {
				t.Errorf("%s: %d is to have %v, want %v: %s", c.name, i, u.quota, b.want, u.why)
			}
			if cut := b.want < b.wants; cut != (u.cutBy != "") {
				t.Errorf("%s: %d cut by %q: has %v, wants %v", c.name, i, u.cutBy, b.want, b.wants)
			}
			if u.quota > u.Disk.Quota && u.cap() > u.quota {
				t.Errorf("%s: %d may use %v in the period in which it is raised to %v", c.name, i, u.cap(), u.quota)
			}
		}
	}
}

// TestAGiveBackLeavesTheRest: a group that gives a raise back, and waits for a moment to write, holds that raise and no
// more, also where no bound is for it. Another group is refilled meanwhile.
func TestAGiveBackLeavesTheRest(t *testing.T) {
	for _, e := range []strategy.ExtraCores{extra(unbounded, unbounded, 10), extra(unbounded, 10, unbounded)} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.extra = e
		raised := r.group
		raised.ID, raised.Disk.Quota = workload.ID{Path: "/b", Inode: 8}, 150*ms
		in := r.input(r.event.At)
		in.Pods = append(in.Pods, Pod{Ceiling: math.Inf(1), Containers: []Group{raised}})
		out := r.state.Decide(in)
		if len(out.Intents) > 0 || !strings.Contains(out.Views[1].Why, "waiting for a moment") {
			t.Fatalf("it proves nothing: %+v", out.Views[1])
		}
		r.state.extra.Bound(extra(unbounded, unbounded, 10))
		if left, _ := r.state.extra.Left(r.group.ID, tenant.Owner{}); left != 9 {
			t.Errorf("%+v: beside a raise of 1 CPU %v of 10 are left", e, left)
		}
		if out := r.answer(); len(out.Intents) != 1 {
			t.Errorf("%+v: not refilled: %s", e, out.Views[0].Why)
		}
	}
}

// TestNoPartOfAForeignQuota: a quota that is left alone is not said to come down to its part.
func TestNoPartOfAForeignQuota(t *testing.T) {
	u := raisedTo("/a", 50*ms, 150*ms)
	u.quota, u.QuotaBlocked = u.Disk.Quota, plan.Foreign
	s, in, pods := NewState(0), Input{Now: t0, Extra: extra(0, 0, 0)}, []podCandidates{{containers: []*candidate{u}}}
	s.boundCeilings(in, pods)
	if s.keepBounds(in, pods); u.quota != u.Disk.Quota || u.kind != "" {
		t.Errorf("%v, %s: %s", u.quota, u.kind, u.why)
	}
}

// TestCapOfACeiling: a ceiling in CPUs gives the cap to the microsecond, and no more and no less: less by a float's
// error would have a quota lowered that is right.
func TestCapOfACeiling(t *testing.T) {
	limit := cpu.Bandwidth{Quota: 96 * ms, Period: 100 * ms}
	u := &candidate{Group: Group{Disk: limit}, limit: limit}
	u.Strategy.CFSQuotaBurstPercent = 300
	for micros := time.Duration(0); micros < 192_000; micros += 7 {
		u.ceiling = u.limit.CPUs() + (micros*time.Microsecond).Seconds()*10
		if got, want := u.cap(), u.limit.Quota+micros*time.Microsecond; got != want {
			t.Fatalf("%v above the limit: the cap is %v, want %v", micros*time.Microsecond, got, want)
		}
	}
}

// raisedTo is a candidate of a limit, with another quota in its file.
func raisedTo(path string, limit, quota time.Duration) *candidate {
	b := cpu.Bandwidth{Quota: limit, Period: 100 * ms}
	u := &candidate{Group: Group{ID: workload.ID{Path: path}, Disk: b}, m: &memory{}, limit: b, ceiling: math.Inf(1),
		now: t0}
	u.Disk.Quota = quota
	return u
}

// TestItselfHoldsForItsContainers: where a pod's own limit binds first, what it is raised by counts, and what its
// containers are raised by within it does not.
func TestItselfHoldsForItsContainers(t *testing.T) {
	s, now := NewState(0), t0
	for _, itself := range []bool{false, true, false} { // what counted before counts for one more period
		p := podCandidates{pod: raisedTo("/p", 100*ms, 120*ms),
			containers: []*candidate{raisedTo("/p/a", 80*ms, 100*ms), raisedTo("/p/b", 80*ms, 120*ms)}, itself: itself}
		p.pod.isPod = true
		for range 2 {
			now = now.Add(100 * ms)
			s.boundCeilings(Input{Now: now, Extra: extra(5, 5, 5)}, []podCandidates{p})
		}
		left, _ := s.extra.Left(workload.ID{Path: "/other"}, p.pod.m.owner)
		if got, want := 5-left, map[bool]float64{true: 0.2, false: 0.6}[itself]; math.Abs(got-want) > 1e-9 {
			t.Errorf("itself %v: %v CPUs are held, want %v", itself, got, want)
		}
	}
}

// TestCeilingsWithinBounds: what a refill was handed is held until its period ends, and no longer. Where the kernel
// takes no quota above the pod's, a container that holds nothing itself is not raised above that.
func TestCeilingsWithinBounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration
		nested bool
		itself bool
		pod    time.Duration // its quota now
		want   float64       // CPUs that the container of 0.5 may use
	}{
		{"while the refill's period lasts", 99 * ms, true, false, 100 * ms, 1.1},
		{"after its end", 100 * ms, true, false, 100 * ms, 1.5},
		{"in a pod that is raised itself", 100 * ms, true, true, 120 * ms, 1.2},
		{"whose quota is less than the limit", 100 * ms, true, true, 40 * ms, 0.5},
		{"and on a kernel that does not mind", 100 * ms, false, true, 120 * ms, math.Inf(1)},
	} {
		s := NewState(0)
		s.extra.Bound(extra(5, 5, 1))
		s.extra.HoldUntil(workload.ID{Path: "/other"}, tenant.Owner{}, 0.4, t0.Add(100*ms))
		u := raisedTo("/p/a", 50*ms, 50*ms)
		p := podCandidates{pod: raisedTo("/p", 100*ms, c.pod), containers: []*candidate{u}, itself: c.itself}
		p.pod.isPod = true
		in := Input{Now: t0.Add(c.after), Extra: extra(5, 5, 1), Rules: Rules{Nested: c.nested}}
		s.boundCeilings(in, []podCandidates{p})
		if math.Abs(u.ceiling-c.want) > 1e-9 {
			t.Errorf("%s: up to %v CPUs, want %v", c.name, u.ceiling, c.want)
		}
	}
}
