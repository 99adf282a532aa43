package policy

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
)

// Charging a write with the runtime that it grants.
//
// Problem: the cap is on the CPU that a group uses in one period, not on the number in a file. Every write of a
// quota or burst refills the group (kernel/sched/core.c, tg_set_cfs_bandwidth: runtime = min(runtime + quota,
// quota + burst)). A group that has used its quota Q and is then raised to 3Q can use 4Q in that period, and
// lowering it in the same period gives a fifth (measured: 5.1).
//
// Approach: before a write, bound from above what the group has used in the standing period and what is left in
// its pool, and write no more than keeps the sum at the cap. There are three bounds, each sufficient:
//   - by hand: used and left together are what the period was handed: quota, saved burst, earlier writes;
//   - by use: what the counters say was used in the last whole period, and what of the pool survives a write;
//   - at the edge: near the period's expiry (sample.Phase) the group cannot use more before, or have used more
//     after, than all CPUs in the time by which the expiry is uncertain.
//
// A write that no bound allows waits for a quiet moment or for the edge. Only a lowering is not put off for ever: after
// a while it is made, and what it grants is charged to the budget.
//
// Terminology: room is the largest quota that may be written now.
//
// Known limits: the kernel hands out runtime in slices (sched_cfs_bandwidth_slice_us, 5 ms a CPU), and what a CPU
// has left of its slice crosses the period's end. On many CPUs the edge must be known more exactly than looking
// from outside can tell, and a sustained demand is then raised to cap - quota only. A lowering that
// could wait no longer can make one period exceed the cap, by at most a quota.
// A write lets CPUs off what they have run beyond their slices, up to a tick each (tg_set_cfs_bandwidth sets their
// runtime_remaining anew, also from below 0). That is not charged, for the last refill under the cap has room for a quota and no
// more, and would hardly ever be made. So a period can exceed the cap by as much; it is not refilled any more once it has
// had the cap by the kernel's own account (refill.go), and the budget counts all of it.

// writeDelay is the time that may pass between a reading and the write that it led to.
const writeDelay = time.Millisecond

// period is what is known of the period that stands.
type period struct {
	handed time.Duration // upper bound of what it was handed, spent or not
	used   time.Duration // upper bound of what was used in it
	// edge is how far from now its expiry, or its begin, is at most; negative: not known.
	edge time.Duration
}

// room is the largest quota that may be written now so that the CPU used in the standing period stays within limit,
// when the burst is to be burst. A burst that is to be written too refills the pool once more before the quota's
// write, which leaves quota and burst in it.
func (p period) room(limit, burst time.Duration, rewritten bool, cpus int) time.Duration {
	kept := min(max(0, p.handed-p.used), burst)
	byHand := limit - p.handed
	if rewritten {
		kept, byHand = burst, byHand-burst
	}
	room := max(byHand, limit-p.used-kept)
	if p.edge >= 0 {
		slack := time.Duration(cpus) * (p.edge + writeDelay)
		if p.handed+slack <= limit {
			room = max(room, limit-burst-slack)
		}
	}
	return room
}

// nearEdge is how exactly an expiry must be known, as a part of the period, so that a lowering may be made there
// whatever was used: at the usual period of 100 ms it then grants no more than the slices that CPUs hold.
const nearEdge = 32

// atEdge says whether a period of this length expires just now.
func (p period) atEdge(length time.Duration) bool { return p.edge >= 0 && p.edge <= length/nearEdge }

// standing bounds what the candidate's period may have seen by now.
func (m *memory) standing(now time.Time, b cpu.Bandwidth) period {
	p := period{handed: b.Quota + m.saved, edge: -1}
	begun := m.begun(now, b.Period)
	if now.Sub(m.lastWrite) < begun {
		p.handed = max(p.handed, m.handed)
	}
	p.used = p.handed
	if used, ok := m.history.UsedWithin(now, begun); ok {
		p.used = min(p.used, used)
	}
	if width, ok := m.phase.Known(); ok {
		p.edge = m.phase.Distance(now) + width/2
	}
	return p
}

// begun is how long ago the standing period began, at most.
func (m *memory) begun(now time.Time, length time.Duration) time.Duration {
	width, known := m.phase.Known()
	if !known || m.phase.Distance(now) <= width/2 {
		return length
	}
	return min(length, length-m.phase.Next(now).Sub(now)+width/2)
}

// correct has the ledger follow the kernel's own account of the period, where no write came after it.
func (m *memory) correct(t Throttle) {
	if t.Counted && t.At.After(m.written) {
		m.handed = min(m.handed, t.Used+t.Left)
	}
}

// Learn books what became of the intents of the last turn, and when the first write was begun.
func (s *State) Learn(begun time.Time, results []plan.Result) {
	for _, r := range results {
		m := s.groups[r.Change.Cgroup]
		if m == nil || !r.Change.Knob.OfBandwidth() {
			continue
		}
		m.written = r.At
		if r.Outcome == plan.Applied || r.Outcome == plan.Clamped {
			m.refilled = begun
			m.took(begun, r)
		}
	}
}

// took charges a write that the kernel took, whatever it was made for: also a rewrite, a restore or a repair refills the group.
func (m *memory) took(begun time.Time, r plan.Result) {
	after := m.holds
	if d, err := r.InForce.Time(); err != nil {
		return
	} else if r.Change.Knob == plan.Burst {
		after.Burst = d
	} else {
		after.Quota = d
	}
	m.charge(begun, m.holds, after)
	m.holds = after
}

// charge books a write of ours.
func (m *memory) charge(now time.Time, before, after cpu.Bandwidth) {
	m.handed = m.standing(now, before).handed + after.Quota
	m.lastWrite = now
}

// observeSaved bounds the burst saved at the begin of the standing period: none when every period of the window
// ended throttled, for then the pool was empty.
func (m *memory) observeSaved(u sample.Usage, b cpu.Bandwidth) {
	switch {
	case u.Periods > 0 && u.Throttled == u.Periods:
		m.saved = 0
	case u.Periods > 0 || u.Elapsed() >= b.Period:
		m.saved = b.Burst
	}
}
