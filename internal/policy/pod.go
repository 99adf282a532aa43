package policy

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// podCandidates is a pod and its containers during a turn. The scope of a container is a pod of that container alone:
// it throttles the container as a pod does, and its quota and burst follow the container's in the same way.
type podCandidates struct {
	pod        *candidate // nil: the containers have no pod
	containers []*candidate
	scopes     []podCandidates // of single containers of the pod
	own        bool            // the pod's limit applies to all its containers together (workload.Pod)
	itself     bool            // the pod's own limit binds before those of its containers: the pod is raised, not they
}

// sandboxMost distinguishes a container without a limit from the pod's sandbox, which only keeps its namespaces, where
// nothing tells which one that is. Each pod of Kubernetes has such a container (pause). It has no limit, uses about 20
// ms of CPU time in its start, more where it reaps the processes of the pod (shareProcessNamespace), and is not counted
// when the containers' limits are added up.
const sandboxMost = 100 * time.Millisecond

// assess decides whether the pod's own limit binds, and attributes the pod's throttles to a container where the
// container is raised instead.
func (p *podCandidates) assess() {
	if p.pod == nil {
		return
	}
	p.pod.isPod = true
	runs := func(c *candidate) bool { return c.Paused == "" }
	if len(p.containers) > 0 && !slices.ContainsFunc(p.containers, runs) {
		p.pod.Paused = cmp.Or(p.pod.Paused, p.containers[0].Paused)
	}
	sum := 0.0
	for _, c := range p.containers {
		if c.limit.Limited() || !c.Sandbox && c.Reading.Counters.Usage > sandboxMost {
			sum += c.limit.CPUs()
		}
	}
	const rounding = 1e-3
	p.itself = p.pod.limit.Limited() && (p.own || p.pod.limit.CPUs() < sum-rounding)
	burstable := func(c *candidate) bool { return c.Class.Burstable() }
	if len(p.containers) > 0 && !slices.ContainsFunc(p.containers, burstable) {
		p.pod.Class = p.containers[0].Class
	}
	p.pod.starts(slices.ContainsFunc(p.containers, func(c *candidate) bool { return c.Starting }))
	if p.pod.throttled && !p.itself {
		p.attributeThrottle()
	}
}

// strategy of a pod: it is raised like the first container whose policy raises quotas, and has a burst like the first
// one whose policy sets bursts.
func (p *Pod) strategy() strategy.Strategy {
	first := func(does func(strategy.Policy) bool) (of strategy.Strategy, found bool) {
		for _, c := range p.Containers {
			if c.Paused == "" && does(c.Strategy.Policy) {
				return c.Strategy, true
			}
		}
		return of, false
	}
	quota, raises := first(strategy.Policy.Quota)
	burst, bursts := first(strategy.Policy.Burst)
	switch {
	case raises && bursts:
		quota.Policy, quota.CPUBurstPercent = strategy.Auto, burst.CPUBurstPercent
		return quota
	case raises:
		return quota
	case bursts:
		return burst
	case len(p.Containers) > 0:
		return p.Containers[0].Strategy
	}
	return p.Strategy
}

// attributeThrottle attributes a throttle by the pod's quota to the container that used most relative to its limit:
// when the periods of pod and container are out of phase, a container may use two of its quotas in one period of the
// pod.
func (p *podCandidates) attributeThrottle() {
	var most *candidate
	var share float64
	for _, c := range p.containers {
		if s := c.window.CPUs() / c.limit.CPUs(); c.limit.Limited() && s > share {
			most, share = c, s
		}
	}
	if most == nil || most.throttled {
		return
	}
	most.throttled = true
	most.m.throttledAt, most.m.everThrottled = most.Reading.At, true
}

// startUse is how many CPUs starting containers of the pod use above their quotas. Use that refills of the pod allow is
// use of its containers.
func (p *podCandidates) startUse() float64 {
	sum := 0.0
	for _, c := range p.containers {
		sum += c.startUse()
	}
	if p.pod == nil {
		return sum
	}
	return max(sum, p.pod.startUse())
}

// each calls for all candidates of the pod, and the podCandidates that they are in.
func (p *podCandidates) each(do func(*podCandidates, *candidate)) {
	for _, u := range p.containers {
		do(p, u)
	}
	if p.pod != nil {
		do(p, p.pod)
	}
	for i := range p.scopes {
		do(&p.scopes[i], p.scopes[i].pod)
	}
}

// raises says whether the quota of a candidate may be raised by its own demand.
func (p *podCandidates) raises(u *candidate) bool {
	return !u.Unlimited && (!u.isPod || p.itself) && u.Class.Burstable()
}

// follow sets the quota of a pod whose containers are raised: the pod's declared quota plus the sum of their raises. It
// is computed from declared values, so that it cannot drift; -1 stays -1. The quota of a pod that is raised itself is
// at least that of each container (v1 refuses less).
func (p *podCandidates) follow(in Input) {
	u := p.pod
	if !u.limit.Limited() || u.QuotaBlocked.LeftAlone() {
		u.quota = u.Disk.Quota
		return
	}
	var most, above time.Duration
	unlimited := false // a container, by us
	for _, c := range p.containers {
		if !c.limit.Limited() || c.quota == cpu.Unlimited {
			unlimited = unlimited || c.limit.Limited()
			continue
		}
		if !c.QuotaBlocked.LeftAlone() { // else the value is not ours: of a resize, or of another program
			above += scale(max(0, c.quota-c.limit.Quota), c.period(), u.period())
		}
		most = max(most, scale(c.quota, c.period(), u.period()))
	}
	if p.itself {
		if in.Rules.Nested {
			u.quota = max(u.quota, min(most, u.cap()))
		}
		return
	}
	if unlimited && (u.Disk.Quota == cpu.Unlimited || !u.QuotaBlocked.NotRaised()) {
		u.decision = decision{cpu.Unlimited, KindReserve, "follows a container that has exclusive CPUs"}
		return
	}
	u.decision = decision{u.limit.Quota + above, KindPod, "follows its containers"}
	raises := func(c *candidate) bool { return c.Strategy.Policy.Quota() && c.Paused == "" }
	if above == 0 && !slices.ContainsFunc(p.containers, raises) {
		u.kind = KindRestore
	}
}

// keepWithin cuts raises of containers to the quota that the pod is given in this turn.
func (p *podCandidates) keepWithin(in Input) {
	for _, c := range p.containers {
		most := scale(p.pod.quota, p.pod.period(), c.period())
		switch {
		case c.quota <= max(most, c.Disk.Quota) || c.quota == cpu.Unlimited:
		case worth(c.Disk.Quota, max(most, c.Disk.Quota)):
			c.quota = most
			c.requested, c.buffer = c.burst(in.Now, in.Rules)
		default:
			c.stay(in.Now, in.Rules)
		}
	}
}

// burst of a pod is the sum over its containers: the pod's own quota throttles them all. Where the pod's limit binds
// before those of its containers, which may have none (pod-level limits in Kubernetes), the burst is sized by the pod's
// limit.
func (p *podCandidates) burst(now time.Time, r Rules) (requested, buffer time.Duration) {
	u := p.pod
	if p.itself || !u.bursts() {
		return u.burst(now, r)
	}
	for _, c := range p.containers {
		requested += scale(c.requested, c.period(), u.period())
		buffer += scale(c.buffer, c.period(), u.period())
	}
	if !r.BurstAboveQuota {
		buffer = min(buffer, u.limit.Quota)
	}
	return requested, u.fit(now, buffer, r)
}
