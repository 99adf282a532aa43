package risk

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/loadline/noderisk"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// TestPeriodsCountFromTheReading: of a container that is known already the periods of each minute count from the
// reading after a load line was asked for, and of a new one from when it was seen. What they use is not that of others.
func TestPeriodsCountFromTheReading(t *testing.T) {
	const period = 100 * time.Millisecond
	now, minutes := time.Unix(1000, 0), int64(60)
	m := &Meter{Log: slog.New(slog.DiscardHandler), Changed: func() {}}
	busy, usage := time.Duration(0), map[uint64]time.Duration{1: time.Hour}
	m.Totals = func(group uint64) (report.Throttles, bool) {
		return report.Throttles{Counted: true, Usage: usage[group]}, true
	}
	m.Uses = func(uint64) []int64 { return []int64{0, 300 * minutes, 200 * minutes} }
	old := Group{ID: workload.ID{Path: "/old", Inode: 1}, Limit: 50 * time.Millisecond,
		Bandwidth: cpu.Bandwidth{Quota: 50 * time.Millisecond, Period: period}, Since: now.Add(-time.Hour)}
	young := old
	young.ID = workload.ID{Path: "/young", Inode: 2}
	groups := []Group{old}
	for i := range 4 {
		m.Measure(now, 99, groups, busy, nil, 4)
		for m.Working() {
			time.Sleep(time.Millisecond)
		}
		if s, _ := m.Status(); i > 0 && math.Abs(s.Capacity-3.5) > 1e-9 {
			t.Errorf("others use half a CPU, and %v of 4 are left after %d minutes", s.Capacity, i)
		}
		if i == 1 {
			young.Since = now.Add(30 * time.Second)
			groups = append(groups, young)
		}
		now, minutes = now.Add(time.Minute), minutes+1
		busy += 30 * time.Second
		for _, g := range groups {
			busy, usage[g.Inode] = busy+10*time.Second, usage[g.Inode]+10*time.Second
		}
	}
	counted := func(id workload.ID) (periods int64) {
		for _, n := range sum(m.records[id].scaled()) {
			periods += n
		}
		return periods
	}
	if got := counted(old.ID); got != 3*600 {
		t.Errorf("%d periods in three minutes after the first reading", got)
	}
	if got := counted(young.ID); got == 0 || got == 3*600 {
		t.Errorf("%d periods of a container that is younger than the first reading", got)
	}
}

// TestLimitsBeyondTheNode: a container whose limit the model cannot count decides nothing for the others, and what it
// uses is not for their bursts.
func TestLimitsBeyondTheNode(t *testing.T) {
	const period = 100 * time.Millisecond
	for _, c := range []struct {
		cpus  int
		limit time.Duration
	}{{8, 160 * period}, {8, 40_000 * period}, {128, period / 1000}} {
		now, minutes := time.Unix(1000, 0), int64(1)
		m := &Meter{Log: slog.New(slog.DiscardHandler), Changed: func() {}}
		m.Totals = func(uint64) (report.Throttles, bool) {
			return report.Throttles{Counted: true, Usage: time.Duration(minutes) * time.Second}, true
		}
		m.Uses = func(uint64) []int64 { return []int64{0, 600 * minutes} }
		var groups []Group
		for i, limit := range []time.Duration{period, c.limit, period} {
			groups = append(groups, Group{ID: workload.ID{Path: fmt.Sprint("/", i), Inode: uint64(i + 1)}, Limit: limit,
				Bandwidth: cpu.Bandwidth{Quota: limit, Period: period}, Since: now.Add(-time.Hour), Burst: 1})
		}
		for range 3 {
			m.Measure(now, 99.9, slices.Clone(groups), 3*time.Duration(minutes)*time.Second, nil, c.cpus)
			for m.Working() {
				time.Sleep(time.Millisecond)
			}
			now, minutes = now.Add(time.Minute), minutes+1
		}
		s, problem := m.Status()
		if s == nil || problem != "" || s.Share != 1 || s.Containers != 2 || m.Cut() != 0 ||
			math.Abs(s.Capacity-float64(c.cpus)+1.0/60) > 1e-9 {
			t.Errorf("%g CPUs on a node of %d: %+v, %q, cut %v", c.limit.Seconds()/period.Seconds(), c.cpus, s,
				problem, m.Cut())
		}
	}
}

// TestOthersUseAllCPUs: where work without a limit leaves nothing, no burst stays.
func TestOthersUseAllCPUs(t *testing.T) {
	const period = 100 * time.Millisecond
	now, busy, minutes := time.Unix(1000, 0), time.Duration(0), int64(0)
	m := &Meter{Log: slog.New(slog.DiscardHandler), Changed: func() {}}
	m.Totals = func(uint64) (report.Throttles, bool) {
		return report.Throttles{Counted: true, Usage: time.Duration(minutes) * time.Second}, true
	}
	m.Uses = func(uint64) []int64 { return []int64{0, 600 * minutes, 0} }
	groups := []Group{{ID: workload.ID{Path: "/a", Inode: 1}, Limit: period, Burst: 1,
		Bandwidth: cpu.Bandwidth{Quota: period, Period: period}, Since: now.Add(-time.Hour)}}
	for _, c := range []struct {
		others time.Duration
		cut    float64
	}{{0, 0}, {time.Minute, 0}, {4*time.Minute + 20*time.Millisecond, 1}} {
		busy, minutes, now = busy+c.others+time.Second, minutes+1, now.Add(time.Minute)
		m.Measure(now, 99.9, slices.Clone(groups), busy, nil, 4)
		for m.Working() {
			time.Sleep(time.Millisecond)
		}
		if s, problem := m.Status(); m.Cut() != c.cut || s != nil && (s.Met != (c.cut == 0) || s.Capacity < 0) {
			t.Errorf("others use %v: cut %v, want %v; %+v, %q", c.others, m.Cut(), c.cut, s, problem)
		}
	}
}

// TestUncountedPeriods: a container whose periods are not counted is no idle one; what it uses is not there for others.
func TestUncountedPeriods(t *testing.T) {
	const limit = 100 * time.Millisecond
	now, minutes := time.Unix(1000, 0), int64(1)
	m := &Meter{Log: slog.New(slog.DiscardHandler), Changed: func() {}}
	m.Totals = func(group uint64) (report.Throttles, bool) {
		return report.Throttles{Usage: time.Duration(minutes) * time.Minute, Counted: group == 1}, true
	}
	m.Uses = func(group uint64) []int64 {
		if group == 1 {
			return []int64{0, 600 * minutes}
		}
		return make([]int64, 2)
	}
	var groups []Group
	for i := range 2 {
		groups = append(groups, Group{ID: workload.ID{Path: fmt.Sprint("/", i), Inode: uint64(i + 1)}, Limit: limit,
			Bandwidth: cpu.Bandwidth{Quota: limit, Period: limit}, Since: now.Add(-time.Hour), Burst: 1})
	}
	for range 3 {
		m.Measure(now, 99.9, slices.Clone(groups), 2*time.Duration(minutes)*time.Minute, nil, 8)
		for m.Working() {
			time.Sleep(time.Millisecond)
		}
		now, minutes = now.Add(time.Minute), minutes+1
	}
	if s, problem := m.Status(); s == nil || s.Containers != 1 || math.Abs(s.Capacity-7) > 1e-9 {
		t.Errorf("%+v, %q", s, problem)
	}
}

// TestUses: minutes are differences of counts, and periods that nobody counted are empty ones.
func TestUses(t *testing.T) {
	r := uses{limit: 1}
	r.add([]int64{0, 5, 10}, 0, 1, 0)
	r.add([]int64{0, 6, 13}, 10, 1, 0)
	for i := range KeptMinutes - 1 {
		r.add([]int64{0, 6, 13 + int64(i)}, 1, 1, 0)
	}
	if got := sum(r.scaled()); len(r.minutes) != KeptMinutes || got[0] != 7 || got[1] != 1 || got[2] != 11 {
		t.Errorf("%v in %d minutes", got, len(r.minutes))
	}
}

// TestLimitChanges: what was counted by a limit is not taken for as many sixteenths of the next one. A container stays
// in the model in the minute of the change, which counts with what was used in it.
func TestLimitChanges(t *testing.T) {
	const period, cpus = 100 * time.Millisecond, 16
	now := time.Unix(1000, 0)
	m := &Meter{Log: slog.New(slog.DiscardHandler), Changed: func() {}}
	counts, usage := make([]int64, 65), time.Duration(0)
	m.Totals = func(uint64) (report.Throttles, bool) { return report.Throttles{Counted: true, Usage: usage}, true }
	m.Uses = func(uint64) []int64 { return slices.Clone(counts) }
	measure := func(limit float64) {
		var groups []Group
		quota := time.Duration(limit * float64(period))
		for i := range 3 {
			groups = append(groups, Group{ID: workload.ID{Path: fmt.Sprint("/", i), Inode: uint64(i + 1)}, Limit: quota,
				Bandwidth: cpu.Bandwidth{Quota: quota, Period: period}, Since: now.Add(-time.Hour), Burst: 1})
		}
		m.Measure(now, 99.9, groups, 3*usage, nil, cpus)
		for m.Working() {
			time.Sleep(time.Millisecond)
		}
		now = now.Add(time.Minute)
	}
	use := func(class int, periods int64, limit float64) {
		counts[class] += periods
		usage += time.Duration(float64(class) / 16 * float64(periods) * limit * float64(period))
	}
	measure(0.5)
	for range 2 {
		use(16, 240, 0.5)
		measure(0.5)
	}
	use(16, 240, 0.5) // before the limit was raised
	for range 3 {
		measure(8)
		if s, problem := m.Status(); s.Containers != 3 || s.Asked > 1e-9 || m.Cut() != 0 || s.Capacity != cpus {
			t.Fatalf("half a CPU of each, by a limit of 8: %+v, %q, cut %v", s, problem, m.Cut())
		}
	}
	for i := range 2 * KeptMinutes { // edits in each minute hide nothing
		use(12, 240, 8)
		measure(8 - 0.01*float64(i%2))
	}
	if s, _ := m.Status(); s.Containers != 3 || math.Abs(s.Asked-0.4*0.4*0.4) > 0.01 {
		t.Errorf("6 CPUs of each in 40 %% of the periods, by changing limits: %+v", s)
	}
	use(12, 240, 8)
	measure(4)
	if got := sum(m.records[workload.ID{Path: "/0", Inode: 1}].scaled()); got[24] < 2000 || got[12] > 0 {
		t.Errorf("6 CPUs in sixteenths of 4: %v", got)
	}
}

// TestIntervalIsKept: an interval is computed in every fifth minute, and when the share of the bursts changes.
// It holds the risk.
func TestIntervalIsKept(t *testing.T) {
	now, m := time.Unix(1000, 0), &Meter{}
	var list []noderisk.Demand
	for range 8 {
		d := noderisk.Demand{Quota: 0.5, Burst: 1, Uses: make([]int64, 65)}
		for k := range 6 {
			minute := make([]int64, 65)
			minute[1], minute[8+k] = 400, 200
			d.Minutes = append(d.Minutes, minute)
			for class, n := range minute {
				d.Uses[class] += n
			}
		}
		list = append(list, d)
	}
	at := func(after time.Duration, r noderisk.Risk) [2]float64 {
		t.Helper()
		got := m.around(now.Add(after), 2, list, r)
		if got == nil || got[0] > r.Now || got[1] < r.Now {
			t.Fatalf("after %v: %v around %v", after, got, r.Now)
		}
		return *got
	}
	r := noderisk.Risk{Share: 1, Now: 0.1}
	first := at(0, r)
	if again := at(time.Minute, r); again != first || m.intervalAt != now {
		t.Errorf("a minute later: %v, then %v", first, again)
	}
	if wide := at(2*time.Minute, noderisk.Risk{Share: 1, Now: 0.99}); wide[1] != 0.99 {
		t.Errorf("a larger risk: %v", wide)
	}
	if at(3*time.Minute, noderisk.Risk{Share: 0.5, Now: 0.1}); !m.intervalAt.Equal(now.Add(3 * time.Minute)) {
		t.Error("another share, and the interval is the old one")
	}
	if at(8*time.Minute, noderisk.Risk{Share: 0.5, Now: 0.1}); !m.intervalAt.Equal(now.Add(8 * time.Minute)) {
		t.Error("five minutes later the interval is the old one")
	}
}
