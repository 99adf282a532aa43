package load

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

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
