package policy

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/tenant"
)

// guard cuts the demands to what the node can spare, and takes raises back when it is overloaded.
//
// A start may bring the node's use up to the threshold, and slightly above it (refill.go). That costs no group its
// raise: from the threshold on a start is not refilled, so that its use above its quota ends with its period and soon
// leaves the mean. Raises are taken back only if the node would be overloaded without the starts.
func (s *State) guard(in Input, units []*candidate, out *Output) {
	s.expire(in.Now)
	state, lasting := in.Node.State(), in.Node
	lasting.Used -= s.pool.starts
	overloaded := lasting.State() == NodeOverload
	if !overloaded {
		s.overload = time.Time{}
	}
	switch {
	case overloaded:
		s.takeBack(in, lasting, units)
	case state == NodeIdle:
		grant(in.Node, units, s.refills, in.endsThrottles())
	default:
		for _, u := range units {
			u.deny(state.words() + ": no raise")
		}
	}
	s.sums = sums{tenants: map[string]float64{}}
	for _, u := range units {
		out.Granted += u.excess(max(u.quota, u.Disk.Quota))
		s.sums.above += u.above()
		s.sums.granted += u.excess(u.quota)
		u.m.promised = max(0, u.excess(u.quota)-u.excess(u.Disk.Quota))
		s.sums.over += u.over()
		if has := max(u.over(), u.excess(u.quota)); has > 0 {
			s.sums.tenants[u.m.owner.Namespace] += has
		}
	}
}

// deny keeps a candidate from being raised further.
func (u *candidate) deny(why string) {
	if u.quota > u.Disk.Quota {
		u.decision = decision{u.Disk.Quota, "", why}
	}
}

// takeBack lowers raised candidates to their limits, the largest excess first, until the predicted use is below the
// threshold, and all of them if the overload lasts a second. A restore stays one. lasting is the node without the use
// of starts, which ends by itself.
func (s *State) takeBack(in Input, lasting Node, units []*candidate) {
	if s.overload.IsZero() {
		s.overload = in.Now
	}
	var raised []excess
	for _, u := range units {
		u.deny("node is overloaded: no raise")
		switch {
		case !u.raised() || u.QuotaBlocked.LeftAlone():
		case u.kind == KindRestore: // written at once; a lowering of the guard's would wait (pace)
			s.relieve(in.Now, u)
		default:
			raised = append(raised, excess{u, u.m.owner.Namespace, u.above()})
		}
	}
	picked := raised
	if in.Now.Sub(s.overload) < time.Second {
		picked = shed(lasting, raised, sum(s.relief))
	}
	for _, e := range picked {
		u := e.u
		if u.m.wait.Ready(in.Now) {
			u.m.wait.Hit(in.Now, time.Second, time.Minute)
			s.relieve(in.Now, u)
		}
		u.decision = decision{u.limit.Quota, KindGuard, fmt.Sprintf("node uses %.2f CPUs of a threshold of %.2f",
			in.Node.Used, in.Node.Threshold())}
	}
}

// relieve books, once, that a raise is lowered which the node's use still shows.
func (s *State) relieve(now time.Time, u *candidate) {
	if !now.Before(u.m.relieved) {
		u.m.relieved = now.Add(NodeSpan)
		s.relief = append(s.relief, relief{u.ID, u.m.owner.Namespace, u.m.relieved, u.above()})
	}
}

func (s *State) expire(now time.Time) {
	over := func(r relief) bool { return !now.Before(r.until) }
	s.relief, s.refills = slices.DeleteFunc(s.relief, over), slices.DeleteFunc(s.refills, over)
}

func sum(list []relief) float64 {
	total := 0.0
	for _, r := range list {
		total += r.cpus
	}
	return total
}

// grant splits the node's headroom among the candidates with a demand for a raise. Raises that stay are subtracted
// first, and so are the grants of the writes themselves, spread over a second: each write refills its group by what the
// group has used in the current period. refills lists the refills that the node's use does not show yet.
//
// Where throttles are ended one by one (endsThrottles), a raise is granted in full or not at all. A partial raise
// leaves no room for a refill below the cap, and is too small for the demand's peaks; refills take headroom only when
// they are needed. Enduring demand is an exception: a small raise costs less than answering each throttle. A raise
// replaces the group's refills: their grants, and the use of them, count as headroom for the raise.
func grant(n Node, units []*candidate, refills []relief, endsThrottles bool) {
	var above float64
	granted := sum(refills)
	var raising []*candidate
	var claims []tenant.Claim
	for _, u := range units {
		above += u.above()
		if u.quota > u.Disk.Quota {
			if endsThrottles && !u.raised() {
				above += u.beyond(u.quota)
				for _, r := range refills {
					if r.of == u.ID {
						granted -= r.cpus
					}
				}
			}
			raising = append(raising, u)
			claims = append(claims, tenant.Claim{Weight: u.weight(), Want: u.excess(u.quota)})
			granted += u.Disk.Quota.Seconds()
			continue
		}
		granted += u.excess(u.Disk.Quota)
	}
	got := tenant.Split(claims, max(0, n.headroom(above)-granted))
	for i, u := range raising {
		quota := u.limit.Quota + time.Duration(got[i]*float64(u.period())).Truncate(time.Microsecond)
		if quota >= u.quota {
			continue
		}
		switch {
		case quota <= u.Disk.Quota || !worth(u.Disk.Quota, quota):
			u.deny("node has no headroom below 90 % of the threshold")
			continue
		case endsThrottles && !u.m.throttledPeriods.enduring(u.now, u.period()):
			u.deny("node has no headroom for a whole raise: throttles are ended one by one")
			continue
		}
		u.quota = quota
		u.why += fmt.Sprintf("; the node can spare %.2f CPUs", got[i])
	}
}
