package probe

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWaitingIsQuiet counts how often threads of this process go to sleep while it waits, beside a wait in an ordinary
// system call, during which the runtime checks the P again and again.
func TestWaitingIsQuiet(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	b, err := newBlocker(-1) // poll(2) ignores it
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	const times, span = 15, 60 * time.Millisecond
	ours := switches(t, times, func() { b.wait(time.Now().Add(span)) })
	plain := switches(t, times, func() { unix.Poll(b.fds[:], int(span/time.Millisecond)) })
	if 2*ours > plain {
		t.Errorf("%d switches in a wait of %v, %d in an ordinary call", ours, span, plain)
	}
}

// switches is the third quartile of those in a wait that begins while the monitor is awake, as it is in a process at
// work: a P has just been taken from a system call.
func switches(t *testing.T, times int, wait func()) int64 {
	t.Helper()
	busy := func(span time.Duration) {
		for until := time.Now().Add(span); time.Now().Before(until); {
		}
	}
	var list []int64
	for range times {
		done := make(chan struct{}, 2)
		for range cap(done) { // one has the other P, and one waits for this one
			go func() {
				busy(time.Millisecond)
				done <- struct{}{}
			}()
		}
		busy(500 * time.Microsecond)
		unix.Poll(nil, 2)
		for range cap(done) { // what they do in the wait would count
			<-done
		}
		before := voluntary(t)
		wait()
		list = append(list, voluntary(t)-before)
	}
	slices.Sort(list)
	return list[3*times/4]
}

// voluntary counts the switches of this process to a sleep.
func voluntary(t *testing.T) int64 {
	t.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return use.Nvcsw
}
