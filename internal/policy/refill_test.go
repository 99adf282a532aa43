package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// answered is a group of 50 ms in 100 ms that was throttled at t0 + 1 s, 60 ms before its period's end.
type answered struct {
	state     *State
	group     Group
	namespace string
	node      Node
	event     bandwidth.Throttle
	held      bool
	cut       float64
	extra     strategy.ExtraCores
}

func newAnswered(p strategy.Policy) *answered {
	b := cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}
	s := strategy.Default()
	s.Policy = p
	r := &answered{
		state: NewState(0),
		group: Group{ID: workload.ID{Path: "/a", Inode: 7}, Strategy: s, Limit: b, Disk: b, Ready: true, Looked: true,
			Reading: sample.Reading{At: t0, Counters: cpu.Counters{HasUsage: true}}},
		node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 50},
		event: bandwidth.Throttle{Inode: 7, At: t0.Add(time.Second), Bandwidth: b, Snap: 50 * ms,
			Expires: t0.Add(time.Second + 60*ms)},
	}
	r.state.Decide(r.input(t0))
	r.group.Reading = sample.Reading{At: r.event.At,
		Counters: cpu.Counters{HasUsage: true, Usage: 400 * ms, Periods: 10}}
	return r
}

func (r *answered) input(now time.Time) Input {
	return Input{Now: now, Held: r.held, BurstCut: r.cut, Node: r.node, Rules: Rules{Burst: true, Refill: true},
		Subscribed: true, Extra: r.extra, Pods: []Pod{{Ceiling: math.Inf(1), Namespace: r.namespace,
			Containers: []Group{r.group}}}}
}

// leave has a tenant so many writes left, at the time of the event.
func (r *answered) leave(left int, name string, n tenant.Need) {
	count := 0
	for w := (tenant.Writes{}); w.Afford(r.event.At, name, n); count++ {
	}
	r.state.writes = tenant.Writes{}
	for range count - left {
		r.state.writes.Afford(r.event.At, name, n)
	}
	r.state.Wrote(count-left, time.Duration(count-left)*50*time.Microsecond) // as long as was thought
}

func (r *answered) answer() Output {
	return r.state.AnswerThrottles(r.input(r.event.At.Add(100*time.Microsecond)), []bandwidth.Throttle{r.event})
}

// result is what became of one intent.
func result(in plan.Intent, o plan.Outcome, at time.Time) []plan.Result {
	return []plan.Result{{Change: plan.Change{Cgroup: in.ID, Knob: in.Knob, From: in.Value, To: in.Value,
		Refill: in.Refill}, Outcome: o, InForce: in.Value, At: at}}
}

// TestAnswerThrottles: what is refilled, and why not.
func TestAnswerThrottles(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy strategy.Policy
		change func(*answered)
		why    string // "": it is refilled
	}{
		{"a throttle", strategy.CFSQuotaBurstOnly, func(*answered) {}, ""},
		{"burst only is the kernel's business", strategy.CPUBurstOnly, func(*answered) {}, "policy cpuBurstOnly"},
		{"nothing is asked for", strategy.None, func(*answered) {}, "policy none"},
		{"offline work", strategy.Auto, func(r *answered) { r.group.Class = workload.ClassBE }, "class BE"},
		{"an operator holds it", strategy.Auto, func(r *answered) { r.group.Paused = "it is paused" }, "it is paused"},
		{"another program's quota", strategy.Auto, func(r *answered) { r.group.QuotaBlocked = plan.Foreign },
			"another program"},
		{"another program's burst", strategy.Auto, func(r *answered) { r.group.BurstBlocked = plan.Foreign },
			"another program"},
		{"suppressed work", strategy.Auto, func(r *answered) { r.group.QuotaBlocked = plan.Suppressed },
			"another program"},
		{"a burst that was refused", strategy.Auto, func(r *answered) { r.group.BurstBlocked = plan.Waiting },
			"refused write"},
		{"a larger burst that was refused", strategy.Auto, func(r *answered) { r.group.BurstBlocked = plan.NoRaise },
			"refused write"},
		{"a quota that was refused", strategy.Auto, func(r *answered) { r.group.QuotaBlocked = plan.Waiting }, ""},
		{"more used than the cap", strategy.Auto, func(r *answered) {
			r.event.UseKnown, r.event.Used = true, 150*ms
		}, "the cap"},
		{"nothing may be written", strategy.Auto, func(r *answered) { r.held = true }, "held"},
		{"no task yet", strategy.Auto, func(r *answered) { r.group.Ready = false }, "just being set"},
		{"a resize is under way", strategy.Auto, func(r *answered) { r.event.Bandwidth.Quota = 40 * ms },
			"just being set"},
		{"the period ends anyway", strategy.Auto, func(r *answered) { r.event.Expires = r.event.At.Add(ms) },
			"its period ends"},
		{"it is foreseen", strategy.Auto, func(r *answered) { r.event.Ahead = true }, ""},
		{"the cap leaves no room", strategy.Auto, func(r *answered) { r.group.Strategy.CFSQuotaBurstPercent = 199 },
			"the cap"},
		{"the load line leaves no room", strategy.Auto, func(r *answered) { r.cut = 0.75 },
			"the cap of 75ms a period (cut by loadLinePercent) is reached"},
		{"the cap leaves room for one", strategy.Auto,
			func(r *answered) { r.group.Strategy.CFSQuotaBurstPercent = 200 }, ""},
		{"a raised quota leaves no room", strategy.Auto, func(r *answered) {
			r.group.Disk.Quota, r.event.Bandwidth.Quota = 120*ms, 120*ms
		}, "the cap"},
		{"what was saved counts", strategy.Auto, func(r *answered) {
			r.group.Strategy.CFSQuotaBurstPercent = 200
			r.group.Disk.Burst, r.event.Bandwidth.Burst, r.event.Snap = 50*ms, 50*ms, 90*ms
		}, "the cap"},
		{"no budget", strategy.Auto, func(r *answered) { r.group.Strategy.CFSQuotaBurstPeriodSeconds = 0 }, "budget"},
		{"nor one by what the load line makes of the cap", strategy.Auto, func(r *answered) {
			r.group.Strategy.CFSQuotaBurstPeriodSeconds = 1
			r.group.Reading = sample.Reading{At: r.event.At.Add(-ms),
				Counters: cpu.Counters{HasUsage: true, Usage: 5 * time.Second}}
			r.state.Decide(r.input(r.event.At.Add(-ms)))
			r.cut = 0.1
			r.group.Reading.At = r.event.At
		}, "budget"},
		{"the node is full", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used = 5 },
			"use is above the threshold"},
		{"the node is nearly full", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used = 3.59 },
			"no headroom"},
		{"the node is not known", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Known = false },
			"not measured yet"},
		{"the node is full, but it has saved", strategy.Auto, func(r *answered) { r.node.Used = 5 }, ""},
		{"it has saved less than a quota", strategy.Auto, func(r *answered) {
			r.node.Used, r.group.Reading.Counters.Usage = 5, 460*ms
		}, "use is above the threshold"},
		{"no burst is asked for", strategy.Auto, func(r *answered) {
			r.node.Used, r.group.Strategy.CPUBurstPercent = 5, 0
		}, "use is above the threshold"},
		{"no writes left", strategy.Auto, func(r *answered) { r.leave(0, "/a", tenant.Ordinary) }, "too many writes"},
		{"one write left", strategy.Auto, func(r *answered) { r.leave(1, "/a", tenant.Ordinary) }, ""},
		{"none for a limit that is too low", strategy.Auto, func(r *answered) {
			r.leave(0, "/a", tenant.TooLow)
			r.state.groups[r.group.ID].throttledPeriods.until = r.event.At.Add(time.Minute)
		}, "too many writes"},
		{"others have used up theirs", strategy.Auto, func(r *answered) { r.leave(0, "/b", tenant.Ordinary) }, ""},
		{"no writes left, but it starts", strategy.Auto,
			func(r *answered) { r.leave(0, "/a", tenant.Ordinary); r.group.Starting = true }, ""},
		{"nor any for starts", strategy.Auto, func(r *answered) {
			r.leave(0, "/a", tenant.Start)
			r.group.Starting = true
		}, "too many writes"},
		{"a start is not worth a full node", strategy.CFSQuotaBurstOnly,
			func(r *answered) { r.node.Used, r.group.Starting = 5, true }, "use is above the threshold"},
		{"nothing above 90 % of the threshold", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used = 3.8 },
			"above 90 % of the threshold"},
		{"but for a start", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used, r.group.Starting = 3.8, true },
			""},
		{"and that up to the threshold", strategy.CFSQuotaBurstOnly,
			func(r *answered) { r.node.Used, r.group.Starting = 3.98, true }, "no headroom below the threshold"},
		{"a start has the cap of other times", strategy.Auto,
			func(r *answered) { r.group.Strategy.CFSQuotaBurstPercent, r.group.Starting = 199, true }, "the cap"},
		{"or one of its own", strategy.Auto, func(r *answered) {
			r.group.Strategy.CFSQuotaBurstPercent, r.group.Strategy.StartupBurstPercent, r.group.Starting =
				199, 1000, true
		}, ""},
		{"which leaves no room", strategy.Auto, func(r *answered) {
			r.group.Strategy.CFSQuotaBurstPercent, r.group.Strategy.StartupBurstPercent, r.group.Starting =
				199, 199, true
		}, "the cap"},
		{"and is never less than that of other times", strategy.Auto,
			func(r *answered) { r.group.Strategy.StartupBurstPercent, r.group.Starting = 100, true }, ""},
	} {
		r := newAnswered(c.policy)
		c.change(r)
		out := r.answer()
		if got := out.Views[0].Why; c.why != "" && (len(out.Intents) > 0 || !strings.Contains(got, c.why)) {
			t.Errorf("%s: changes %v, %q; want %q", c.name, out.Intents, got, c.why)
		}
		if atCap := out.Views[0].AtCap; atCap > 0 != strings.HasPrefix(c.why, "the cap") || atCap > 0 &&
			atCap != 60*ms {
			t.Errorf("%s: at the cap for %v", c.name, atCap)
		}
		if c.why != "" {
			if want := refusedAs(c.why); out.Kinds[want] != 1 {
				t.Errorf("%s: %v, want one %s", c.name, out.Kinds, want)
			}
			continue
		}
		burst := plan.Time(r.group.Disk.Burst)
		if len(out.Intents) != 1 || out.Kinds[KindRefill] != 1 || !out.Intents[0].Refill ||
			out.Intents[0].Knob != plan.Burst ||
			out.Intents[0].Value != burst {
			t.Errorf("%s: %+v, %s", c.name, out.Intents, out.Views[0].Why)
		}
	}
}

// TestAheadWaits: who has come to the cap of late, and has no buffer for what is left, is refilled ahead of a throttle
// as late as can be.
func TestAheadWaits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*answered)
		waits  bool
	}{
		{"at the cap a minute ago", func(*answered) {}, true},
		{"it is due", func(r *answered) { r.event.Dry = r.event.At.Add(lead) }, false},
		{"throttled", func(r *answered) { r.event.Ahead = false }, false},
		{"a buffer", func(r *answered) { r.group.Disk.Burst, r.event.Bandwidth.Burst = 10*ms, 10*ms }, false},
		{"never at the cap", func(r *answered) { r.state.groups[r.group.ID].cappedUntil = time.Time{} }, false},
		{"nor of late", func(r *answered) { r.state.groups[r.group.ID].cappedUntil = r.event.At.Add(-capMemory) },
			false},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.event.Ahead, r.event.Dry = true, r.event.At.Add(6*ms)
		r.state.groups[r.group.ID].cappedUntil = r.event.At.Add(-time.Minute)
		c.change(r)
		out := r.answer()
		if refilled := len(out.Intents) == 1; refilled == c.waits || c.waits != (len(out.Later) == 1) {
			t.Errorf("%s: %+v, later %v, %s", c.name, out.Intents, out.Later, out.Views[0].Why)
		}
	}
}

// TestNeedsNoEvent: what nothing can be done about before the next look need not be told. A start brings the node up
// to the threshold itself, and is refilled again in the moment in which the mean is below it.
func TestNeedsNoEvent(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy strategy.Policy
		change func(*answered)
		want   bool
	}{
		{"it is refilled", strategy.CFSQuotaBurstOnly, func(*answered) {}, false},
		{"the node is nearly full", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used = 3.8 }, false},
		{"the node is full", strategy.CFSQuotaBurstOnly, func(r *answered) { r.node.Used = 4.01 }, true},
		{"the node is full, but it has saved", strategy.Auto, func(r *answered) { r.node.Used = 4.01 }, false},
		{"the node is full, and it starts", strategy.CFSQuotaBurstOnly,
			func(r *answered) { r.node.Used, r.group.Starting = 4.01, true }, false},
		{"it starts, and is held", strategy.CFSQuotaBurstOnly,
			func(r *answered) { r.group.Paused, r.group.Starting = "it is paused", true }, true},
	} {
		r := newAnswered(c.policy)
		c.change(r)
		if got := r.answer().Views[0]; got.SuppressEvents != c.want {
			t.Errorf("%s: suppressed %v, want %v (%s)", c.name, got.SuppressEvents, c.want, got.Why)
		}
		if got := r.state.Decide(r.input(r.event.At.Add(ms))).Views[0]; got.SuppressEvents != c.want {
			t.Errorf("%s: suppressed %v after a whole turn, want %v (%s)", c.name, got.SuppressEvents, c.want, got.Why)
		}
	}
}

// TestRefillsAddUp: three quotas a period are two refills, and the next period is another one.
func TestRefillsAddUp(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	for i, want := range []struct {
		refills int
		atCap   time.Duration
	}{{1, 0}, {1, 0}, {0, 40*ms + 2*time.Microsecond}, {0, 0}} {
		out := r.answer()
		if got := len(out.Intents); got != want.refills || out.Views[0].AtCap != want.atCap {
			t.Errorf("throttle %d of a period: %d refills, %v at the cap, want %v", i+1, got, out.Views[0].AtCap, want)
		}
		for _, in := range out.Intents {
			r.state.Learn(r.event.At, result(in, plan.Applied, r.event.At))
		}
		r.event.At = r.event.At.Add(10 * ms)
		r.event.Expires = r.event.Expires.Add(time.Microsecond) // as exactly as two clocks are compared
	}
	r.event.At, r.event.Expires = r.event.At.Add(50*ms), r.event.Expires.Add(100*ms)
	if got := len(r.answer().Intents); got != 1 {
		t.Errorf("in the next period: %d refills, want 1", got)
	}
}

// TestRefillsAreCountedUntilUsed: what is left of the node goes to one of two groups. The other has to wait until the
// first has used it, which shows when it is throttled again, or until its period is over.
func TestRefillsAreCountedUntilUsed(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(r *answered, other *bandwidth.Throttle)
		want    bool
	}{
		{"at once", func(*answered, *bandwidth.Throttle) {}, false},
		{"the first is throttled again", func(r *answered, other *bandwidth.Throttle) {
			r.event.At, r.node.Used = r.event.At.Add(10*ms), 3.6
			if out := r.answer(); len(out.Intents) > 0 {
				t.Fatalf("refilled: %+v", out.Intents)
			}
			r.node.Used, other.At = 3.54, r.event.At // as the mean falls
		}, true},
		{"its period is over", func(r *answered, other *bandwidth.Throttle) {
			other.At, other.Expires = r.event.Expires, r.event.Expires.Add(60*ms)
		}, true},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.node.Used = 3.54 // 0.05 is one refill
		other := *r
		other.group.ID = workload.ID{Path: "/b", Inode: 8}
		other.event.Inode = 8
		other.group.Reading.At = t0
		other.state.Decide(other.input(t0))
		if out := r.answer(); len(out.Intents) != 1 {
			t.Fatalf("%s: the first is not refilled: %+v", c.name, out.Views)
		}
		c.between(r, &other.event)
		other.node = r.node
		if got := len(other.answer().Intents) == 1; got != c.want {
			t.Errorf("%s: refilled %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPodsRefillsAreNotCounted: what a pod's refill lets through is its containers', and is counted with theirs.
func TestPodsRefillsAreNotCounted(t *testing.T) {
	for itself, want := range map[bool]int{false: 2, true: 1} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.node.Used = 3.54 // 0.05 is one refill
		pod, in, events := r.group, r.input(r.event.At), []bandwidth.Throttle{r.event, r.event}
		pod.ID, events[1].Inode = workload.ID{Path: "/p", Inode: 8}, 8
		r.group.Path = "/p/a"
		second := r.group
		second.ID = workload.ID{Path: "/p/b", Inode: 9}
		in.Pods = []Pod{{Group: pod, Ceiling: math.Inf(1), Containers: []Group{r.group}}}
		if itself {
			in.Pods[0].Containers = append(in.Pods[0].Containers, second)
		}
		if out := r.state.AnswerThrottles(in, events); len(out.Intents) != want {
			t.Errorf("limit of its own %v: %d refills, want %d: %+v", itself, len(out.Intents), want, out.Views)
		}
	}
}

// TestRefillsByTheKernelsAccount: a refill takes what CPUs hold, so that the period can use less than was handed out in
// it. A word from before the last write says nothing of that write.
func TestRefillsByTheKernelsAccount(t *testing.T) {
	for _, c := range []struct {
		name       string
		used, left time.Duration
		stale      bool
		want       int
	}{
		{"all that was handed out", 100 * ms, 50 * ms, false, 0},
		{"a part of it was taken from a CPU", 60 * ms, 40 * ms, false, 1},
		{"nearly enough of it", 60 * ms, 41 * ms, false, 0},
		{"told of while the last refill was written", 60 * ms, 40 * ms, true, 0},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		for range 2 {
			out := r.answer()
			if len(out.Intents) != 1 {
				t.Fatalf("%s: not refilled: %+v", c.name, out.Views)
			}
			done := r.event.At.Add(200 * time.Microsecond)
			r.state.Learn(r.event.At.Add(100*time.Microsecond), result(out.Intents[0], plan.Applied, done))
			r.event.At = r.event.At.Add(10 * ms)
		}
		r.event.UseKnown, r.event.Used, r.event.Left = true, c.used, c.left
		if c.stale {
			r.event.At = r.event.At.Add(150*time.Microsecond - 10*ms)
		}
		if got := len(r.answer().Intents); got != c.want {
			t.Errorf("%s: %d refills, want %d", c.name, got, c.want)
		}
	}
}

// TestNothingBeyondTheCap: many CPUs that run beyond their slices are let off that by a refill, so that a period may
// have had its cap before that much was handed out.
func TestNothingBeyondTheCap(t *testing.T) {
	for used, want := range map[time.Duration]int{149 * ms: 1, 150 * ms: 0} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		if out := r.answer(); len(out.Intents) != 1 {
			t.Fatalf("not refilled: %+v", out.Views)
		}
		r.event.At, r.event.UseKnown, r.event.Used = r.event.At.Add(10*ms), true, used
		out := r.answer()
		if got := len(out.Intents); got != want || (out.Views[0].AtCap > 0) != (want == 0) {
			t.Errorf("%v used of a cap of 150ms: %d refills, %v at the cap", used, got, out.Views[0].AtCap)
		}
	}
}

// TestEventBeforeTheRefill: what began before the last write has been ended by it, if the kernel took that.
func TestEventBeforeTheRefill(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome plan.Outcome
		at      time.Duration // after that write's begin
		want    int
	}{
		{"by another CPU, before the write", plan.Applied, -time.Microsecond, 0},
		{"as the write begins", plan.Applied, 0, 1},
		{"after it", plan.Applied, ms, 1},
		{"before a write that was none", plan.Trampled, -time.Microsecond, 1},
	} {
		r := newAnswered(strategy.CFSQuotaBurstOnly)
		r.event.Ahead = true
		out := r.answer()
		if len(out.Intents) != 1 {
			t.Fatalf("%s: not refilled: %+v", c.name, out.Views)
		}
		begun := r.event.At.Add(200 * time.Microsecond)
		r.state.Learn(begun, result(out.Intents[0], c.outcome, begun.Add(50*time.Microsecond)))
		r.event.Ahead, r.event.At = false, begun.Add(c.at)
		out = r.answer()
		if got := len(out.Intents); got != c.want || out.Kinds[KindRefill] != int64(c.want) || out.Views[0].AtCap > 0 {
			t.Errorf("%s: %d refills, want %d: %+v", c.name, got, c.want, out.Views)
		}
	}
}

// TestPodFirst: a pod and a container that stand both are both refilled, and the pod by its own cap.
func TestPodFirst(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	pod := r.group
	pod.ID = workload.ID{Path: "/p", Inode: 8}
	events := []bandwidth.Throttle{r.event, r.event}
	events[1].Inode = 8
	in := r.input(r.event.At)
	r.group.Path = "/p/a"
	in.Pods = []Pod{{Group: pod, Ceiling: math.Inf(1), Containers: []Group{r.group}}}
	out := r.state.AnswerThrottles(in, events)
	if len(out.Intents) != 2 || out.Intents[0].Path != "/p" || out.Intents[1].Path != "/p/a" {
		t.Fatalf("%+v", out.Intents)
	}
	in.Now, events[0].At, events[1].At = in.Now.Add(10*ms), events[0].At.Add(10*ms), events[1].At.Add(10*ms)
	r.event.At = in.Now
	r.leave(1, "/p", tenant.Ordinary)
	out = r.state.AnswerThrottles(in, events)
	if len(out.Intents) != 1 || out.Intents[0].Path != "/p" {
		t.Errorf("with one write left: %+v", out.Intents)
	}
}

// TestBegunBeforeForeseen: of a throttle that was foreseen and has begun since, what has begun counts.
func TestBegunBeforeForeseen(t *testing.T) {
	r := newAnswered(strategy.CFSQuotaBurstOnly)
	foreseen := r.event
	foreseen.Ahead, foreseen.At = true, r.event.At.Add(-3*ms)
	for _, events := range [][]bandwidth.Throttle{{foreseen, r.event}, {r.event, foreseen}} {
		if got, ok := Latest(events, r.event.Inode); !ok || got.Ahead {
			t.Errorf("%+v, %v", got, ok)
		}
	}
	if _, ok := Latest([]bandwidth.Throttle{foreseen}, 99); ok {
		t.Error("another group was events of")
	}
}
