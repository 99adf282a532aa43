package preempt

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAbove: real time goes before nice, and nice before none.
func TestAbove(t *testing.T) {
	fifo := func(priority uint32) *unix.SchedAttr {
		return &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: priority}
	}
	nice := func(n int32) *unix.SchedAttr { return &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: n} }
	for _, c := range []struct {
		a, b *unix.SchedAttr
		want bool
	}{
		{fifo(1), nice(-20), true}, {nice(-20), fifo(1), false}, {fifo(2), fifo(1), true}, {fifo(1), fifo(1), false},
		{nice(-20), nice(0), true}, {nice(0), nice(-20), false}, {nice(0), nice(0), false},
	} {
		if got := above(c.a, c.b); got != c.want {
			t.Errorf("%+v above %+v: %v", c.a, c.b, got)
		}
	}
}

// TestPriorityIsLent: the thread of long work has the priority of the thread that waits for it, until it yields.
func TestPriorityIsLent(t *testing.T) {
	var m Mutex
	m.Lock()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			done <- err
			return
		}
		m.LockShort()
		m.UnlockShort()
		done <- nil
	}()
	select {
	case err := <-done: // before it could have the state
		m.Unlock()
		if errors.Is(err, unix.EPERM) {
			t.Skip("real-time priority is not permitted here")
		}
		t.Fatalf("short work did not wait: %v", err)
	case <-waiting(t, &m):
	}
	lent, err := unix.SchedGetAttr(0, 0)
	if err != nil || lent.Policy != unix.SCHED_FIFO || lent.Priority != 1 {
		t.Errorf("%+v while short work waits, %v", lent, err)
	}
	m.Yield()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	after, err := unix.SchedGetAttr(0, 0)
	if err != nil || *after != *before {
		t.Errorf("%+v after it, %+v before, %v", after, before, err)
	}
	m.Unlock()
}
