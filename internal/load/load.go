// Package load holds the demo's HTTP service and the open-loop load that is put on it.
//
// The service does work of a known amount of CPU time: it compresses a text. The load is open-loop: requests are due
// at times that are drawn beforehand from a seed, they are sent whether or not earlier ones were answered, and a
// latency counts from the time at which the request was due (as in wrk2). A closed loop would wait with a slow
// service and so send least just when it is slowest; its percentiles leave out what a user would have met.
package load

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Poisson draws the times at which requests are due, from 0 to length: a Poisson process of rate requests a second.
// Seed and stream decide everything.
func Poisson(seed, stream uint64, rate float64, length time.Duration) []time.Duration {
	rng := rand.New(rand.NewPCG(seed, stream))
	var due []time.Duration
	for t := rng.ExpFloat64() / rate; t < length.Seconds(); t += rng.ExpFloat64() / rate {
		due = append(due, time.Duration(t*float64(time.Second)))
	}
	return due
}

// Constant are the times of requests that come at a constant rate, from 0 to length.
func Constant(rate float64, length time.Duration) []time.Duration {
	due := make([]time.Duration, 0, int(rate*length.Seconds())+1)
	for i := 0; ; i++ {
		t := time.Duration(float64(i) / rate * float64(time.Second))
		if t >= length {
			return due
		}
		due = append(due, t)
	}
}

// Bounds keep a load finite when the service does not answer.
type Bounds struct {
	Timeout time.Duration // from when a request was due; later it is an error
	Open    int           // requests under way at once; one that is due beyond is an error and is not sent
}

// Outcome is what became of a load.
type Outcome struct {
	Latency *Latencies    // of the answered requests
	Errors  int           // not answered in time, refused, answered wrongly or not sent
	Cause   error         // the first error
	Late    time.Duration // the most that the generator itself was behind when it sent; part of the latency
}

// Requests is how many were due.
func (o *Outcome) Requests() int { return int(o.Latency.Count()) + o.Errors }

// Pool is what became of several loads, in this order.
func Pool(list ...*Outcome) *Outcome {
	all := &Outcome{Latency: NewLatencies()}
	for _, o := range list {
		all.Latency.Merge(o.Latency)
		all.Errors += o.Errors
		all.Cause = cmp.Or(all.Cause, o.Cause)
		all.Late = max(all.Late, o.Late)
	}
	return all
}

// Reason is the first error in words; "" where there was none.
func (o *Outcome) Reason() string {
	if o.Cause == nil {
		return ""
	}
	return o.Cause.Error()
}

// ErrOpen says that a request was not sent because too many were under way.
var ErrOpen = errors.New("too many requests under way")

// Run sends requests when they are due and waits for the last answer. When ctx ends early, what was not yet due is
// left out.
func Run(ctx context.Context, due []time.Duration, b Bounds, send func(context.Context) error) *Outcome {
	return run(ctx, due, b, send, sleepUntil)
}

// run takes how to wait for a time as an argument; that says whether ctx outlived the wait.
func run(ctx context.Context, due []time.Duration, b Bounds, send func(context.Context) error,
	wait func(context.Context, time.Time) bool) *Outcome {
	out := &Outcome{Latency: NewLatencies()}
	var mu sync.Mutex
	var under sync.WaitGroup
	open := make(chan struct{}, b.Open)
	done := func(latency time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			out.Latency.Record(latency)
			return
		}
		out.Errors++
		if out.Cause == nil {
			out.Cause = err
		}
	}
	start := time.Now()
	for _, d := range due {
		at := start.Add(d)
		if !wait(ctx, at) {
			break
		}
		out.Late = max(out.Late, time.Since(at))
		select {
		case open <- struct{}{}:
		default:
			done(0, ErrOpen)
			continue
		}
		under.Go(func() {
			defer func() { <-open }()
			ctx, cancel := context.WithDeadline(ctx, at.Add(b.Timeout))
			defer cancel()
			err := send(ctx)
			done(time.Since(at), err)
		})
	}
	under.Wait()
	return out
}

// sleepUntil says whether ctx outlived the wait.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
