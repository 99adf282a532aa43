package probe

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"plimsoll/internal/cgrouptest"
)

// recorded reads the records of a group until its counts are those of a period that is among them, and returns both.
// Records of periods that ended since are left out.
func recorded(t *testing.T, p *Probe, g *cgrouptest.Group, least int) (list []Period, got kernelGroup) {
	t.Helper()
	var all []Period
	within(t, 30*time.Second, "periods are recorded", func() bool {
		err := p.objects.Groups.Lookup(inode(t, g), &got)
		if err == nil {
			all, err = p.Periods(all)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = all
		for len(list) > 0 && list[len(list)-1].End > time.Duration(got.End) {
			list = list[:len(list)-1]
		}
		return len(list) >= least && list[len(list)-1].End == time.Duration(got.End)
	})
	return list, got
}

// recording is a probe that records a group which wants more than its 4 ms in 20.
func recording(t *testing.T) (*Probe, *cgrouptest.Group) {
	t.Helper()
	p, g := open(t, Options{Use: true}), cgrouptest.New(t)
	limit(t, g, 4*ms, 20*ms)
	watch(t, p, g)
	g.Spin(1)
	if err := p.Record(true); err != nil {
		t.Fatal(err)
	}
	return p, g
}

// periodsEnd waits until n periods of a group have ended, by the kernel's count.
func periodsEnd(t *testing.T, g *cgrouptest.Group, n int64) {
	t.Helper()
	from := kernelCounters(t, g).Periods
	within(t, 30*time.Second, "periods end", func() bool { return kernelCounters(t, g).Periods >= from+n })
}

// The records of periods add up to what the kernel counts: CPU time, throttles and the time lost to them, and no period
// is missing while the group runs.
func TestRecordAddsUp(t *testing.T) {
	const period = 100 * ms
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	g.Prevail() // a group that does not run for a whole period has no period after it
	limit(t, g, 30*ms, period)
	watch(t, p, g)
	g.Spin(2)
	within(t, 20*time.Second, "a throttle has ended", func() bool { return totals(t, p, g).Ends > 0 })
	if list, err := p.Periods(nil); len(list) != 0 || err != nil {
		t.Fatalf("recorded before anybody asked: %v, %v", list, err)
	}
	if err := p.Record(true); err != nil {
		t.Fatal(err)
	}
	first, before := recorded(t, p, g, 1)
	begun, at := usageAt(t, g)
	list, after := recorded(t, p, g, 20)
	used, now := usageAt(t, g)
	used -= begun
	var sum Period
	for _, one := range list {
		if one.Group != inode(t, g) || one.Quota != 30*ms || one.Count < 1 {
			t.Errorf("%+v", one)
		}
		sum.Used, sum.Lost = sum.Used+one.Used, sum.Lost+one.Lost
		sum.Throttles, sum.Count = sum.Throttles+one.Throttles, sum.Count+one.Count
	}
	if want := time.Duration(after.Sum - before.Sum); abs(sum.Used-want) > time.Microsecond {
		t.Errorf("%v used in %d periods, the kernel counts %v", sum.Used, len(list), want)
	}
	// The kernel's own file of the group, read a moment after either end of the periods.
	const ticks = 2 * 2 * 10 * ms
	if off := max(at-time.Duration(before.End), now-time.Duration(after.End)); abs(sum.Used-used) > 2*off+ticks &&
		!emulated() {
		t.Errorf("%v used in periods, cpuacct says %v", sum.Used, used)
	}
	if want := int(after.Begins - before.Begins); sum.Throttles < want-1 || sum.Throttles > want+1 {
		t.Errorf("%d throttles in periods, %d begun", sum.Throttles, want)
	}
	// A throttle of the period that runs at either end is in one of the sums only. It runs for longer than a period
	// where the timer is late.
	slack := max(period, at-time.Duration(before.End), now-time.Duration(after.End))
	if want := time.Duration(after.Wall - before.Wall); abs(sum.Lost-want) > slack || sum.Lost == 0 {
		t.Errorf("%v lost in periods, %v in all, within %v", sum.Lost, want, slack)
	}
	if span := time.Duration(after.End) - first[len(first)-1].End; time.Duration(sum.Count)*period != span {
		t.Errorf("%d periods in %v: some are missing", sum.Count, span)
	}
	if p.Unrecorded() != 0 {
		t.Errorf("%d found no room", p.Unrecorded())
	}
}

// A group that waits for its CPU after a throttle has lost one period of that to its limit at most.
func TestRecordOfALongWait(t *testing.T) {
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	limit(t, g, 10*ms, 50*ms)
	watch(t, p, g)
	cgrouptest.Pin(t, 0, g.Spin(1)[0])
	if err := p.Record(true); err != nil {
		t.Fatal(err)
	}
	// On 6.18 the group ran now and then although a real-time thread wanted its CPU all the time (its fair server may
	// do that, kernel/sched/deadline.c): then there is no wait in the 2.4 s that the helper lasts.
	const most = 5
	waits := 0
	for n := 0; waits == 0 && n < most; n++ {
		recorded(t, p, g, 2)
		if hog, said := helper(t, "hog"); hog.Wait() != nil {
			t.Fatal(said)
		}
		list, _ := recorded(t, p, g, 2)
		waits = waitsAfterThrottles(t, list)
	}
	if waits == 0 {
		t.Errorf("no wait after a throttle in %d times", most)
	}
}

// waitsAfterThrottles counts the waits in a group's periods. None has lost time to a limit in a second period.
func waitsAfterThrottles(t *testing.T, list []Period) (waits int) {
	t.Helper()
	last, owes := false, false
	for _, one := range list {
		if one.Used > 0 {
			owes = one.Used > 15*ms // a late tick takes the next quota in advance: then it is throttled for longer
		}
		waiting := one.Used == 0 && one.Lost > 0 && !owes
		if waiting && last {
			t.Errorf("%v lost in a second period of a wait: %+v", one.Lost, list)
		}
		if last = waiting; waiting {
			waits++
		}
	}
	return waits
}

// A period whose end the program did not see is in the next record, which counts it. The kernel makes such ones itself
// where a call of the timer lasts beyond the next period's end.
func TestRecordCountsUnseenPeriods(t *testing.T) {
	p, g := recording(t)
	recorded(t, p, g, 3)
	counted := func() (n int64) {
		for _, periods := range totals(t, p, g).Uses {
			n += periods
		}
		return n
	}
	before := counted()
	if err := p.programs.Detach(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Periods(nil); err != nil { // a period may have ended before
		t.Fatal(err)
	}
	periodsEnd(t, g, 20)
	if err := p.programs.Attach(); err != nil {
		t.Fatal(err)
	}
	more, _ := recorded(t, p, g, 1)
	if most := slices.MaxFunc(more, func(a, b Period) int { return a.Count - b.Count }); most.Count < 20 ||
		most.Used > time.Duration(most.Count)*8*ms {
		t.Errorf("of 20 periods with a quota of 4 ms, none of which was seen, %d are recorded: %+v", most.Count, more)
	}
	if n := counted() - before; n < 20 {
		t.Errorf("the use of %d periods is counted", n)
	}
}

// While recording is off nothing is recorded, and the first record afterwards is of one period, not of the whole time.
func TestRecordIsSwitched(t *testing.T) {
	p := open(t, Options{Use: true})
	g := cgrouptest.New(t)
	limit(t, g, 5*ms, 20*ms)
	watch(t, p, g)
	g.Spin(1)
	begun := func(n int64) {
		from := totals(t, p, g).Begins
		within(t, 30*time.Second, "throttles begin", func() bool { return totals(t, p, g).Begins >= from+n })
	}
	on := func(value bool) {
		if err := p.Record(value); err != nil {
			t.Fatal(err)
		}
	}
	on(true)
	recorded(t, p, g, 3)
	on(false)
	begun(2)      // a period that ended as it was switched off has been recorded by now
	for range 2 { // the second time there is nothing
		list, err := p.Periods(nil)
		if err != nil {
			t.Fatal(err)
		}
		begun(20)
		if more, _ := p.Periods(nil); len(more) != 0 {
			t.Errorf("%d periods recorded before, and %d while recording is off", len(list), len(more))
		}
	}
	on(true)
	list, _ := recorded(t, p, g, 2)
	if one := list[0]; one.Throttles > 4 || one.Lost > time.Duration(one.Count+1)*20*ms {
		t.Errorf("40 throttles were begun while it was off, the first period has %+v", one)
	}
}

// What finds no room in the ring is counted.
func TestRecordsOverflow(t *testing.T) {
	p := open(t, Options{Use: true, change: func(spec *ebpf.CollectionSpec) {
		spec.Maps[kernelMapRecorded].MaxEntries = uint32(os.Getpagesize())
	}})
	g := cgrouptest.New(t)
	limit(t, g, 2*ms, 5*ms)
	watch(t, p, g)
	g.Spin(1)
	if err := p.Record(true); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the ring is full", func() bool { return p.Unrecorded() >= 5 })
	if err := p.Record(false); err != nil { // what is read makes room, and there would be more
		t.Fatal(err)
	}
	list, err := p.Periods(nil)
	if most := os.Getpagesize() / (periodSize + 8); err != nil || len(list) < most-1 || len(list) > most {
		t.Errorf("%d periods in a page: %v", len(list), err)
	}
	if err := p.Record(true); err != nil {
		t.Fatal(err)
	}
	recorded(t, p, g, 5) // and there is room again
}

// Without the program that sees the ends of periods there is an error, and not an empty list.
func TestRecordWithoutPeriods(t *testing.T) {
	broken := asm.Instructions{asm.LoadMem(asm.R0, asm.R10, 8, asm.DWord), asm.Return()}
	for _, o := range []Options{{}, {Use: true, change: func(spec *ebpf.CollectionSpec) {
		spec.Programs[kernelProgHrtimerExpireEntry].Instructions = broken
	}}} {
		o.types = kernelTypes
		p, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		_, none := p.Periods(nil)
		if on := p.Record(true); !errors.Is(on, ErrNoPeriods) || !errors.Is(none, ErrNoPeriods) {
			t.Errorf("%v, %v; want ErrNoPeriods", on, none)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// usageAt is the CPU time of a group as the kernel's file has it, and when that was.
func usageAt(t *testing.T, g *cgrouptest.Group) (used, at time.Duration) {
	t.Helper()
	return usage(t, g), Monotonic()
}

func abs(d time.Duration) time.Duration { return max(d, -d) }

// What recording costs the kernel for each period: of four groups whose periods are a millisecond, by the kernel's
// figure for the program, while recording is on less that while it is off.
//
//	go test -run '^$' -bench Record -benchtime 5x ./internal/probe
func BenchmarkRecord(b *testing.B) {
	p := open(b, Options{Use: true, Stats: true})
	var groups []*cgrouptest.Group
	for range 4 {
		g := cgrouptest.New(b)
		limit(b, g, ms, ms)
		g.Start("while :; do sleep 0.001; done")
		groups = append(groups, g)
	}
	watch(b, p, groups...)
	spent := func(on bool) (perRun, perPeriod float64) {
		read := func() (cost time.Duration, runs, periods int64) {
			costs, err := p.Cost()
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range costs {
				if c.Program == kernelProgHrtimerExpireEntry {
					cost, runs = c.Total, c.Runs
				}
			}
			for _, g := range groups {
				var known kernelGroup
				if err := p.objects.Groups.Lookup(inode(b, g), &known); err != nil {
					b.Fatal(err)
				}
				periods += int64(known.Periods)
			}
			return cost, runs, periods
		}
		if err := p.Record(on); err != nil {
			b.Fatal(err)
		}
		cost, runs, periods := read()
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(100 * ms) {
			if _, err := p.Periods(nil); err != nil {
				b.Fatal(err)
			}
		}
		cost2, runs2, periods2 := read()
		return float64(cost2-cost) / float64(runs2-runs), float64(periods2-periods) / float64(runs2-runs)
	}
	var extra []float64
	for b.Loop() {
		off, _ := spent(false)
		on, share := spent(true)
		extra = append(extra, (on-off)/share)
	}
	slices.Sort(extra)
	b.ReportMetric(extra[len(extra)/2], "ns/period")
	b.ReportMetric(0, "ns/op")
}

// Of a probe that was closed one more call has the periods that nobody had read: the agent's last half second. Then
// there is an error, for the agent stops with pages open.
func TestRecordOfAClosedProbe(t *testing.T) {
	p, g := recording(t)
	recorded(t, p, g, 1)
	periodsEnd(t, g, 10)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	count := 0
	list, err := p.Periods(nil)
	for _, one := range list {
		count += one.Count
	}
	if err != nil || count < 10 {
		t.Errorf("%d of at least 10 periods: %v, %v", count, list, err)
	}
	if list, err := p.Periods(nil); err == nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
