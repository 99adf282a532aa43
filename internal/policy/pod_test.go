package policy

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestStrategyOfAPod: a pod is raised like its first container that may be, and has a burst like its first one that may
// have one. Where none may have anything, it has the strategy of its first container.
func TestStrategyOfAPod(t *testing.T) {
	of := func(p strategy.Policy, percent int64) Group {
		return Group{Strategy: strategy.Strategy{Policy: p, CFSQuotaBurstPercent: percent, CPUBurstPercent: percent}}
	}
	paused := of(strategy.Auto, 500)
	paused.Paused = "it is paused"
	for name, c := range map[string]struct {
		containers   []Group
		want         strategy.Policy
		quota, burst int64 // percent
	}{
		"the first of two": {[]Group{of(strategy.Auto, 200), of(strategy.Auto, 300)}, strategy.Auto, 200, 200},
		"a side-car without any": {[]Group{of(strategy.None, 200), of(strategy.CFSQuotaBurstOnly, 300)},
			strategy.CFSQuotaBurstOnly, 300, 300},
		"one that is only burst": {[]Group{of(strategy.None, 200), of(strategy.CPUBurstOnly, 300)},
			strategy.CPUBurstOnly, 300, 300},
		"one burst, one raised": {[]Group{of(strategy.CPUBurstOnly, 200), of(strategy.CFSQuotaBurstOnly, 300)},
			strategy.Auto, 300, 200},
		"one raised, one both": {[]Group{of(strategy.CFSQuotaBurstOnly, 200), of(strategy.Auto, 300)},
			strategy.Auto, 200, 300},
		"one that is paused":       {[]Group{paused, of(strategy.Auto, 300)}, strategy.Auto, 300, 300},
		"none for which one may":   {[]Group{of(strategy.None, 200), paused}, strategy.None, 200, 200},
		"none has any, and no cap": {[]Group{of(strategy.None, 0), of(strategy.None, 300)}, strategy.None, 0, 0},
	} {
		p := Pod{Containers: c.containers}
		got := p.strategy()
		if got.Policy != c.want || got.CFSQuotaBurstPercent != c.quota || got.CPUBurstPercent != c.burst {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOwnLimitOfAPod: the limit of a pod binds first where it is less than the sum over the containers. One without a
// limit, which has worked, makes that sum infinite; a sandbox counts as nothing, whatever it has used.
func TestOwnLimitOfAPod(t *testing.T) {
	for _, c := range []struct {
		name    string
		sandbox bool
		used    time.Duration
		want    bool
	}{
		{"one that nothing tells of, and does nothing", false, 20 * ms, false},
		{"which works", false, 150 * ms, true},
		{"a sandbox", true, 20 * ms, false},
		{"which reaps processes", true, 150 * ms, false},
	} {
		other := raisedTo("/p/b", cpu.Unlimited, cpu.Unlimited)
		other.Sandbox, other.Reading.Counters.Usage = c.sandbox, c.used
		p := podCandidates{pod: raisedTo("/p", 60*ms, 60*ms),
			containers: []*candidate{raisedTo("/p/a", 60*ms, 60*ms), other}}
		if p.assess(); p.itself != c.want {
			t.Errorf("beside %s: itself %v, want %v", c.name, p.itself, c.want)
		}
	}
}

// TestPodFollows: a pod has its own quota and what its containers have above theirs, but for what others wrote there.
// One that is raised itself has at least what each container has where the kernel wants that, up to its cap.
func TestPodFollows(t *testing.T) {
	auto := strategy.Strategy{Policy: strategy.Auto, CFSQuotaBurstPercent: 150}
	for name, c := range map[string]struct {
		change func(p *podCandidates, in *Input)
		want   time.Duration
	}{
		"two raises": {func(*podCandidates, *Input) {}, 190 * ms},
		"one is another program's": {func(p *podCandidates, _ *Input) {
			p.containers[0].QuotaBlocked = plan.Foreign
		}, 140 * ms},
		"and so is the pod's": {func(p *podCandidates, _ *Input) { p.pod.QuotaBlocked = plan.Foreign },
			100 * ms},
		"no limit": {func(p *podCandidates, _ *Input) {
			p.pod.limit.Quota, p.pod.Disk.Quota = cpu.Unlimited, cpu.Unlimited
		}, cpu.Unlimited},
		"a container without a quota": {func(p *podCandidates, _ *Input) { p.containers[0].quota = cpu.Unlimited },
			cpu.Unlimited},
		"which the kernel refused": {func(p *podCandidates, _ *Input) {
			p.containers[0].quota, p.pod.QuotaBlocked = cpu.Unlimited, plan.Waiting
		}, 140 * ms},
		"which shares the pod's own limit with others": {func(p *podCandidates, in *Input) {
			p.itself, in.Rules.Nested, p.containers[0].quota = true, true, cpu.Unlimited
		}, 100 * ms},
		"which it has": {func(p *podCandidates, _ *Input) {
			p.containers[0].quota, p.pod.QuotaBlocked, p.pod.Disk.Quota = cpu.Unlimited, plan.NoRaise, cpu.Unlimited
		}, cpu.Unlimited},
		"it is raised itself": {func(p *podCandidates, _ *Input) { p.itself = true }, 100 * ms},
		"where the kernel wants a container within it": {func(p *podCandidates, in *Input) {
			p.itself, in.Rules.Nested = true, true
		}, 110 * ms},
		"up to its cap": {func(p *podCandidates, in *Input) {
			p.itself, in.Rules.Nested, p.containers[0].quota = true, true, 200*ms
		}, 150 * ms},
		"and never less than it has": {func(p *podCandidates, in *Input) {
			p.itself, in.Rules.Nested, p.pod.quota = true, true, 130*ms
		}, 130 * ms},
	} {
		p := podCandidates{pod: raisedTo("/p", 100*ms, 100*ms),
			containers: []*candidate{raisedTo("/p/a", 60*ms, 60*ms), raisedTo("/p/b", 40*ms, 40*ms)}}
		p.pod.Strategy, p.pod.quota = auto, 100*ms
		p.containers[0].quota, p.containers[1].quota = 110*ms, 80*ms
		in := Input{Now: t0}
		c.change(&p, &in)
		p.follow(in)
		if p.pod.quota != c.want {
			t.Errorf("%s: %v, want %v", name, p.pod.quota, c.want)
		}
	}
}

// TestBudgetOfAPod: a pod whose own limit binds has the budget and the cap of the container that it is raised for, also
// beside a side-car that comes first.
func TestBudgetOfAPod(t *testing.T) {
	of := func(path string, p strategy.Policy, seconds, percent int64) Group {
		g := Group{ID: workload.ID{Path: path, Inode: 1}, Strategy: strategy.Default(), Ready: true, Looked: true,
			Limit: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms}}
		g.Strategy.Policy, g.Strategy.CFSQuotaBurstPeriodSeconds = p, seconds
		g.Strategy.CFSQuotaBurstPercent = percent
		g.Disk, g.Reading = g.Limit, sample.Reading{At: t0, Counters: cpu.Counters{HasUsage: true}}
		return g
	}
	for _, c := range []struct {
		sideCar, own int64 // cfsQuotaBurstPeriodSeconds
		want         time.Duration
	}{
		{strategy.Unlimited, 10, 5 * time.Second}, {0, strategy.Unlimited, cpu.Unlimited},
	} {
		sideCar := of("/p/a", strategy.None, c.sideCar, 300)
		p := Pod{Group: of("/p", sideCar.Strategy.Policy, c.sideCar, 300), Own: true, Ceiling: 8,
			Containers: []Group{sideCar, of("/p/b", strategy.Auto, c.own, 200)}}
		s, in := NewState(0), Input{Now: t0, Subscribed: true, Rules: Rules{Burst: true, Refill: true},
			Node: Node{Known: true, CPUs: 8, Capacity: 8, ThresholdPercent: 100}}
		in.Pods = []Pod{p}
		s.Decide(in)
		p.Reading.At, p.Disk.Quota = t0.Add(100*ms), 100*ms // raised to its cap
		in.Now, in.Pods = p.Reading.At, []Pod{p}
		s.Decide(in)
		of := bandwidth.Throttle{Inode: p.Inode, At: in.Now, Bandwidth: p.Disk, Expires: in.Now.Add(50 * ms)}
		v := s.AnswerThrottles(in, []bandwidth.Throttle{of}).Views[0]
		if v.BudgetLeft != c.want || !strings.Contains(v.Why, "the cap of 100ms a period leaves no room") {
			t.Errorf("%+v: %v left (%s)", c, v.BudgetLeft, v.Why)
		}
	}
}

// TestBurstOfAPod: a pod has the burst of its containers, whichever of them comes first.
func TestBurstOfAPod(t *testing.T) {
	for name, policies := range map[string][2]strategy.Policy{
		"raised first": {strategy.CFSQuotaBurstOnly, strategy.Auto},
		"both first":   {strategy.Auto, strategy.CFSQuotaBurstOnly},
	} {
		of := func(path string, policy strategy.Policy, quota time.Duration) Group {
			g := Group{ID: workload.ID{Path: path}, Strategy: strategy.Default(), Ready: true,
				Limit: cpu.Bandwidth{Quota: quota, Period: 100 * ms}}
			g.Strategy.Policy, g.Disk = policy, g.Limit
			return g
		}
		in := Input{Now: t0, Rules: Rules{Burst: true}, Pods: []Pod{{Group: of("/p", policies[0], 100*ms), Ceiling: 8,
			Containers: []Group{of("/p/a", policies[0], 50*ms), of("/p/b", policies[1], 50*ms)}}}}
		got := plan.Value("none")
		for _, i := range NewState(0).Decide(in).Intents {
			if i.Path == "/p" && i.Knob == plan.Burst {
				got = i.Value
			}
		}
		if got != "50ms" {
			t.Errorf("%s: a burst of %s, want 50ms", name, got)
		}
	}
}

// TestContainersStayWithinAPod: where the kernel takes no quota above the pod's (v1), and the pod's raise waits for its
// period to begin, a container is raised to the quota of the pod at most.
func TestContainersStayWithinAPod(t *testing.T) {
	for _, c := range []struct {
		name       string
		nested     bool
		pod        time.Duration // its period began so long ago
		quota, own plan.Value    // that are written
	}{
		{"the pod waits", true, 50 * ms, "none", "120ms"},
		{"on v2", false, 50 * ms, "none", "184ms"},
		{"both have just begun", true, 2 * ms, "184ms", "184ms"},
	} {
		of := func(path string, limit, begun time.Duration) *candidate {
			u := raisedTo(path, limit, limit)
			u.Strategy.Policy, u.Strategy.CFSQuotaBurstPercent, u.quota = strategy.Auto, 200, limit
			u.m.inFile, u.m.lastWrite, u.cpus = u.Disk, t0.Add(-time.Hour), 4
			u.m.phase.Pin(t0.Add(-begun), u.period())
			return u
		}
		p := podCandidates{pod: of("/p", 120*ms, c.pod), itself: true,
			containers: []*candidate{of("/p/a", 100*ms, 2*ms), of("/p/b", 100*ms, 2*ms)}}
		p.pod.isPod = true
		p.containers[0].quota = 200 * ms
		in, out := Input{Now: t0, Subscribed: true, Rules: Rules{Refill: true, Nested: c.nested}}, newOutput()
		makeIntents(in, []podCandidates{p}, out)
		got := map[string]plan.Value{"/p": "none", "/p/a": "none", "/p/b": "none"}
		for _, i := range out.Intents {
			got[i.Path] = i.Value
		}
		if got["/p"] != c.quota || got["/p/a"] != c.own || got["/p/b"] != "none" {
			t.Errorf("%s: %v, want %s for the pod and %s for the first", c.name, got, c.quota, c.own)
		}
	}
}
