package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// calibrationTries bounds the search; each try that misses gets about ten times nearer.
const calibrationTries = 12

// ErrUnsettled says that a calibration came near, but not within its tolerance: on a machine whose neighbours come
// and go, the CPU time of the same work does too.
var ErrUnsettled = errors.New("calibrate: the CPU time of a request does not settle")

// Calibrate finds the size of a request that costs target of CPU time, within the tolerance, and looks twice: the
// first look at a size may have been lucky. Measure tells the CPU time of a request of a size; it is never wall time,
// which would count what neighbours take. With ErrUnsettled the best size and its cost are given all the same.
func Calibrate(target, tolerance time.Duration, size int, measure func(size int) (time.Duration, error)) (int,
	time.Duration, error) {
	bestSize, best := 0, time.Duration(0)
	for range calibrationTries {
		cost, again, err := twice(size, measure)
		if err != nil {
			return 0, 0, fmt.Errorf("calibrate: %w", err)
		}
		mean := (cost + again) / 2
		if off(cost, target) <= tolerance && off(again, target) <= tolerance && off(mean, target) <= tolerance/2 {
			return size, mean, nil
		}
		if bestSize == 0 || off(mean, target) < off(best, target) {
			bestSize, best = size, mean
		}
		size = scale(size, target, mean)
	}
	if best <= 0 {
		return 0, 0, errors.New("calibrate: no CPU time is counted for a request")
	}
	return bestSize, best, fmt.Errorf("%w at %v +- %v: the mean of the best try is %v", ErrUnsettled, target, tolerance,
		best)
}

func twice(size int, measure func(size int) (time.Duration, error)) (a, b time.Duration, err error) {
	if a, err = measure(size); err == nil {
		b, err = measure(size)
	}
	return a, b, err
}

func off(cost, target time.Duration) time.Duration { return (cost - target).Abs() }

// scale follows the rule of three, at most by a factor of 8 either way: a cost that was not measured right must not
// lead to a request that never ends.
func scale(size int, target, cost time.Duration) int {
	factor := 8.0
	if cost > 0 {
		factor = min(max(float64(target)/float64(cost), 1.0/8), 8)
	}
	return max(1, int(float64(size)*factor))
}

// wake is how often a precise wait looks whether it is to end.
const wake = 100 * time.Millisecond

// RunPrecisely is Run for latencies about as short as a millisecond. Go's runtime waits in whole milliseconds
// (runtime/netpoll_epoll.go: a shorter delay becomes 1 ms), so a request is sent up to one too late, which its latency
// then holds. This one waits by the kernel's clock, in a thread of its own.
func RunPrecisely(ctx context.Context, due []time.Duration, b Bounds, send func(context.Context) error) *Outcome {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return run(ctx, due, b, send, preciselyUntil)
}

func preciselyUntil(ctx context.Context, at time.Time) bool {
	for ctx.Err() == nil {
		left := time.Until(at)
		if left <= 0 {
			return true
		}
		d := unix.NsecToTimespec(int64(min(left, wake)))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &d, nil) // a signal ends it early: the rest is slept anew
	}
	return false
}
