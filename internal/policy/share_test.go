package policy

import (
	"math"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// beside is a raised group on the node of a start, which has used 2 CPUs for a second, of a limit of 0.5, and is
// refilled up to the threshold of 4 CPUs.
func beside(t *testing.T) (r *answered, raised Group) {
	t.Helper()
	r = newAnswered(strategy.CFSQuotaBurstOnly)
	raised = r.group
	raised.ID = workload.ID{Path: "/raised", Inode: 8}
	in := r.input(t0)
	in.Pods = []Pod{{Ceiling: math.Inf(1), Containers: []Group{raised}}}
	r.state.Decide(in)
	raised.Disk.Quota = 150 * ms
	r.group.Starting = true
	r.group.Reading.Counters.Usage = 2 * time.Second
	r.node.Used = 3.94 // room for half of a quota
	if out := r.answer(); len(out.Intents) != 1 {
		t.Fatalf("the start is not refilled: %+v", out.Views)
	}
	return r, raised
}

// TestStartsCostNoRaises: a raise is taken back where the node is overloaded without what a start uses above its limit.
func TestStartsCostNoRaises(t *testing.T) {
	for _, c := range []struct {
		name  string
		used  float64       // of the node
		after time.Duration // the throttle
		start func(g *Group, after time.Duration)
		want  bool
	}{
		{"by the start", 4.05, 100 * ms, goesOn, false},
		{"for longer", 4.05, 3 * time.Second, goesOn, false},
		{"by others", 5.6, 100 * ms, goesOn, true},
		{"it is ready", 4.05, 100 * ms, func(g *Group, after time.Duration) { goesOn(g, after); g.Starting = false },
			false},
		{"it has been ready for a while", 4.05, 2 * time.Second,
			func(g *Group, after time.Duration) { goesOn(g, after); g.Starting = false }, true},
		{"it uses nothing any more", 4.05, time.Second, func(*Group, time.Duration) {}, true},
		{"it is not looked at", 4.05, time.Second, func(g *Group, _ time.Duration) { g.Looked = false }, true},
		{"it has no limit", 4.05, 100 * ms, func(g *Group, after time.Duration) {
			goesOn(g, after)
			g.Disk.Quota = cpu.Unlimited
		}, true},
	} {
		r, raised := beside(t)
		guarded := false
		before := r.group
		for at := 100 * ms; at <= c.after; at += 100 * ms {
			r.group = before
			c.start(&r.group, at)
			now := r.event.At.Add(at)
			r.group.Reading.At, raised.Reading.At = now, now
			in := r.input(now)
			in.Node.Used = c.used
			in.Pods = append(in.Pods, Pod{Ceiling: math.Inf(1), Containers: []Group{raised}})
			out := r.state.Decide(in)
			guarded = guarded || out.Kinds[KindGuard] > 0
		}
		if guarded != c.want {
			t.Errorf("overloaded, %s: a raise taken back %v, want %v", c.name, guarded, c.want)
		}
	}
}

// TestStartsDoNotCountInWhatIsShed: where others overload the node too, raises make up for those alone.
func TestStartsDoNotCountInWhatIsShed(t *testing.T) {
	raised := func() *candidate {
		b := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
		u := &candidate{Group: Group{Disk: b}, m: &memory{}, limit: b, now: t0}
		u.Disk.Quota = 150 * ms
		u.m.history.Add(sample.Usage{From: t0.Add(-time.Second), To: t0, Used: time.Second}, time.Minute)
		return u
	}
	s, units := NewState(0), []*candidate{raised(), raised()}
	s.pool.starts = 1.5
	s.guard(Input{Now: t0, Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 50, Used: 5.6}}, units,
		newOutput())
	if units[0].kind != KindGuard || units[1].kind == KindGuard {
		t.Errorf("%+v, %+v: want half a CPU taken back, of the first", units[0].decision, units[1].decision)
	}
}

// goesOn has a start use 2 CPUs.
func goesOn(g *Group, after time.Duration) { g.Reading.Counters.Usage += 2 * after }

// TestStartInAPodCountsOnce: what a pod uses is what its containers use.
func TestStartInAPodCountsOnce(t *testing.T) {
	of := func(quota, used time.Duration) *candidate {
		m := &memory{started: t0}
		m.history.Add(sample.Usage{From: t0.Add(-time.Second), To: t0, Used: used}, time.Minute)
		return &candidate{Group: Group{Disk: cpu.Bandwidth{Quota: quota, Period: 100 * ms}}, m: m, now: t0}
	}
	for _, c := range []struct {
		name string
		pod  podCandidates
		want float64
	}{
		{"no pod", podCandidates{containers: []*candidate{of(50*ms, time.Second), of(50*ms, 600*ms)}}, 0.6},
		{"the same limit", podCandidates{pod: of(50*ms, time.Second), containers: []*candidate{of(50*ms, time.Second)}},
			0.5},
		{"a limit of the pod alone", podCandidates{pod: of(50*ms, time.Second),
			containers: []*candidate{of(cpu.Unlimited, time.Second)}}, 0.5},
	} {
		if got := poolOf([]podCandidates{c.pod}).starts; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v CPUs, want %v", c.name, got, c.want)
		}
	}
}
