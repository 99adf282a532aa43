package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Judging refills by their effect.
//
// Problem: that the kernel took a refill's write does not say that it did anything. A kernel may take an unchanged value
// for nothing to be done (a patch was posted in 2024), and then each throttle that is answered by a refill lasts to the end
// of its period, while the agent counts time saved.
//
// Approach: each refill is judged by what the kernel counts of the group.
//   - One that answers a throttle took effect if it ended one: the kernel books a throttle's time as it ends
//     (unthrottle_cfs_rq, called by tg_set_cfs_bandwidth for each CPU), so the throttled time has grown when the write
//     returns. Else the group is looked at once more just before its period ends: it took effect if the group used more
//     than it had left, and it was ineffective if the throttle stood all the time.
//   - One ahead of a throttle took effect if the group used more than it had left. It was ineffective if a throttle began
//     although the group had used no more than that. Else it was not needed: the job ended by itself.
//
// After missesToDoubt ineffective refills in a row a group is raised instead of refilled; after as many in a row, each in
// another group than the one before, all are. After a while, twice as long each time, the next throttle is answered by a
// refill again, and its effect decides.
//
// Known limits: use is counted at ticks, so what was needed by less than a tick counts as not needed. A throttle that ends
// by itself between the reading and the write (CPUs give runtime back that they do not need) counts as ineffective, where
// the group then uses little.

const (
	// missesToDoubt: one refill in vain may be a stall of the machine, or a throttle that ended by itself. Three in a row
	// hardly are, and each more would let a group stand still for the rest of a period.
	missesToDoubt = 3
	// For so long nothing is refilled after that: at first, and at most.
	firstDoubt, mostDoubt = time.Minute, time.Hour
	// judgedBefore is how long before the period's end a refill is judged.
	judgedBefore = time.Millisecond
	// useSlack is what a group may seem to use more than it does: readings are some time apart from the write.
	useSlack = time.Millisecond
)

// Effect is what became of a refill.
type Effect string

// The effects.
const (
	Undecided   Effect = ""            // it is not known yet
	Effective   Effect = "effective"   // it ended a throttle, or prevented one
	Unneeded    Effect = "unneeded"    // the throttle that was foreseen would not have begun, or ended by itself
	Ineffective Effect = "ineffective" // the group stood still all the same
)

// Refill is one that the kernel took.
type Refill struct {
	Of      workload.ID
	Begun   time.Time // when its write was begun
	At      time.Time // when that was done
	For     Throttle  // what it answers
	Before  cpu.Counters
	CPUs    int
	decided bool
}

// ends is when the period of the refill ends, or may end where the kernel does not tell.
func (r *Refill) ends() time.Time {
	if r.For.Expires.IsZero() {
		return r.At.Add(r.For.Bandwidth.Period / 8)
	}
	return r.For.Expires
}

// Due is when the refill is to be judged, if it was not before.
func (r *Refill) Due() time.Time { return r.ends().Add(-judgedBefore) }

// left bounds what the group could use without the refill, and says whether that is known.
func (r *Refill) left() (time.Duration, bool) {
	switch t := r.For; {
	case t.Counted:
		return max(0, t.Left), true
	case t.Ahead && !t.Dry.IsZero():
		return t.Dry.Sub(t.At) * time.Duration(r.CPUs), true
	}
	return 0, false
}

// AtOnce judges by what the kernel counted when the write was done.
func (r *Refill) AtOnce(after cpu.Counters) Effect {
	if !r.For.Ahead && after.ThrottledTime > r.Before.ThrottledTime {
		return Effective
	}
	return Undecided
}

// Later judges by a later reading, at best when it is due.
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
		return Ineffective // it stood still to the end
	}
	return Unneeded
}

// Throttled judges a refill ahead of a throttle by one that begins after it, in the same period.
func (r *Refill) Throttled(t Throttle) Effect {
	if !r.For.Ahead || t.Ahead || !t.At.After(r.At) || t.At.After(r.ends()) {
		return Undecided
	}
	left, known := r.left()
	if !known || !t.Counted {
		return Undecided
	}
	if ran := t.Used - r.For.Used; ran > left+t.Bandwidth.Quota/2 { // CPUs may run beyond their slices, up to a tick each
		return Effective
	}
	return Ineffective
}

// trust is whether refills are relied on, for one group or for the node.
type trust struct {
	misses int // ineffective ones in a row
	last   workload.ID
	retry  plan.Backoff
}

// open says whether refills may be made.
func (t *trust) open(now time.Time) bool { return t.misses < missesToDoubt || t.retry.Ready(now) }

// learn takes an effect, and says whether refills are given up by it.
func (t *trust) learn(now time.Time, of workload.ID, e Effect) (lost bool) {
	switch e {
	case Effective:
		*t = trust{}
	case Ineffective:
		t.misses, t.last = t.misses+1, of
		if lost = t.misses >= missesToDoubt && t.retry.Ready(now); lost {
			t.retry.Hit(now, firstDoubt, mostDoubt)
		}
	}
	return lost
}

// Trust is whether refills are relied on, for the status.
type Trust struct {
	Lost  bool      // nothing is refilled
	Until time.Time // when a refill is tried again
	News  bool      // it has just been lost, or is back
}

func (t *trust) tell() Trust {
	return Trust{Lost: t.misses >= missesToDoubt, Until: t.retry.Until()}
}

// Refilled takes what became of a refill, once, and says how the group and the node stand after it.
func (s *State) Refilled(now time.Time, r *Refill, e Effect) (group, node Trust) {
	m := s.groups[r.Of]
	if r.decided || m == nil || e == Undecided {
		return Trust{}, s.trust.tell()
	}
	r.decided = true
	before := m.trust.tell()
	lost := m.trust.learn(now, r.Of, e)
	group = m.trust.tell()
	group.News = lost || before.Lost != group.Lost
	before, lost = s.trust.tell(), false
	if e != Ineffective || s.trust.last != r.Of {
		lost = s.trust.learn(now, r.Of, e)
	}
	node = s.trust.tell()
	node.News = lost || before.Lost != node.Lost
	return group, node
}

// Refills says whether the throttles of a group are answered by refills: they have had effect of late, or it is time to try
// again.
func (s *State) Refills(now time.Time, id workload.ID) bool {
	m := s.groups[id]
	return s.trust.open(now) && (m == nil || m.trust.open(now))
}

// trusted has nothing refilled on a node on which refills have no effect.
func (s *State) trusted(in Input) Input {
	in.Rules.Refill = in.Rules.Refill && s.trust.open(in.Now)
	return in
}

// refilled says whether throttles of the candidate are ended one by one.
func (u *candidate) refilled(in Input) bool { return in.endsThrottles() && u.m.trust.open(in.Now) }
