package load

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

func TestPoissonIsDecidedBySeedAndStream(t *testing.T) {
	a := Poisson(7, 3, 20, time.Minute)
	if b := Poisson(7, 3, 20, time.Minute); !slices.Equal(a, b) {
		t.Error("same seed and stream, other arrivals")
	}
	if slices.Equal(a, Poisson(7, 4, 20, time.Minute)) || slices.Equal(a, Poisson(8, 3, 20, time.Minute)) {
		t.Error("another stream or seed gives the same arrivals")
	}
	if !slices.IsSorted(a) || a[len(a)-1] >= time.Minute {
		t.Errorf("arrivals out of order, or after the end: %v", a[len(a)-1])
	}
}

func TestConstantRate(t *testing.T) {
	due := Constant(4, time.Second+1)
	if want := []time.Duration{0, 250 * ms, 500 * ms, 750 * ms, time.Second}; !slices.Equal(due, want) {
		t.Errorf("due at %v, want %v", due, want)
	}
}

// TestPreciseWait: how precise it is shows in lab/colocation, on a machine that has nothing else to do. Here:
// everything is sent, nothing before it is due, and a wait ends with its context.
func TestPreciseWait(t *testing.T) {
	due := Constant(450, 200*ms)
	begin, at := time.Now(), make(chan time.Duration, len(due))
	out := RunPrecisely(t.Context(), due, Bounds{Timeout: time.Minute, Open: len(due)}, func(context.Context) error {
		at <- time.Since(begin)
		return nil
	})
	if out.Requests() != len(due) || out.Errors != 0 {
		t.Errorf("%d requests, %d errors, want %d and none", out.Requests(), out.Errors, len(due))
	}
	close(at)
	var sent []time.Duration
	for d := range at {
		sent = append(sent, d)
	}
	slices.Sort(sent)
	for i := range sent {
		if sent[i] < due[i] {
			t.Fatalf("%d requests are sent within %v, the last of them is due after %v", i+1, sent[i], due[i])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := RunPrecisely(ctx, []time.Duration{time.Hour}, Bounds{Open: 1}, nil); out.Requests() != 0 {
		t.Error("a request is sent after the end of its context")
	}
}

// TestPoissonGaps holds the gaps against the exponential law: mean and standard deviation are both 1/rate.
func TestPoissonGaps(t *testing.T) {
	const rate = 50
	due := Poisson(1, 1, rate, 1000*time.Second)
	var sum, squares float64
	last := time.Duration(0)
	for _, d := range due {
		gap := (d - last).Seconds()
		sum, squares, last = sum+gap, squares+gap*gap, d
	}
	n := float64(len(due))
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean*rate-1) > 0.02 || math.Abs(deviation*rate-1) > 0.02 {
		t.Errorf("mean gap %.5f s, deviation %.5f s, want both %.5f", mean, deviation, 1.0/rate)
	}
}

// TestLatencyCountsFromTheDueTime puts a service that stands still for a second under a load: a request that is due
// meanwhile must be charged with its wait, and must not wait to be sent.
func TestLatencyCountsFromTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		due := []time.Duration{0, 100 * ms, 200 * ms, 1500 * ms}
		out := Run(t.Context(), due, Bounds{Timeout: time.Minute, Open: 10}, func(context.Context) error {
			at := time.Since(start)
			mu.Lock()
			sent = append(sent, at)
			mu.Unlock()
			if at < time.Second {
				time.Sleep(time.Second - at)
			}
			time.Sleep(10 * ms)
			return nil
		})
		if !slices.Equal(sent, due) {
			t.Errorf("sent at %v, due at %v", sent, due)
		}
		if out.Requests() != 4 || out.Errors != 0 {
			t.Fatalf("%d requests, %d errors", out.Requests(), out.Errors)
		}
		within(t, "max", out.Latency.Max(), 1010*ms)
		within(t, "median", out.Latency.Quantile(0.5), 810*ms)
		within(t, "mean", out.Latency.Mean(), (1010+910+810+10)*ms/4)
	})
}

func TestLoadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := []time.Duration{0, 1 * ms, 2 * ms, 3 * ms}
		start := time.Now()
		out := Run(t.Context(), due, Bounds{Timeout: time.Second, Open: 3}, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if out.Errors != 4 || out.Requests() != 4 || out.Latency.Count() != 0 {
			t.Errorf("%d errors of %d requests, want 4 of 4", out.Errors, out.Requests())
		}
		if !errors.Is(out.Cause, ErrOpen) {
			t.Errorf("cause %v: the request beyond the bound fails at once", out.Cause)
		}
		if took := time.Since(start); took != 1002*ms {
			t.Errorf("ended after %v, want the last timeout", took)
		}
	})
}

func TestLoadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		out := Run(ctx, []time.Duration{0, 100 * ms}, Bounds{Timeout: time.Second, Open: 1},
			func(context.Context) error { return nil })
		if out.Requests() != 1 {
			t.Errorf("%d requests, want the one that was due", out.Requests())
		}
	})
}

func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := Run(t.Context(), []time.Duration{-5 * ms, 0}, Bounds{Timeout: time.Second, Open: 2},
			func(context.Context) error { return nil })
		if out.Late != 5*ms {
			t.Errorf("late %v, want 5ms", out.Late)
		}
		within(t, "max", out.Latency.Max(), 5*ms)
	})
}

func TestQuantiles(t *testing.T) {
	l, other := NewLatencies(), NewLatencies()
	for i := 1; i <= 1000; i++ {
		to := l
		if i%2 == 0 {
			to = other
		}
		to.Record(time.Duration(i) * ms)
	}
	l.Merge(other)
	if l.Count() != 1000 {
		t.Fatalf("count %d", l.Count())
	}
	within(t, "p50", l.Quantile(0.5), 500*ms)
	within(t, "p99", l.Quantile(0.99), 990*ms)
	within(t, "p100", l.Quantile(1), 1000*ms)
	within(t, "mean", l.Mean(), 500500*time.Microsecond)
	l.Record(24 * time.Hour)
	l.Record(-time.Second)
	if l.Count() != 1002 {
		t.Errorf("a value outside the range is lost")
	}
}

// within allows for the histogram's three digits.
func within(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() > want/500 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestCalibrate(t *testing.T) {
	lucky := true
	for _, c := range []struct {
		name string
		cost func(size int) time.Duration
	}{
		{"in proportion", func(size int) time.Duration { return time.Duration(size) * 25 }},
		{"with a fixed part", func(size int) time.Duration { return 3*ms + time.Duration(size)*10 }},
		{"a hundred times too small", func(size int) time.Duration { return time.Duration(size) / 4 }},
		{"first look is lucky", func(size int) time.Duration {
			if lucky {
				lucky = false
				return 40 * ms
			}
			return time.Duration(size) * 25
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			size, cost, err := Calibrate(40*ms, 2*ms, 1<<20,
				func(size int) (time.Duration, error) { return c.cost(size), nil })
			if err != nil {
				t.Fatal(err)
			}
			if true := c.cost(size); off(true, 40*ms) > 2*ms || cost != true {
				t.Errorf("size %d costs %v, said %v, want 40ms +- 2ms", size, true, cost)
			}
		})
	}
	broken := errors.New("broken")
	if _, _, err := Calibrate(ms, ms, 1, func(int) (time.Duration, error) { return 0, broken }); !errors.Is(err,
		broken) {
		t.Errorf("error %v", err)
	}
}

// TestCalibrateGivesTheBest has a cost that jumps about, as beside busy neighbours.
func TestCalibrateGivesTheBest(t *testing.T) {
	costs := []time.Duration{50 * ms, 50 * ms, 36 * ms, 36 * ms, 44 * ms, 30 * ms, 60 * ms, 60 * ms}
	sizes := []int{}
	i := 0
	size, cost, err := Calibrate(40*ms, 2*ms, 1000, func(size int) (time.Duration, error) {
		sizes = append(sizes, size)
		i++
		return costs[(i-1)%len(costs)], nil
	})
	if !errors.Is(err, ErrUnsettled) || cost != 37*ms || size != sizes[4] {
		t.Errorf("size %d of %v, cost %v, error %v; want the third size", size, sizes, cost, err)
	}
	turn := 0
	if _, cost, err = Calibrate(40*ms, 2*ms, 1000, func(int) (time.Duration, error) {
		turn++
		return []time.Duration{43 * ms, 38 * ms}[turn%2], nil
	}); !errors.Is(err, ErrUnsettled) {
		t.Errorf("settled at %v, though every other look is too far off", cost)
	}
	_, _, err = Calibrate(40*ms, 2*ms, 1000, func(int) (time.Duration, error) { return 0, nil })
	if err == nil || errors.Is(err, ErrUnsettled) {
		t.Errorf("a request that costs nothing: %v", err)
	}
}
