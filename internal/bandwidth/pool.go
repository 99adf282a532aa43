// Package bandwidth is the kernel's CFS bandwidth arithmetic: what a quota, a period and a burst grant, when a group
// is throttled, what the counters count, and which values the kernel refuses.
//
// It is written from kernel/sched/fair.c (__refill_cfs_bandwidth_runtime, do_sched_cfs_period_timer,
// __assign_cfs_rq_runtime, start_cfs_bandwidth) and kernel/sched/core.c (tg_set_cfs_bandwidth,
// tg_cfs_schedulable_down, to_ratio) of Linux 5.14 and later. Older kernels differ in burst only, which is 0 there.
//
// Known limits: the kernel hands runtime to each CPU in slices of 5 ms (sched_cfs_bandwidth_slice_us), of which up
// to 1 ms a CPU stays behind when that CPU goes idle, and a thread may overrun until the next tick and pay back
// later. Here runtime is taken exactly as it is used.
package bandwidth

import (
	"time"

	"plimsoll/internal/cpu"
)

// Pool is the runtime of one group (struct cfs_bandwidth). It has no clock: its owner calls Expire when the period
// timer fires. The zero value is not a pool; see New.
type Pool struct {
	bandwidth cpu.Bandwidth
	runtime   time.Duration
	snap      time.Duration // the runtime after the last refill
	active    bool          // the period timer is running
	idle      bool          // nothing was taken since the timer last fired
	counts    Counts
}

// Counts are the counters of cpu.stat that the pool keeps.
type Counts struct {
	Periods   int64         // nr_periods
	Throttled int64         // nr_throttled
	Bursts    int64         // nr_bursts
	BurstTime time.Duration // burst_usec, burst_time
}

// New is the pool of a fresh group: unlimited, empty, its timer at rest (init_cfs_bandwidth).
func New() Pool {
	return Pool{bandwidth: cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod}}
}

// Bandwidth is what is written in the group's files.
func (p *Pool) Bandwidth() cpu.Bandwidth { return p.bandwidth }

// Runtime is what can be taken at once; Unlimited without a quota.
func (p *Pool) Runtime() time.Duration {
	if !p.bandwidth.Limited() {
		return cpu.Unlimited
	}
	return p.runtime
}

// Snap is what could be taken right after the last refill (runtime_snap).
func (p *Pool) Snap() time.Duration { return p.snap }

// Empty says whether the group would be throttled on wanting to run.
func (p *Pool) Empty() bool { return p.Runtime() <= 0 }

// Active says whether the period timer runs.
func (p *Pool) Active() bool { return p.active }

// Counts are the counters so far.
func (p *Pool) Counts() Counts { return p.counts }

// Set is a write of quota, period or burst. Whatever was written, also the value that was there before, the write
// grants a quota of runtime (tg_set_cfs_bandwidth calls __refill_cfs_bandwidth_runtime) and starts the timer. A new
// period counts from the next expiry on. Set checks nothing; see Check.
func (p *Pool) Set(b cpu.Bandwidth) {
	p.bandwidth = b
	p.Refill()
	if b.Limited() {
		p.active = true // start_cfs_bandwidth
	}
}

// longestScaled bounds the periods that Scale makes (kernel/sched/core.c, max_cfs_quota_period).
const longestScaled = time.Second

// Scale doubles period, quota and burst, as the timer does that was late for several periods in a row
// (sched_cfs_period_timer). It grants nothing.
func (p *Pool) Scale() {
	if b := &p.bandwidth; b.Limited() && 2*b.Period < longestScaled {
		b.Period, b.Quota, b.Burst = 2*b.Period, 2*b.Quota, 2*b.Burst
	}
}

// Refill grants one quota on top of what is left, up to quota + burst, and counts what the time since the last
// refill used beyond one quota as a burst (__refill_cfs_bandwidth_runtime). Expire and Set call it.
func (p *Pool) Refill() {
	if !p.bandwidth.Limited() {
		return
	}
	p.runtime += p.bandwidth.Quota
	if over := p.snap - p.runtime; over > 0 {
		p.counts.BurstTime += over
		p.counts.Bursts++
	}
	p.runtime = min(p.runtime, p.bandwidth.Quota+p.bandwidth.Burst)
	p.snap = p.runtime
}

// Touch is a group that wants to run: it starts the period timer, which counts periods from then on
// (start_cfs_bandwidth from __assign_cfs_rq_runtime). It grants nothing.
func (p *Pool) Touch() {
	if p.bandwidth.Limited() {
		p.active = true
	}
}

// Take takes up to want of runtime, and returns what there was (__assign_cfs_rq_runtime).
func (p *Pool) Take(want time.Duration) time.Duration {
	if !p.bandwidth.Limited() {
		return want
	}
	p.Touch()
	if p.runtime <= 0 || want <= 0 {
		return 0
	}
	p.idle = false
	got := min(want, p.runtime)
	p.runtime -= got
	return got
}

// Expire is the period timer firing (do_sched_cfs_period_timer); throttled says whether a CPU of the group stands
// throttled at that instant. It counts the period and refills. After a period in which nothing was taken the timer
// comes to rest, having refilled twice since the last use, which fills any burst that mainline allows.
func (p *Pool) Expire(throttled bool) {
	if !p.active {
		return
	}
	if !p.bandwidth.Limited() {
		p.active = false
		return
	}
	p.counts.Periods++
	p.Refill()
	switch {
	case throttled:
		p.counts.Throttled++
		p.idle = false
	case p.idle:
		p.active = false
	default:
		p.idle = true
	}
}

// Covers says whether a group would have run these demands, one a period, without a throttle. It starts with an
// empty bank: nothing is saved before the first period. (Lindley's recursion, with the burst as the bank's size.)
func Covers(demand []time.Duration, b cpu.Bandwidth) bool {
	if !b.Limited() {
		return true
	}
	var bank time.Duration
	for _, use := range demand {
		if use > b.Quota+bank {
			return false
		}
		bank = min(bank+b.Quota-use, b.Burst)
	}
	return true
}

// Throttle is what the kernel reported of one group when its runtime ran out.
type Throttle struct {
	Inode     uint64
	At        time.Time
	Bandwidth cpu.Bandwidth // in force in the kernel
	Snap      time.Duration // in the pool after its last refill (runtime_snap); negative: the kernel does not keep it
	Expires   time.Time     // when the period timer fires next; zero: not known
	UseKnown  bool          // Used and Left are known
	Used      time.Duration // upper bound of the CPU time since the period began
	Left      time.Duration // in the pool, and held by CPUs that have not used it
	Ahead     bool          // it is predicted and has not begun yet
	Dry       time.Time     // when the first CPU will be throttled if the same CPUs go on running
}
