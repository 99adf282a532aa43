// Package risk keeps what containers have wanted of late, and computes once a minute how much burst the node can bear
// (loadline/noderisk). The computation takes a fraction of a second on a full node, so it runs beside the turns.
package risk

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/loadline/noderisk"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// KeptMinutes is how far back the demands go that the load line is computed from.
const KeptMinutes = 10

// Group is a container with a limit.
type Group struct {
	workload.ID
	Limit time.Duration // the owner's quota
	cpu.Bandwidth
	Since        time.Time // when the container was first seen
	Burst, Raise float64   // requested, in limits (policy.Requested)
}

// limit is that of the owner in CPUs.
func (g Group) limit() float64 { return cpu.Bandwidth{Quota: g.Limit, Period: g.Period}.CPUs() }

// Meter measures.
type Meter struct {
	Log *slog.Logger
	// Totals is what the kernel's programs have counted of a group; false: they do not count it.
	Totals func(group uint64) (report.Throttles, bool)
	// Uses is how many of its periods had which use, in sixteenths of the limit.
	Uses func(group uint64) []int64
	// Changed is called, from another goroutine, when other bursts are to be decided.
	Changed func()

	mu      sync.Mutex
	records map[workload.ID]*uses
	at      time.Time // of the last reading
	busy    time.Duration
	working bool // the risk is being computed
	cut     float64
	status  *report.Risk
	problem string

	// Of compute alone, which does not run twice at a time.
	interval   *[2]float64
	intervalOf float64 // the share of the bursts
	intervalAt time.Time
}

// uses is the use of a container's periods in the last minutes.
type uses struct {
	total   []int64
	minutes []minute // oldest first
	used    time.Duration
	limit   float64
}

// minute is how many periods had which use, in sixteenths of what was the limit then, in CPUs.
type minute struct {
	counts []int64
	limit  float64
}

// Off forgets everything; why says what is in the way, "" where nobody asks for a load line.
func (m *Meter) Off(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.at, m.busy, m.cut, m.status, m.problem = nil, time.Time{}, 0, 0, nil, why
}

// Due says whether it is time to read what the containers have used.
func (m *Meter) Due(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.working && now.Sub(m.at) >= noderisk.Every
}

// Measure reads what the containers have used, and has the risk computed from that. busy is the CPU time that the
// machine has used, or why it is not known; cpus is how many it has.
func (m *Meter) Measure(now time.Time, target float64, groups []Group, busy time.Duration, err error, cpus int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problem = ""
	if err != nil {
		m.problem = fmt.Sprintf(report.ProblemLoadLine, err)
		return
	}
	groups = slices.DeleteFunc(groups, func(g Group) bool { return !noderisk.Models(g.limit(), cpus) })
	last, machine := m.at, busy-m.busy
	m.at, m.busy = now, busy
	if last.IsZero() {
		m.demands(now, now, groups, cpus) // from now on
		return
	}
	demands, modelled := m.demands(now, last, groups, cpus)
	others := max(0, machine-modelled).Seconds() / now.Sub(last).Seconds()
	m.working = true
	go m.compute(now, max(0, float64(cpus)-others), demands, target)
}

// demands reads what the containers have used in their periods since the last reading, and returns what is known of
// them, and the CPU time that they used meanwhile. One that was there then and was not counted, for nobody asked yet or
// it had no limit, is so from now on. A new one has used no more than the CPUs could give since it was seen.
func (m *Meter) demands(now, last time.Time, groups []Group, cpus int) (list []noderisk.Demand, used time.Duration) {
	records := map[workload.ID]*uses{}
	for _, g := range groups {
		t, ok := m.Totals(g.Inode)
		if !ok || !t.Counted { // what it uses is not there for the others
			continue
		}
		total := m.Uses(g.Inode)
		r, begin := m.records[g.ID], last
		switch {
		case r == nil && g.Since.Before(last):
			records[g.ID] = &uses{total: total, used: t.Usage, limit: g.limit()}
			continue
		case r == nil:
			before := max(0, t.Usage-time.Duration(cpus)*now.Sub(g.Since))
			r, begin = &uses{used: before, limit: g.limit()}, g.Since
		}
		took := t.Usage - r.used
		r.add(total, int64(now.Sub(begin)/g.Period), g.limit(), took.Seconds()/g.Period.Seconds())
		used += took
		r.used, records[g.ID] = t.Usage, r
		minutes := r.scaled()
		list = append(list, noderisk.Demand{Quota: g.limit(), Burst: g.Burst, Raise: g.Raise, Uses: sum(minutes),
			Minutes: minutes})
	}
	m.records = records
	return list, used
}

// add takes the counts since the start, and keeps those of the last minute. Periods that the kernel has not counted are
// those in which nothing was used. used is what all of them used, in CPUs times periods.
func (r *uses) add(total []int64, periods int64, limit, used float64) {
	last := minute{make([]int64, len(total)), limit}
	classes := int64(0)
	for i, n := range total {
		if i < len(r.total) {
			n -= r.total[i]
		}
		last.counts[i] = n
		periods -= n
		classes += int64(i) * n
	}
	if len(total) > 0 {
		last.counts[0] += max(0, periods)
	}
	if limit != r.limit && classes > 0 {
		// Which periods came before the change is not known. With a limit in between they add up to what was used.
		between := used * noderisk.UsesPerQuota / float64(classes)
		last.limit = min(max(between, min(limit, r.limit)), max(limit, r.limit))
	}
	r.total, r.limit = total, limit
	if r.minutes = append(r.minutes, last); len(r.minutes) > KeptMinutes {
		r.minutes = r.minutes[1:]
	}
}

// scaled is the minutes in sixteenths of the limit of now, rounded, but some use stays some use.
func (r *uses) scaled() [][]int64 {
	list := make([][]int64, len(r.minutes))
	for k, m := range r.minutes {
		list[k] = make([]int64, len(m.counts))
		for i, n := range m.counts {
			class := max(min(i, 1), int(math.Round(float64(i)*m.limit/r.limit)))
			list[k][min(class, len(m.counts)-1)] += n
		}
	}
	return list
}

func sum(minutes [][]int64) (all []int64) {
	for _, counts := range minutes {
		all = append(all, make([]int64, max(0, len(counts)-len(all)))...)
		for i, n := range counts {
			all[i] += n
		}
	}
	return all
}

// compute finds what the node can bear, and says when that has changed.
func (m *Meter) compute(now time.Time, capacity float64, demands []noderisk.Demand, target float64) {
	risk, err := noderisk.LoadLine(capacity, demands, target)
	var interval *[2]float64
	if err == nil {
		interval = m.around(now, capacity, demands, risk)
	}
	if m.learn(now, capacity, risk, interval, err) {
		m.Log.Info("load line", "share", risk.Share, "risk", risk.Now, "asked", risk.Asked, "target", risk.Target)
		m.Changed()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working = false
}

// intervalEvery is how often an interval is computed: that of 250 containers takes a second of CPU time.
const intervalEvery = 5 * time.Minute

// around is the interval of a risk. Between two computations it is the last one, widened to hold the risk.
func (m *Meter) around(now time.Time, capacity float64, demands []noderisk.Demand, r noderisk.Risk) *[2]float64 {
	if m.interval == nil || r.Now <= 0 || r.Share != m.intervalOf || now.Sub(m.intervalAt) >= intervalEvery {
		m.interval = noderisk.Interval(capacity, demands, r, uint64(now.UnixNano()))
		m.intervalOf, m.intervalAt = r.Share, now
	}
	if m.interval == nil {
		return nil
	}
	return &[2]float64{min(m.interval[0], r.Now), max(m.interval[1], r.Now)}
}

func (m *Meter) learn(now time.Time, capacity float64, risk noderisk.Risk, interval *[2]float64,
	err error) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.problem = fmt.Sprintf(report.ProblemLoadLine, err)
		return false
	}
	m.status = &report.Risk{Target: risk.Target, Asked: risk.Asked, Now: risk.Now, Interval: interval,
		Share: risk.Share, Met: risk.Met, Containers: risk.Containers, Capacity: capacity, At: now}
	if !risk.Met {
		m.problem = report.ProblemLoadLineMissed
	}
	before := m.cut
	m.cut = 1 - risk.Share
	return m.cut != before
}

// Cut is the part of all bursts asked for that the node cannot bear.
func (m *Meter) Cut() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// Working says whether the risk is being computed; it is until those who act on it know of a change.
func (m *Meter) Working() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.working
}

// Status is how the node stands to its load line, nil where that is not known, and what is in the way of knowing.
func (m *Meter) Status() (*report.Risk, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status, m.problem
}
