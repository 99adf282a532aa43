package trace

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

const ms = time.Millisecond

// TestGrid compares the growth in each period with the use, with readings at odd times.
func TestGrid(t *testing.T) {
	for _, tt := range []struct {
		name     string
		at, used []time.Duration // of the readings; the first begins
		want     []float64
	}{
		{"in time", []time.Duration{0, 100 * ms, 200 * ms}, []time.Duration{5 * ms, 15 * ms, 45 * ms},
			[]float64{10e6, 30e6}},
		{"late by a tenth", []time.Duration{0, 110 * ms, 200 * ms}, []time.Duration{0, 11 * ms, 20 * ms},
			[]float64{10e6, 10e6}},
		{"hardly late", []time.Duration{0, 101 * ms, 200 * ms}, []time.Duration{0, 60 * ms, 60 * ms},
			[]float64{60e6, 0}},
		{"three at once", []time.Duration{0, 300 * ms}, []time.Duration{0, 60 * ms}, []float64{20e6, 20e6, 20e6}},
		{"late, then early in the next", []time.Duration{0, 150 * ms, 200 * ms}, []time.Duration{0, 30 * ms, 80 * ms},
			[]float64{20e6, 60e6}},
		{"begun late", []time.Duration{1 * ms, 100 * ms}, []time.Duration{7 * ms, 17 * ms}, []float64{10e6}},
		{"backwards", []time.Duration{0, 100 * ms, 200 * ms, 300 * ms}, []time.Duration{0, 50 * ms, 20 * ms, 70 * ms},
			[]float64{50e6, 0, 20e6}},
	} {
		g := newGrid(100*ms, tt.at[0], tt.used[0])
		var got []float64
		for i := range tt.at[1:] {
			got = append(got, g.add(tt.at[i+1], tt.used[i+1])...)
		}
		if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b float64) bool {
			return math.Abs(a-b) < 1
		})); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestGridLosesNothing: whenever it is read, all that was used is in some period.
func TestGridLosesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g := newGrid(100*ms, 0, 0)
	var at, used time.Duration
	var sum float64
	periods := 0
	for range 10_000 {
		at += time.Duration(random.ExpFloat64() * float64(70*ms))
		used += time.Duration(random.Int64N(int64(50 * ms)))
		for _, v := range g.add(at, used) {
			if v < 0 {
				t.Fatalf("growth %g", v)
			}
			sum += v
			periods++
		}
	}
	for _, v := range g.add(time.Duration(periods+1)*100*ms, used) {
		sum += v
	}
	if math.Abs(sum-float64(used)) > 1000 || periods != int(at/(100*ms)) {
		t.Errorf("%g of %d in %d periods of %s", sum, used, periods, at)
	}
}

// world is a machine with containers that use a part of it at an even rate, and a clock that oversleeps.
type world struct {
	now   time.Time
	late  func(waits int) time.Duration
	waits int
	stop  int // the wait at which the context ends
	gone  int // the reading from which on a container is gone
	reads int
}

func (w *world) recorder(cpus ...float64) Recorder {
	r := Recorder{Period: 100 * ms, CPUs: 4, Now: func() time.Time { return w.now }, Wait: w.wait}
	start := w.now
	for i, rate := range cpus {
		r.Sources = append(r.Sources, Source{Name: string(rune('a' + i)), Limit: rate,
			Read: func() (time.Duration, time.Duration, error) {
				w.reads++
				w.now = w.now.Add(20 * time.Microsecond)
				if w.gone > 0 && w.reads >= w.gone {
					return 0, 0, errors.New("no such group")
				}
				used := time.Duration(rate * float64(w.now.Sub(start)))
				if i == 0 {
					return used, 0, nil
				}
				return used, used / 2, nil
			}})
	}
	return r
}

func (w *world) wait(ctx context.Context, until time.Time) error {
	w.waits++
	if w.stop > 0 && w.waits >= w.stop {
		return context.Canceled
	}
	if w.now.Before(until) {
		w.now = until
	}
	w.now = w.now.Add(w.late(w.waits))
	return nil
}

// TestLimitThatAppears: a limit that was not there when the recording began hides demand all the same, also one that is
// gone when it ends or that came in its last second.
func TestLimitThatAppears(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		limit func(period int) float64
		begin float64
		stop  int
		want  float64
		other bool
	}{
		"none": {func(int) float64 { return inf }, inf, 0, inf, false},
		"one":  {func(int) float64 { return 0.5 }, 0.5, 0, 0.5, false},
		"from the middle": {func(n int) float64 { return map[bool]float64{true: 0.2, false: inf}[n >= 50] }, inf,
			0, 0.2, true},
		"for two seconds": {func(n int) float64 {
			return map[bool]float64{true: 0.2, false: inf}[n >= 50 && n < 70]
		}, inf, 0, 0.2, true},
		"in the last period": {func(n int) float64 { return map[bool]float64{true: 0.2, false: inf}[n >= 99] }, inf,
			0, 0.2, true},
		"just before it ends": {func(n int) float64 { return map[bool]float64{true: 0.2, false: inf}[n >= 33] }, inf,
			35, 0.2, true},
		"raised from the first": {func(n int) float64 { return map[bool]float64{true: 1.5, false: 0.5}[n >= 50] }, 0.5,
			0, 0.5, true},
	} {
		w := &world{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), late: never, stop: c.stop}
		begun := w.now
		r := w.recorder(1)
		r.Sources[0].Limit = c.begin
		r.Sources[0].LimitNow = func() (float64, error) { return c.limit(int(w.now.Sub(begun) / (100 * ms))), nil }
		got, err := r.Run(context.Background(), 100)
		if c.stop == 0 && err != nil {
			t.Fatal(err)
		}
		if s := got.Series[0]; s.Limit != c.want || s.LimitChanged != c.other {
			t.Errorf("%s: limit %v, changed %v; want %v, %v", name, s.Limit, s.LimitChanged, c.want, c.other)
		}
		if warned := strings.Contains(strings.Join(got.Warnings(), "\n"),
			`the limit of "a" changed while it was recorded`); warned != c.other {
			t.Errorf("%s: warnings %q", name, got.Warnings())
		}
		for _, file := range []string{"x.npy", "x.csv"} {
			file = filepath.Join(t.TempDir(), file)
			if err := Save(file, got); err != nil {
				t.Fatal(err)
			}
			if back, err := Load(file); err != nil || back.Series[0].LimitChanged != c.other ||
				back.Series[0].Limit != c.want {
				t.Errorf("%s: read back as %+v, %v", name, back.Series, err)
			}
		}
	}
}

func never(int) time.Duration { return 50 * time.Microsecond }

func TestRecorder(t *testing.T) {
	w := &world{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), late: func(n int) time.Duration {
		switch n {
		case 7:
			return 30 * ms
		case 20:
			return 450 * ms
		}
		return 50 * time.Microsecond
	}}
	progress := 0
	r := w.recorder(1, 2)
	r.Progress = func(done int) { progress = done }
	got, err := r.Run(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if got.Late != 1+5 || got.Len() != 100 || got.CPUs != 4 ||
		got.Started != time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) || progress != 100 || got.Check() != nil {
		t.Errorf("%d late of %d, begun %s, progress %d: %v", got.Late, got.Len(), got.Started, progress, got.Check())
	}
	if elapsed := w.now.Sub(got.Started); elapsed > 10*time.Second+5*ms {
		t.Errorf("drifted to %s", elapsed)
	}
	for i, want := range []float64{0.25, 0.5} {
		for k, v := range got.Series[i].Used {
			if math.Abs(v-want) > 0.001 {
				t.Fatalf("period %d of %d is %g, want %g", k, i, v, want)
			}
		}
	}
	if a, b := got.Series[0], got.Series[1]; a.Throttled != nil || len(b.Throttled) != 100 ||
		math.Abs(b.Throttled[50]-0.25) > 0.001 || b.Limit != 2 {
		t.Errorf("throttled: %v, %v", a.Throttled, b.Throttled)
	}
}

// TestRecorderBeginsInTime: a machine that is too busy for the first readings does not make the first period seem idle.
func TestRecorderBeginsInTime(t *testing.T) {
	for busy, want := range map[int]struct {
		used float64
		late int
	}{0: {0.25, 0}, 3: {0.25, 0}, 100: {0.125, 1}} {
		w := &world{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), late: func(int) time.Duration { return 0 }}
		r := w.recorder(1)
		read := r.Sources[0].Read
		r.Sources[0].Read = func() (time.Duration, time.Duration, error) {
			if w.reads < busy && w.waits == 0 {
				w.now = w.now.Add(50 * ms)
			}
			return read()
		}
		got, err := r.Run(context.Background(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if used := got.Series[0].Used; math.Abs(used[0]-want.used) > 0.001 ||
			math.Abs(used[1]-0.25) > 0.001 || got.Late != want.late {
			t.Errorf("busy for %d readings: %v, %d late", busy, used, got.Late)
		}
	}
}

// TestRecorderAligned: the first period begins with one of the container's own.
func TestRecorderAligned(t *testing.T) {
	for _, early := range []time.Duration{-730 * ms, 30 * ms} {
		now := time.Unix(1000, 0)
		var waits []time.Duration
		r := Recorder{Period: 100 * ms, CPUs: 1, Edge: now.Add(early), Now: func() time.Time { return now },
			Sources: []Source{{Name: "a", Read: func() (time.Duration, time.Duration, error) { return 0, 0, nil }}},
			Wait: func(_ context.Context, until time.Time) error {
				waits = append(waits, until.Sub(now))
				now = until
				return nil
			}}
		got, err := r.Run(t.Context(), 2)
		want := []time.Duration{30 * ms, 100 * ms, 100 * ms}
		if early < 0 {
			want[0] = 70 * ms
		}
		if diff := cmp.Diff(want, waits); err != nil || !got.Aligned || diff != "" {
			t.Errorf("edge %v from now: aligned %v, %v, waits %s", early, got.Aligned, err, diff)
		}
	}
}

// TestRecorderStops: what was recorded by then is kept, all series equally long.
func TestRecorderStops(t *testing.T) {
	w := &world{late: never, stop: 31}
	got, err := w.recorder(1, 2).Run(context.Background(), 100)
	if !errors.Is(err, context.Canceled) || got.Len() != 30 || got.Check() != nil {
		t.Errorf("%d periods, %v", got.Len(), err)
	}
	w = &world{late: never, gone: 42} // 2 to begin, 2 a period: the second of the 20th
	got, err = w.recorder(1, 2).Run(context.Background(), 100)
	if err == nil || len(got.Series[0].Used) != 19 || len(got.Series[1].Used) != 19 ||
		err.Error() != "b: no such group" {
		t.Errorf("%d and %d periods, %v", len(got.Series[0].Used), len(got.Series[1].Used), err)
	}
	w = &world{late: never, gone: 1}
	if got, err := w.recorder(1).Run(context.Background(), 100); err == nil || got.Len() != 0 {
		t.Errorf("%d periods, %v", got.Len(), err)
	}
}

func TestSleep(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if err := Sleep(ctx, time.Now().Add(ms)); err != nil {
		t.Error(err)
	}
	cancel()
	begin := time.Now()
	if err := Sleep(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) ||
		time.Since(begin) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// TestRecorderWaitsForTheKernel records a container that runs 10 ms of each period and is then throttled, on a machine
// whose timer is late now and then: by some ms with the end of the period, by more with the end of the throttle. Each
// period has its own use and its own throttle all the same. A timer that has stopped, without a task that runs, is
// waited for once.
func TestRecorderWaitsForTheKernel(t *testing.T) {
	w := &world{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), late: never}
	edge := w.now.Add(-93 * ms)
	stops := edge.Add(20 * 100 * ms)
	counters := func() (c cpu.Counters, err error) {
		at := min(w.now.Sub(edge), stops.Sub(edge))
		n := int64(at / (100 * ms))
		ended, stood := n, n
		if into := at - time.Duration(n)*100*ms; n > 0 && n < 20 {
			if into < time.Duration(n%3)*3*ms {
				ended--
			}
			if into < time.Duration(n%3)*4*ms {
				stood--
			}
		}
		c.Periods, c.Throttled, c.ThrottledTime = ended, ended, time.Duration(stood)*90*ms
		c.Usage = time.Duration(stood)*10*ms + min(10*ms,
			max(0, at-time.Duration(stood)*100*ms-time.Duration(stood%3)*4*ms))
		return c, nil
	}
	r := w.recorder()
	r.Edge, r.Counters = edge, counters
	r.Sources = []Source{{Name: "a", Limit: 0.1, Read: func() (time.Duration, time.Duration, error) {
		w.reads++
		c, err := counters()
		return c.Usage, c.ThrottledTime, err
	}}}
	got, err := r.Run(context.Background(), 30)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got.Series[0].Throttled[:18] {
		if math.Abs(v*4-0.9) > 0.001 || math.Abs(got.Series[0].Used[i]*4-0.1) > 0.02 {
			t.Errorf("period %d: used %.3f, stood %.3f", i, got.Series[0].Used[i]*4, v*4)
		}
	}
	if got.Late > 1 || w.waits > 400 {
		t.Errorf("%d late, %d waits", got.Late, w.waits)
	}
}
