package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/flight"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/trial"
)

const (
	ms    = time.Millisecond
	quota = 50 * ms
)

func t0() time.Time { return time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC) }

func with(p strategy.Policy) strategy.Strategy {
	s := strategy.Default()
	s.Policy, s.SharePoolThresholdPercent, s.StartupSeconds = p, 90, 0
	return s
}

// bursts are jobs of two threads that come together.
func bursts(every, mean time.Duration) sim.Load {
	return sim.Load{Threads: 2, Jobs: func(r *rand.Rand) func() (sim.Job, bool) {
		n := -1
		return func() (sim.Job, bool) {
			n++
			return sim.Job{At: time.Duration(n/2) * every, Cost: sim.Exponential(mean)(r)}, true
		}
	}}
}

func loads() map[string]sim.Load {
	return map[string]sim.Load{"requests": sim.Poisson(8, sim.Exponential(40*ms), 2), "bursts": bursts(1300*ms, 120*ms),
		"batch": sim.Periodic(5*time.Second, sim.Fixed(1600*ms), 1),
		"web":   sim.Poisson(25, sim.Exponential(8*ms), 2), "collector": collector()}
}

// collector is work of one size that two threads do together, each time at another place of a period.
func collector() sim.Load {
	return sim.Load{Threads: 2, Jobs: func(*rand.Rand) func() (sim.Job, bool) {
		n := -1
		return func() (sim.Job, bool) {
			n++
			return sim.Job{At: time.Duration(n/2) * 1030 * ms, Cost: 100 * ms}, true
		}
	}}
}

// after is how much of the record there is after a minute.
const after = 15 * time.Second

// recorded runs a load on the simulated kernel, and records a minute and more as the flight recorder does.
func recorded(t *testing.T, load sim.Load, p strategy.Policy, seed uint64) *Series {
	t.Helper()
	s, _ := recordedAt(t, quota, load, p, seed)
	return s
}

// recordedAt is recorded with a quota, and what came of the jobs.
func recordedAt(t *testing.T, quota time.Duration, load sim.Load, p strategy.Policy, seed uint64) (*Series,
	[]sim.Response) {
	t.Helper()
	const path = "/lab/a"
	begin := t0().Add(-10 * time.Second)
	w, err := trial.New(trial.Scenario{Kernel: sim.Config{CPUs: 4, Version: 2, BurstFile: true, Start: begin,
		Seed: seed}, Threshold: 90, Events: true, Ahead: true,
		Groups: []trial.Group{{Path: path, Quota: quota, Period: 100 * ms, Load: load, Strategy: with(p),
			Expiry: begin}}})
	if err != nil {
		t.Fatal(err)
	}
	b := flight.NewBuilder(begin)
	b.Know(map[string]flight.Known{path: {Container: "a", Limit: quota, Period: 100 * ms}})
	var rows []flight.Minute
	var covered flight.Spans
	told := func(now time.Time, all bool) {
		batch, _ := b.Close(now, all)
		rows, covered = append(rows, batch.Rows...), flight.Union(covered, batch.Covered)
	}
	for at := 100 * ms; at <= 70*time.Second+after; at += 100 * ms {
		used, lost := w.Kernel.Used(path), w.Kernel.ThrottledWall(path)
		w.Run(100*ms, nil)
		used, lost = w.Kernel.Used(path)-used, w.Kernel.ThrottledWall(path)-lost
		if used > 0 || lost > 0 {
			b.Add([]flight.Period{{Cgroup: path, End: begin.Add(at).UnixMilli(), Used: used.Microseconds(),
				Quota:     quota.Microseconds(),
				Throttled: lost.Microseconds(), Count: 1}})
		}
		told(begin.Add(at), false)
	}
	told(t0().Add(time.Minute+after+time.Second), true)
	list, notes, err := FromRecord(rows, covered, 4, begin, t0().Add(time.Minute+after), nil)
	if err != nil || len(list) != 1 || len(notes) != 0 {
		t.Fatal(err, len(list), notes)
	}
	return list[0], w.Kernel.Responses(path)
}

func minute() Setup {
	return Setup{From: t0(), To: t0().Add(time.Minute), CPUs: 4, Strategy: with(strategy.Auto), Step: time.Second,
		Seed: 99}
}

func compare(t *testing.T, s *Series, o Setup) Container {
	t.Helper()
	r, err := Compare([]*Series{s}, nil, o, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return r.Containers[0]
}

// near says whether two times differ by a part of the second one at most, and some.
func near(got, want time.Duration, part float64, more time.Duration) bool {
	return (got - want).Abs() <= time.Duration(part*float64(want))+more
}

// TestModelSaysWhatWas: the demand that was read of a record, run under the same limit, gives the record again. Of
// short work the record does not say how it lies in a period.
func TestModelSaysWhatWas(t *testing.T) {
	part := map[string]float64{"web": 0.1}
	for name, load := range loads() {
		for seed := range uint64(3) {
			c := compare(t, recorded(t, load, strategy.None, seed), minute())
			if m := c.Model; m == nil || !near(m.Lost.Value, c.Was.Lost.Value, cmp.Or(part[name], 0.03),
				50*ms) ||
				!near(m.Used.Value, c.Was.Used.Value, 0.01, 50*ms) {
				t.Errorf("%s %d: the model says %+v, the record %+v", name, seed, m, c.Was)
			}
		}
	}
}

// TestComings: requests are seen to come as often at any time, bursts and batches after a while.
func TestComings(t *testing.T) {
	for _, c := range []struct {
		load        string
		age         int // in places
		least, most float64
	}{{"requests", 1, 0.4, 1.3}, {"requests", 4, 0.3, 1.7}, {"bursts", 1, 0, 0}, {"bursts", 10, 0, 0.2},
		{"bursts", 13, 0.3, 4}, {"batch", 20, 0, 0}, {"batch", 50, 0.15, 4}} {
		for seed := range uint64(3) {
			got := recorded(t, loads()[c.load], strategy.None, seed).history(4).comings[bin(c.age)]
			if got < c.least || got > c.most {
				t.Errorf("%s %d: %.2f times a place of age %d, want %v to %v", c.load, seed, got, c.age, c.least,
					c.most)
			}
		}
	}
}

// TestSameSeedSameReplay: chance is an argument.
func TestSameSeedSameReplay(t *testing.T) {
	s := recorded(t, loads()["requests"], strategy.None, 1)
	o := minute()
	o.From = s.Begin // with the first raise of the quota
	other := o
	other.Seed++
	a, b, c := compare(t, s, o), compare(t, s, o), compare(t, s, other)
	if a.Would != b.Would || a.Would == c.Would {
		t.Errorf("%+v, then %+v, with another seed %+v", a.Would, b.Would, c.Would)
	}
}

// series is a container of one minute with these places, in ms of use and of throttled time.
func series(places ...[2]int) *Series {
	s := &Series{Name: "a", Cgroup: "/a", Period: 100 * ms, Begin: t0(), Limits: []Limit{{t0(), quota}},
		Places: make([]Place, 20)}
	for i, p := range places {
		s.Places[i] = Place{Used: time.Duration(p[0]) * ms, Lost: time.Duration(p[1]) * ms}
	}
	return s
}

// told writes work as "lane: ran from, came, work" in ms.
func told(list []stint) string {
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "%d: %d %d %d; ", x.lane, x.ran/ms, x.came/ms, x.work/ms)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// TestReadings: the bounds of a demand.
func TestReadings(t *testing.T) {
	for _, c := range []struct {
		name        string
		places      [][2]int
		early, late string
	}{
		{"one thread that stood twice", [][2]int{{50, 30}, {50, 50}, {20, 0}},
			"1: 20 20 50; 1: 100 70 50; 1: 200 120 20",
			"1: 20 20 50; 1: 100 70 0; 1: 100 100 49; 1: 200 150 0; 1: 200 200 19"},
		{"two threads", [][2]int{{50, 50}, {50, 75}, {20, 0}},
			"1: 25 25 25; 2: 25 25 25; 1: 100 50 25; 2: 100 50 25; 1: 200 75 10; 2: 200 75 10", ""},
		{"a second thread came in the middle", [][2]int{{50, 30}, {50, 50}, {50, 70}, {50, 75}, {20, 0}},
			"1: 20 20 50; 1: 100 70 50; 1: 200 120 30; 1: 300 150 25; 1: 400 175 10; 2: 210 210 20; 2: 300 230 25; " +
				"2: 400 255 10", ""},
		{"the second thread was away for a period", [][2]int{{50, 50}, {50, 75}, {50, 50}, {50, 75}, {20, 0}},
			"1: 25 25 25; 2: 25 25 25; 1: 100 50 25; 2: 100 50 25; 1: 200 75 50; 1: 300 125 25; 2: 300 300 25; 1: " +
				"400 150 10; 2: 400 325 10", ""},
		{"nothing stood", [][2]int{{30, 0}, {40, 0}}, "1: 0 0 30; 1: 100 100 40", "1: 0 70 30; 1: 100 160 40"},
	} {
		s := series(c.places...)
		h := s.history(4)
		if got := told(s.demand(h, Reading{kind: early}, 1)); !sameTold(got, c.early) {
			t.Errorf("%s: early %s, want %s", c.name, got, c.early)
		}
		if got := told(s.demand(h, Reading{kind: late}, 1)); c.late != "" && got != c.late {
			t.Errorf("%s: late %s, want %s", c.name, got, c.late)
		}
		for _, r := range readings() {
			var sum, used time.Duration
			for _, x := range s.demand(h, r, 1) {
				sum += x.work
			}
			for _, p := range s.Places {
				used += p.Used
			}
			if !near(sum, used, 0, time.Microsecond) {
				t.Errorf("%s: reading %v has %v of work, %v was done", c.name, r, sum, used)
			}
		}
	}
}

// sameTold compares without regard to the order of threads.
func sameTold(a, b string) bool {
	count := map[string]int{}
	for _, x := range strings.Split(a, "; ") {
		count[x]++
	}
	for _, x := range strings.Split(b, "; ") {
		count[x]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestOpenEpisode: a thread that still stands where a gap begins would have gone on until there, and what it would have
// done is in the bound from above.
func TestOpenEpisode(t *testing.T) {
	s := series([2]int{50, 50}, [2]int{50, 50}, [2]int{50, 50})
	for i := 3; i < len(s.Places); i++ {
		s.Places[i].Unknown = true
	}
	h := s.history(4)
	sum := func(k kind) (sum time.Duration) {
		for _, x := range s.demand(h, Reading{kind: k}, 1) {
			sum += x.work
		}
		return sum
	}
	if sum(early) != 300*ms || sum(late) != 150*ms || !h.episodes[0].open {
		t.Errorf("early %v, late %v, open %v", sum(early), sum(late), h.episodes[0].open)
	}
	o := minute()
	o.To = t0().Add(2 * time.Second)
	if c := compare(t, s, o); !c.Open || c.WasCurves.Used[0] == c.WasCurves.Used[0] { // NaN
		t.Errorf("open %v, curve %v", c.Open, c.WasCurves.Used)
	}
}

// TestLimitThatChanges: an owner's resize within the time is one in the replay too, unless a limit is asked for.
func TestLimitThatChanges(t *testing.T) {
	s := series()
	s.Places = make([]Place, 600)
	for i := range s.Places {
		s.Places[i] = Place{Used: 50 * ms, Lost: 50 * ms}
	}
	s.Limits = append(s.Limits, Limit{t0().Add(30 * time.Second), 100 * ms})
	o := minute()
	o.Strategy = with(strategy.None)
	if c := compare(t, s, o); !near(c.Would.Lost.Value, 15*time.Second, 0.02, 0) {
		t.Errorf("half of a minute at half a CPU: lost %v", c.Would.Lost)
	}
	if o.Limit = 100 * ms; compare(t, s, o).Would.Lost.Value > 100*ms {
		t.Errorf("a limit of one CPU: lost %v", compare(t, s, o).Would.Lost)
	}
}

// TestNeighboursPay: on a machine of one CPU a neighbour waits where a container is let above its limit.
func TestNeighboursPay(t *testing.T) {
	s, n := series(), series()
	s.Places, n.Places, n.Name, n.Cgroup, n.Limits = make([]Place, 600), make([]Place,
		600), "n", "/n", []Limit{{t0(), 0}}
	for i := range s.Places {
		n.Places[i].Used = 45 * ms
		if i%10 < 3 {
			s.Places[i] = Place{Used: 50 * ms, Lost: 50 * ms}
		} else if i%10 == 3 {
			s.Places[i] = Place{Used: 50 * ms}
		}
	}
	o := minute()
	o.CPUs, o.Limit, o.Strategy = 1, 100*ms, with(strategy.None)
	r, err := Compare([]*Series{s}, []*Series{n}, o, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Neighbours; got.Count != 1 || got.NewP99.Value < got.WasP99+10*ms || got.Worst != "n" {
		t.Errorf("%+v", got)
	}
	o.CPUs = 4
	if r, err = Compare([]*Series{s}, []*Series{n}, o, func() {}); err != nil || r.Neighbours.NewP99.Value != 0 ||
		r.Neighbours.Worst != "" {
		t.Errorf("with CPUs to spare: %+v, %v", r.Neighbours, err)
	}
}

// TestMinuteThatBeginsBefore: of a minute that begins before the time that is asked for, the rest has its places.
func TestMinuteThatBeginsBefore(t *testing.T) {
	used := make([]float32, 600)
	used[0], used[599] = 500, 700 // 10 us
	m := flight.Minute{Cgroup: "/a", Start: t0().UnixMilli(), First: 30, PeriodUs: 100_000, LimitUs: 50_000,
		UsedUs: 12_000, Periods: 600, Used: used,
		QuotaAt: []int32{0}, QuotaUs: []int64{50_000}}
	for _, from := range []time.Duration{-time.Second, 0, 30 * time.Millisecond, time.Second, 59 * time.Second} {
		list, _, err := FromRecord([]flight.Minute{m}, wholeMinute(m.Start), 2, t0().Add(from),
			t0().Add(time.Minute+time.Second), nil)
		if err != nil || len(list) != 1 {
			t.Fatal(err)
		}
		s, last := list[0], t0().Add(599*100*ms+30*ms)
		for i, p := range s.Places {
			if end := s.Begin.Add(time.Duration(i+1) * s.Period); (p.Used == 7*ms) != end.Equal(last) {
				t.Errorf("from %v: %v used in the place that ends at %v", from, p.Used, end)
			}
		}
	}
}

// TestLateTimer: throttled time that a late timer reports at the last of several periods is that of all of them, if the
// group could not have used what it used in the rest of the last one.
func TestLateTimer(t *testing.T) {
	for _, c := range []struct {
		used []float32 // 10 us
		lost []int32   // ms
		want string
	}{
		{[]float32{5000, 5000, 5000}, []int32{0, 0, 140}, "[0s 70ms 70ms 0s]"},
		{[]float32{5000, 5000, 5000, 5000}, []int32{50, 0, 100, 50}, "[50ms 50ms 50ms 50ms]"},
		{[]float32{2000, 4000, 0, 0}, []int32{0, 94, 0, 0}, "[64.666ms 29.333ms 0s 0s]"},
		{[]float32{2000, 5000, 500, 0}, []int32{0, 75, 98, 0}, "[0s 75ms 98ms 0s]"}, // two CPUs can
	} {
		used, lost := float32(0), int32(0)
		for i := range c.used {
			used, lost = used+c.used[i], lost+c.lost[i]
		}
		m := flight.Minute{Cgroup: "/a", Start: t0().UnixMilli(), First: 50, PeriodUs: 100_000, LimitUs: 50_000,
			UsedUs: int64(used)*10 + 3000, ThrottledUs: int64(lost) * 1000, Periods: 3, Used: c.used,
			ThrottledMs: c.lost, QuotaAt: []int32{0}, QuotaUs: []int64{50_000}}
		list, _, err := FromRecord([]flight.Minute{m}, wholeMinute(m.Start), 2, t0(), t0().Add(time.Minute), nil)
		if err != nil || len(list) != 1 {
			t.Fatal(err)
		}
		var places []time.Duration
		var sum time.Duration
		for _, p := range list[0].Places[:4] {
			places = append(places, p.Lost.Truncate(time.Microsecond))
			sum += p.Used
		}
		if fmt.Sprint(places) != c.want {
			t.Errorf("%v: %v, want %s", c.lost, places, c.want)
		}
		if !near(sum, time.Duration(m.UsedUs)*time.Microsecond, 0, time.Microsecond) { // exact, as the places are not
			t.Errorf("used %v", sum)
		}
	}
	m := flight.Minute{Cgroup: "/a", Start: t0().UnixMilli(), PeriodUs: 100_000, LimitUs: 50_000, UsedUs: 50_000,
		ThrottledUs: 120_000, Periods: 1, Used: []float32{5000}, ThrottledMs: []int32{120}, QuotaAt: []int32{0},
		QuotaUs: []int64{50_000}}
	list, _, err := FromRecord([]flight.Minute{m}, wholeMinute(m.Start), 2, t0().Add(-time.Second),
		t0().Add(time.Minute), nil)
	if err != nil || len(list) != 1 {
		t.Fatal(err)
	}
	for i, p := range list[0].Places {
		if p.Unknown && p.Lost > 0 {
			t.Errorf("%v lost in place %d, of which nothing is known", p.Lost, i)
		}
	}
}
