package policy

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// podCandidates is a pod and its containers during a turn. The scope of a container is a pod of that container alone: it
// throttles the container as a pod does, and its quota and burst follow the container's in the same way.
type podCandidates struct {
	pod        *candidate // nil: the containers stand alone
	containers []*candidate
	scopes     []podCandidates // of single containers of the pod
	own        bool            // the pod's limit is one for all its containers together (workload.Pod)
	itself     bool            // the pod's own limit binds before its containers' do: it is the candidate that is raised
}

// sandboxMost tells a container without a limit that does something from one that only holds the pod's namespaces. Each pod
// of Kubernetes has one of these (pause), which has no limit and uses some 20 ms, in its start. Its limit says nothing of
// what the pod's other containers may use.
const sandboxMost = 100 * time.Millisecond

// assess finds out at which level the pod's limit stands, and books the pod's throttling for a container where the
// container is what is raised.
func (p *podCandidates) assess() {
	if p.pod == nil {
		return
	}
	p.pod.isPod = true
	p.pod.Paused = p.pod.Paused || len(p.containers) > 0 && !slices.ContainsFunc(p.containers, func(c *candidate) bool { return !c.Paused })
	sum := 0.0
	for _, c := range p.containers {
		if c.limit.Limited() || c.Reading.Counters.Usage > sandboxMost {
			sum += c.limit.CPUs()
		}
	}
	const rounding = 1e-3
	p.itself = p.pod.limit.Limited() && (p.own || p.pod.limit.CPUs() < sum-rounding)
	if len(p.containers) > 0 {
		p.pod.Strategy = p.strategy()
		if !slices.ContainsFunc(p.containers, func(c *candidate) bool { return c.Class.Burstable() }) {
			p.pod.Class = p.containers[0].Class
		}
	}
	p.pod.starts(slices.ContainsFunc(p.containers, func(c *candidate) bool { return c.Starting }))
	if p.pod.stood && !p.itself {
		p.blame()
	}
}

// strategy of a pod is that of the first container that asks for anything.
func (p *podCandidates) strategy() strategy.Strategy {
	for _, c := range p.containers {
		if !c.Paused && (c.Strategy.Policy.Quota() || c.Strategy.Policy.Burst()) {
			return c.Strategy
		}
	}
	return p.containers[0].Strategy
}

// blame books a throttling by the pod's quota for the container that used most for its limit: when periods of pod
// and container are not in phase, a container may use two of its quotas in one of the pod's periods.
func (p *podCandidates) blame() {
	var most *candidate
	var share float64
	for _, c := range p.containers {
		if s := c.window.CPUs() / c.limit.CPUs(); c.limit.Limited() && s > share {
			most, share = c, s
		}
	}
	if most == nil || most.stood {
		return
	}
	most.stood = true
	most.m.throttledAt, most.m.everStood = most.Reading.At, true
}

// handed is how many CPUs starts in the pod use above their quotas. What its refills let through is its containers' use.
func (p *podCandidates) handed() float64 {
	sum := 0.0
	for _, c := range p.containers {
		sum += c.handed()
	}
	if p.pod == nil {
		return sum
	}
	return max(sum, p.pod.handed())
}

// raisable lists the candidates of the pod whose quota may be raised by their own demand.
func (p *podCandidates) raisable() []*candidate {
	var units []*candidate
	for _, u := range append(p.containers[:len(p.containers):len(p.containers)], p.pod) {
		if u != nil && p.raises(u) {
			units = append(units, u)
		}
	}
	return units
}

func (p *podCandidates) raises(u *candidate) bool {
	return !u.Unlimited && (!u.isPod || p.itself) && u.Class.Burstable()
}

// follow sets the quota of a pod whose containers are raised: its declared quota and what they have above their
// limits. It is absolute, so that it cannot drift; -1 stays -1. A pod that is raised itself is kept from standing
// below a container (v1 refuses that).
func (p *podCandidates) follow(in Input) {
	u := p.pod
	if !u.limit.Limited() || u.QuotaBlocked.LeftAlone() {
		u.quota = u.Disk.Quota
		return
	}
	var most, above time.Duration
	for _, c := range p.containers {
		if !c.limit.Limited() || c.quota == cpu.Unlimited {
			continue
		}
		if !c.QuotaBlocked.LeftAlone() { // another's value: the owner's own, in the midst of a resize, or nothing of ours to follow
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
	if p.lifted() && u.QuotaBlocked != plan.Waiting {
		u.decision = decision{cpu.Unlimited, KindReserve, "follows a container that has CPUs of its own"}
		return
	}
	u.quota, u.kind = u.limit.Quota+above, KindPod
	u.why = "follows its containers"
	if above == 0 && p.quiet() {
		u.kind = KindRestore
	}
}

// burst of a pod is the sum over its containers: the pod's own quota throttles them all. Where the pod's limit binds before
// theirs do, and they may have none at all (limits of the pod in Kubernetes), it is sized by the pod's.
func (p *podCandidates) burst(now time.Time, r Rules) (requested, buffer time.Duration) {
	u := p.pod
	if p.itself {
		return u.burst(now, r)
	}
	if !u.bursts() {
		return u.limit.Burst, u.unburst() // nothing is asked for
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

// quiet says whether no container's policy raises quotas.
func (p *podCandidates) quiet() bool {
	for _, c := range p.containers {
		if c.Strategy.Policy.Quota() && !c.Paused {
			return false
		}
	}
	return true
}
