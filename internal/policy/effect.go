package policy

import (
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Judging refills by their effect.
//
// Problem: a successful write does not prove that the refill had an effect. A kernel may ignore a write of an unchanged
// value (a patch was posted in 2024). Then each throttle that is answered by a refill lasts to the end of its period,
// while the agent counts time saved.
//
// Approach: each refill is judged by the group's counters.
//   - A refill that answers a throttle was effective if it ended one: the kernel accounts a throttle's time when the
//     throttle ends (unthrottle_cfs_rq, called by tg_set_cfs_bandwidth for each CPU), so the throttled time has grown
//     when the write returns. Else the group is read once more just before its period ends: the refill was effective if
//     the group used more than it had left, and ineffective if the throttle lasted until then.
//   - A refill ahead of a throttle was effective if the group used more than it had left. It was ineffective if a
//     throttle began although no quota was granted: a write that refills leaves a whole quota in the pool, so what the
//     group has used since the event and still holds is a quota at least. Else it was unneeded: the job ended by
//     itself, or what was left at the event would have lasted about as long.
//
// After missesToDoubt ineffective refills in a row the group is raised instead of refilled. After as many in a row in
// different tenants all groups are: no tenant alone stops the refills of the others. After a back-off, which doubles
// each time, the next throttle is answered by a refill again, and its effect decides.
//
// Known limits: usage is accounted at ticks, so a refill that was needed for less than a tick counts as unneeded. So
// does one ahead of a throttle, where many CPUs hold so much that little of the quota is new (CPUs may run beyond their
// slices, up to a tick each, so that little more proves nothing). A throttle that ends by itself between the reading
// and the write (CPUs return runtime that they do not need) counts as ineffective if the group then uses little.

const (
	// missesToDoubt: one ineffective refill may be a stall of the machine, or a throttle that ended by itself. Three in
	// a row hardly are, and each further one would leave a group throttled for the rest of a period.
	missesToDoubt = 3
	// firstDoubt and mostDoubt are the first and the longest back-off from refills after that.
	firstDoubt, mostDoubt = time.Minute, time.Hour
	// judgedBefore is how long before the period's end a refill is judged.
	judgedBefore = time.Millisecond
	// useSlack is by how much the measured use may exceed the true one: the readings are some time apart from the
	// write.
	useSlack = time.Millisecond
)

// Effect is what a refill did.
type Effect string

// The effects.
const (
	Undecided   Effect = ""            // it is not known yet
	Effective   Effect = "effective"   // it ended a throttle, or prevented one
	Unneeded    Effect = "unneeded"    // no throttle would have begun, or it ended by itself, or began about as soon
	Ineffective Effect = "ineffective" // the group stayed throttled
)

// Refill is a refill whose write succeeded.
type Refill struct {
	Of     workload.ID
	At     time.Time          // when its write returned
	For    bandwidth.Throttle // the throttle that it answers
	Before cpu.Counters
	CPUs   int
}

// ends is when the period of the refill ends, or an estimate where the kernel does not report that.
func (r *Refill) ends() time.Time {
	if r.For.Expires.IsZero() {
		return r.At.Add(r.For.Bandwidth.Period / 8)
	}
	return r.For.Expires
}

// Due is when the refill is judged at the latest.
func (r *Refill) Due() time.Time { return r.ends().Add(-judgedBefore) }

// left bounds what the group could use without the refill, and says whether that is known.
func (r *Refill) left() (time.Duration, bool) {
	switch t := r.For; {
	case t.UseKnown:
		return max(0, t.Left), true
	case t.Ahead && !t.Dry.IsZero():
		return t.Dry.Sub(t.At) * time.Duration(r.CPUs), true
	}
	return 0, false
}

// AtOnce judges by the counters right after the write.
func (r *Refill) AtOnce(after cpu.Counters) Effect {
	if !r.For.Ahead && after.ThrottledTime > r.Before.ThrottledTime {
		return Effective
	}
	return Undecided
}

// Later judges by a later reading, best by one at the time Due.
func (r *Refill) Later(now time.Time, after cpu.Counters) Effect {
	late := max(0, now.Sub(r.ends()))
	ran := time.Duration(0)
	if r.Before.HasUsage && after.HasUsage {
		ran = after.Usage - r.Before.Usage - late*time.Duration(r.CPUs)
	}
	left, known := r.left()
	ended := after.ThrottledTime - r.Before.ThrottledTime
	switch {
	case ran > left+useSlack && known:
		return Effective
	case r.For.Ahead, ran > useSlack && !known:
		return Unneeded
	case ended == 0 && late == 0:
		return Ineffective // it is throttled
	case late > 0 && !r.For.Expires.IsZero() && ended >= r.ends().Sub(r.At):
		return Ineffective // the throttle lasted to the period's end
	}
	return Unneeded
}

// Throttled judges a refill ahead of a throttle by one that begins after it, in the same period.
func (r *Refill) Throttled(t bandwidth.Throttle) Effect {
	if !r.For.Ahead || t.Ahead || !t.At.After(r.At) || t.At.After(r.ends()) {
		return Undecided
	}
	left, known := r.left()
	if !known || !t.UseKnown {
		return Undecided
	}
	quota := min(r.For.Bandwidth.Quota, t.Bandwidth.Quota)
	switch ran := t.Used - r.For.Used; {
	case ran > left+quota/2: // half a quota more, because CPUs may run beyond their slices, up to a tick each
		return Effective
	case ran+t.Left < quota-useSlack: // tg_set_cfs_bandwidth would have left a quota in the pool
		return Ineffective
	}
	return Unneeded
}

// trust says whether refills are known to have effect, for one group or for the node.
type trust struct {
	missed []string // the tenants of the ineffective refills in a row, until trust is lost
	retry  plan.Backoff
}

// lost says that refills are not known to have effect.
func (t *trust) lost() bool { return len(t.missed) >= missesToDoubt }

// open says whether refills may be made.
func (t *trust) open(now time.Time) bool { return !t.lost() || t.retry.Ready(now) }

// learn records an effect, and returns the trust after it.
func (t *trust) learn(now time.Time, tenant string, e Effect) Trust {
	before, again := t.lost(), false
	switch e {
	case Effective:
		*t = trust{}
	case Ineffective:
		if !before {
			t.missed = append(t.missed, tenant)
		}
		if again = t.lost() && t.retry.Ready(now); again {
			t.retry.Hit(now, firstDoubt, mostDoubt)
		}
	}
	return Trust{Lost: t.lost(), Until: t.retry.Until(), News: again || before != t.lost()}
}

// Trust says whether refills are known to have effect, for the status.
type Trust struct {
	Lost  bool      // nothing is refilled
	Until time.Time // when a refill is tried again
	News  bool      // Lost has just changed, or the back-off was renewed
}

// Refilled records the effect of a refill and returns the trust of the group and of the node after it; the zero
// Trust where nothing was learned.
func (s *State) Refilled(now time.Time, r *Refill, e Effect) (group, node Trust) {
	m := s.groups[r.Of]
	if m == nil || e == Undecided {
		return group, node
	}
	tenant := m.owner.Tenant()
	group = m.trust.learn(now, tenant, e)
	if e != Ineffective || s.trust.lost() || !slices.Contains(s.trust.missed, tenant) {
		node = s.trust.learn(now, tenant, e)
	}
	return group, node
}

// Refills says whether the throttles of a group are answered by refills: recent refills had effect, or the back-off has
// passed.
func (s *State) Refills(now time.Time, id workload.ID) bool {
	m := s.groups[id]
	return s.trust.open(now) && (m == nil || m.trust.open(now))
}

// trusted turns refills off on a node on which they have no effect.
func (s *State) trusted(in Input) Input {
	in.Rules.Refill = in.Rules.Refill && s.trust.open(in.Now)
	return in
}

// refilled says whether throttles of the candidate are ended one by one.
func (u *candidate) refilled(in Input) bool { return in.endsThrottles() && u.m.trust.open(in.Now) }
