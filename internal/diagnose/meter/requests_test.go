package meter

import (
	"log/slog"
	"testing"
	"time"

	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// counters are programs that have counted what a test says.
type counters map[uint64]requests.Counts

func (c counters) Watch([]uint64) error                       { return nil }
func (c counters) Start() error                               { return nil }
func (c counters) Read(group uint64) (requests.Counts, error) { return c[group], nil }
func (c counters) Untraced() int64                            { return 3 }
func (c counters) Close() error                               { return nil }

type pods []workload.Pod

func (p pods) Pods() ([]workload.Pod, error) { return p, nil }

// came is so many requests of 1 ms, and doubtful ones.
func came(n, doubtful int64) requests.Counts {
	c := requests.Counts{Requests: n, Doubtful: doubtful, Time: time.Duration(n) * time.Millisecond, Split: n,
		Throttled: time.Duration(n) * 100 * time.Microsecond}
	c.Response[160] = uint32(n) // 1,016 us to 1,049 us
	return c
}

// TestRequestMinute: the status has the present minute up to now until a whole one is over, and then the last whole
// one. Totals go on.
func TestRequestMinute(t *testing.T) {
	c := workload.Container{}
	c.Path, c.Inode = "/lab/web", 7
	programs := counters{7: came(1000, 0)} // before the agent
	r := NewRequestTimes(pods{{Containers: []workload.Container{c}}}, nil, slog.New(slog.DiscardHandler))
	begun := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	if err := r.begin(&Requests{programs: programs, of: map[string]*measured{}}, begun); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after    time.Duration
		counts   requests.Counts
		window   time.Duration
		answered int64
	}{
		{30 * time.Second, came(1010, 0), 30 * time.Second, 10},
		{60 * time.Second, came(1060, 0), time.Minute, 60},
		{90 * time.Second, came(2000, 0), time.Minute, 60},
		{120 * time.Second, came(2000, 0), time.Minute, 940},
		{180 * time.Second, came(2000, 0), time.Minute, 0},
	} {
		now := begun.Add(step.after)
		programs[7] = step.counts
		if err := r.turn(now); err != nil {
			t.Fatal(err)
		}
		s := report.Status{Now: now, Containers: []report.Container{{Cgroup: "/lab/web"}, {Cgroup: "/lab"}}}
		r.Report(&s)
		got := s.Containers[0].Requests
		if s.Requests.Problem != "" || s.Requests.Untraced != 3 || got == nil || s.Containers[1].Requests != nil {
			t.Fatalf("after %v: %+v, %+v", step.after, s.Requests, s.Containers)
		}
		if got.Window != step.window || got.Answered != step.answered || got.Total.Answered != step.counts.Requests {
			t.Errorf("after %v: %d in %v, %d in all; want %d in %v", step.after, got.Answered, got.Window,
				got.Total.Answered, step.answered, step.window)
		}
	}
	if last := r.Minute(begun.Add(2 * time.Minute)); len(last) != 1 || last["/lab/web"].Answered != 0 ||
		r.Minute(begun) != nil || r.Minute(begun.Add(3*time.Minute)) != nil {
		t.Errorf("%+v", last)
	}
	if throttled := r.Throttled(7); throttled == nil || *throttled != 200*time.Millisecond {
		t.Errorf("throttled: %v", throttled)
	}
}

// TestRequestWindow: no time is told where more than one request in a hundred is doubtful, and the lengths of the
// metrics have every request but those longer than the last.
func TestRequestWindow(t *testing.T) {
	totals := func(c requests.Counts) report.RequestTotals { return new(measured).totals(c) }
	w, all := windowOf(came(100, 0), time.Second), totals(came(100, 0))
	if w.Withheld || w.Response.P99 < 1010*time.Microsecond || w.Response.P99 > 1050*time.Microsecond ||
		w.Time != 100*time.Millisecond ||
		!w.ThrottledKnown || w.Throttled != 10*time.Millisecond {
		t.Errorf("%+v", w)
	}
	var n int64
	for _, l := range all.Lengths {
		if n += l.N; l.N > 0 && (l.UpTo < time.Millisecond || l.UpTo > 2*time.Millisecond) {
			t.Errorf("%+v", l)
		}
	}
	if n != 100 {
		t.Errorf("%d of 100 requests: %+v", n, all.Lengths)
	}
	some := came(100, 0)
	some.Split = 94
	if w, all := windowOf(some, time.Second), totals(some); w.ThrottledKnown || w.Throttled != 0 ||
		w.Response.P99 == 0 || all.Throttled != 0 {
		t.Errorf("throttled time of 94 of 100 requests: %+v, %+v", w, all)
	}
	if w, all := windowOf(came(97, 3), time.Second), totals(came(97, 3)); !w.Withheld || w.Response.P99 != 0 ||
		w.Time != 0 || w.Answered != 97 ||
		len(all.Lengths) != 0 || all.Time != 0 || all.Doubtful != 3 {
		t.Errorf("%+v, %+v", w, all)
	}
}

// TestNoBoundFalls: a response that gets longer after it was shown leaves no bound with fewer, the next one is not
// counted twice for it, and a counter of the kernel that turns over goes on.
func TestNoBoundFalls(t *testing.T) {
	const short, long = 160, 320 // 1 ms, and 1 s
	one := &measured{}
	total := func(n int64, counts map[int]uint32) (upTo2ms, all int64) {
		c := requests.Counts{Requests: n}
		for class, n := range counts {
			c.Response[class] = n
		}
		for _, l := range one.totals(c).Lengths {
			if l.N < 0 {
				t.Errorf("%d requests: %+v", n, l)
			}
			if all += l.N; l.UpTo < 3*time.Millisecond {
				upTo2ms = all
			}
		}
		return upTo2ms, all
	}
	const turn = 1 << 32
	for _, step := range []struct {
		n            int64
		counts       map[int]uint32
		upTo2ms, all int64
	}{
		{1, map[int]uint32{short: 1}, 1, 1},
		{1, map[int]uint32{long: 1}, 1, 1},
		{2, map[int]uint32{short: 1, long: 1}, 1, 2},
		{3, map[int]uint32{short: 2, long: 1}, 2, 3},
		{turn / 4, map[int]uint32{short: turn/4 - 1, long: 1}, turn/4 - 1, turn / 4},
		{turn / 2, map[int]uint32{short: turn/2 - 1, long: 1}, turn/2 - 1, turn / 2},
		{turn / 4 * 3, map[int]uint32{short: turn/4*3 - 1, long: 1}, turn/4*3 - 1, turn / 4 * 3},
		{turn + 6, map[int]uint32{short: 5, long: 1}, turn + 5, turn + 6},
	} {
		if upTo2ms, all := total(step.n, step.counts); upTo2ms != step.upTo2ms || all != step.all {
			t.Errorf("%+v: %d up to 2 ms of %d", step, upTo2ms, all)
		}
	}
}
