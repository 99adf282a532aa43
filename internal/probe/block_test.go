package probe

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestBlocker(t *testing.T) {
	file, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file)
	b, err := newBlocker(file)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	wait := func(until time.Time) time.Duration {
		t.Helper()
		begin := time.Now()
		if err := b.wait(until); err != nil {
			t.Error(err)
		}
		return time.Since(begin)
	}
	wait(time.Now().Add(-time.Hour)) // or it would never return
	for until := time.Now().Add(30 * time.Millisecond); time.Now().Before(until); {
		wait(until) // a signal of the runtime may end it sooner
	}
	for _, wake := range []func() error{
		func() error { _, err := unix.Write(file, []byte{1, 0, 0, 0, 0, 0, 0, 0}); return err },
		b.wake,
	} {
		began := make(chan struct{})
		go func() {
			<-began
			time.Sleep(10 * time.Millisecond)
			if err := wake(); err != nil {
				t.Error(err)
			}
		}()
		close(began)
		wait(time.Time{})
		if took := wait(time.Now().Add(time.Minute)); took > 10*time.Second { // what is not read stays readable
			t.Errorf("it slept for %v although there was something", took)
		}
		unix.Read(file, make([]byte, 8))
	}
}

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
	// Other load adds to ours, while a thread of this process waits for a CPU with its P, and takes from the others,
	// while the monitor waits for one.
	if 2*ours[times/2] > plain[3*times/4] {
		t.Errorf("switches in a wait of %v: %d, in an ordinary call: %d", span, ours, plain)
	}
}

// switches are those in each of some waits, in order, which begin while the monitor is awake, as it is in a process at
// work: a P has just been taken from a system call.
func switches(t *testing.T, times int, wait func()) []int64 {
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
	return list
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
