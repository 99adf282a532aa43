package policy

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/workload"
)

// guard cuts the demands to what the node can spare, and takes raises back when it is overloaded.
//
// A start may bring the node up to the threshold, and a little above it (refill.go). Nobody pays for that with a raise: from
// the threshold on a start is refilled no more, so that what it uses above its quota ends with its period, and soon leaves the
// mean. Raises are taken back where the node would be overloaded without that.
func (s *State) guard(in Input, units []*candidate, out *Output) {
	s.expire(in.Now)
	state, lasting := in.Node.State(), in.Node.less(s.rest.starts)
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
	for _, u := range units {
		out.Granted += u.excess(max(u.quota, u.Disk.Quota))
		s.rest.above += u.above()
		s.rest.held += u.excess(u.quota)
	}
}

// deny keeps a candidate from being raised further.
func (u *candidate) deny(why string) {
	if u.quota > u.Disk.Quota {
		u.decision = decision{u.Disk.Quota, "", why}
	}
}

// takeBack brings raised candidates back to their limits, the largest excess first until the predicted use is below the
// threshold, and all of them when a second of that did not do. lasting is the node without what ends by itself.
func (s *State) takeBack(in Input, lasting Node, units []*candidate) {
	if s.overload.IsZero() {
		s.overload = in.Now
	}
	var raised []*candidate
	var above []float64
	for _, u := range units {
		u.deny("node is overloaded: no raise")
		if u.raised() && !u.QuotaBlocked.LeftAlone() {
			raised, above = append(raised, u), append(above, u.above())
		}
	}
	picked := shed(lasting, above, sum(s.relief))
	if in.Now.Sub(s.overload) >= time.Second {
		picked = all(len(raised))
	}
	for _, i := range picked {
		u := raised[i]
		if u.m.wait.Ready(in.Now) {
			u.m.wait.hit(in.Now)
			s.relief = append(s.relief, relief{u.ID, in.Now.Add(nodeSpan), above[i]})
		}
		u.decision = decision{u.limit.Quota, KindGuard, fmt.Sprintf("node uses %.2f CPUs of a threshold of %.2f",
			in.Node.Used, in.Node.Threshold())}
	}
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (s *State) expire(now time.Time) {
	over := func(r relief) bool { return !now.Before(r.until) }
	s.relief, s.refills = slices.DeleteFunc(s.relief, over), slices.DeleteFunc(s.refills, over)
}

// of are those of one group.
func of(id workload.ID, list []relief) []relief {
	return slices.DeleteFunc(slices.Clone(list), func(r relief) bool { return r.of != id })
}

func sum(list []relief) float64 {
	total := 0.0
	for _, r := range list {
		total += r.cpus
	}
	return total
}

// grant splits the node's headroom among the candidates that want to be raised. What is granted already and stays is
// taken off first, and so is what the writes themselves hand out, spread over a second: each refills its group with
// what it has used in the standing period; refills are those that the node's use does not show yet.
//
// Where throttles are ended one by one (endsThrottles), a raise is made whole or not at all. One that the node cuts
// leaves no room for a refill below the cap, and is itself too small for the peaks that it was wanted for; refills take
// from the node only when they are needed. Demand that endures is an exception: a small raise costs less than to
// answer each throttle. A raise takes the place of the group's refills: what they have handed out, and what was used of it, is
// free for the raise.
func grant(n Node, units []*candidate, refills []relief, endsThrottles bool) {
	var above float64
	held := sum(refills)
	var raising []*candidate
	var claims []claim
	for _, u := range units {
		above += u.above()
		if u.quota > u.Disk.Quota {
			if endsThrottles && !u.raised() {
				above += u.beyond(u.quota)
				held -= sum(of(u.ID, refills))
			}
			raising = append(raising, u)
			claims = append(claims, claim{weight: u.weight(), want: u.excess(u.quota)})
			held += u.Disk.Quota.Seconds()
			continue
		}
		held += u.excess(u.Disk.Quota)
	}
	got := split(claims, max(0, n.headroom(above)-held))
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
