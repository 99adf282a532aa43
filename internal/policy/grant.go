package policy

import (
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
)

// Charging a write with the runtime that it grants.
//
// Problem: the cap limits the CPU time that a group uses in one period, not the number in a file. Every write of a
// quota or burst refills the group (kernel/sched/core.c, tg_set_cfs_bandwidth: runtime = min(runtime + quota, quota +
// burst)). A group that has used its quota Q and is then raised to 3Q can use 4Q in that period, and lowering it in the
// same period grants a fifth Q (measured: 5.1).
//
// Approach: before a write, compute upper bounds of what the group has used in the current period and of what is left
// in its pool, and write the largest quota that keeps the sum within the cap. There are three bounds, each sufficient:
//   - by grants: used and left together are what the period was granted: quota, saved burst, earlier writes;
//   - by use: the usage of the last whole period by the counters, and the part of the pool that survives a write;
//   - at the edge: near the period's expiry (sample.Phase) the group cannot use more before, or have used more
//     after, than all CPUs in the time by which the expiry is uncertain.
//
// A write that no bound allows waits until the group has used little, or for the edge. For a raise that the edge does
// not allow, the group is read just before the edge and just after it, which tells how little it has used (changes.go).
// Only a lowering has a deadline: after it, the lowering is written, and its grant is charged to the budget.
//
// Terminology: room is the largest quota that may be written now.
//
// Known limits: the kernel hands out runtime in slices (sched_cfs_bandwidth_slice_us, 5 ms a CPU), and the rest of a
// CPU's slice crosses the period's end. Of a cap below two quotas a group that runs on many CPUs at once may get a part
// only: it has used much by the time that its period is known to have begun. A lowering that could wait no longer can
// make one period exceed the cap, by at most a quota, and one at the edge by what the group uses in a 32nd of the
// period (nearEdge). A write cancels the debt of CPUs that have run beyond their slices, up to a tick each
// (tg_set_cfs_bandwidth resets their runtime_remaining, also from below 0). That debt is not charged: the last refill
// under the cap has room for exactly one quota, and would hardly ever be allowed. So a period can exceed the cap by as
// much. It is not refilled again once it has used the cap by the kernel's own account (refill.go), which there is on up
// to 64 CPUs at a time, of tasks less than twelve levels below, and the budget counts all of it.

// writeDelay is the time that may pass between a reading and the write that it causes.
const writeDelay = time.Millisecond

// period is what is known of the current period.
type period struct {
	handed time.Duration // upper bound of the runtime that it was granted, used or not
	used   time.Duration // upper bound of what was used in it
	// edge bounds the distance from now to its expiry or begin; negative: not known.
	edge time.Duration
}

// room is the largest quota that may be written now so that the CPU time used in the current period stays within limit,
// together with the given burst. If the burst is rewritten too, its write refills the pool once more before the quota's
// write, which leaves quota and burst in the pool.
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

// nearEdge is how exactly an expiry must be known, as a part of the period, so that a lowering may be written there
// whatever was used: at the usual period of 100 ms it then grants no more than the slices that CPUs hold.
const nearEdge = 32

// currentPeriod bounds what the group's current period has been granted and has used by now.
func (m *memory) currentPeriod(now time.Time, b cpu.Bandwidth) period {
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

// begun bounds how long ago the current period began.
func (m *memory) begun(now time.Time, length time.Duration) time.Duration {
	width, known := m.phase.Known()
	if !known || m.phase.Distance(now) <= width/2 {
		return length
	}
	return min(length, length-m.phase.Next(now).Sub(now)+width/2)
}

// correct lowers the bound of the grants to the kernel's own account of the period, where no write came after it.
func (m *memory) correct(t bandwidth.Throttle) {
	if t.UseKnown && t.At.After(m.written) {
		m.handed = min(m.handed, t.Used+t.Left)
	}
}

// Learn records the results of the last turn's intents. begun is when the first write began.
func (s *State) Learn(begun time.Time, results []plan.Result) {
	for _, r := range results {
		m := s.groups[r.Change.Cgroup]
		if m == nil || !r.Change.Knob.OfBandwidth() {
			continue
		}
		m.written = r.At
		taken := r.Taken
		if r.Outcome == plan.Applied {
			taken = max(1, taken)
		}
		wrote := plan.Result{Change: r.Change, InForce: r.Change.To} // is granted, whatever can be read back
		// Whatever the reason: a rewrite, a restore or a repair refills the group, too.
		for range taken {
			after, _ := wrote.Bandwidth(m.inFile)
			m.charge(begun, m.inFile, after)
			m.refilled, m.inFile = begun, after
		}
		m.inFile, _ = r.Bandwidth(m.inFile)
	}
}

// charge adds the grant of a write to the current period.
func (m *memory) charge(now time.Time, before, after cpu.Bandwidth) {
	m.handed = m.currentPeriod(now, before).handed + after.Quota
	m.lastWrite = now
}

// observeSaved bounds the burst saved at the begin of the current period: none when every period of the window ended
// throttled, for then the pool was empty.
func (m *memory) observeSaved(u sample.Usage, b cpu.Bandwidth) {
	switch {
	case throttledThroughout(u):
		m.saved = 0
	case u.Periods > 0 || u.Elapsed() >= b.Period:
		m.saved = b.Burst
	}
}
