package preempt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds each wait of these tests.
const patience = 10 * time.Second

// waiting is closed as soon as short work waits.
func waiting(t *testing.T, m *Mutex) <-chan struct{} {
	t.Helper()
	c := make(chan struct{})
	go func() {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline) &&
			t.Context().Err() == nil; time.Sleep(time.Millisecond) {
			if m.Waits() {
				close(c)
				return
			}
		}
		if t.Context().Err() == nil {
			t.Error("no short work waits")
			close(c)
		}
	}()
	return c
}

// TestYield: short work that waits has the state at the next yield, each time.
func TestYield(t *testing.T) {
	var m Mutex
	var order []string
	m.Lock()
	for range 100 {
		order = append(order, "long")
		var short sync.WaitGroup
		short.Go(func() {
			m.LockShort()
			order = append(order, "short")
			m.UnlockShort()
		})
		<-waiting(t, &m)
		m.Yield()
		if last := order[len(order)-1]; last != "short" {
			t.Fatalf("%s after a yield, with short work waiting", last)
		}
		short.Wait()
	}
	m.Unlock()
	if want := slices.Repeat([]string{"long", "short"}, 100); !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
}

// TestYieldToWhoIsOnTheWay: short work that has begun to wait, and of which the kernel does not know yet, has the state
// at the next yield, too.
func TestYieldToWhoIsOnTheWay(t *testing.T) {
	var m Mutex
	m.Lock()
	m.short.Add(1)
	came := false
	var short sync.WaitGroup
	short.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		time.Sleep(10 * time.Millisecond)
		m.state.lock()
		m.short.Add(-1)
		came = true
		m.state.unlock()
	})
	m.Yield()
	if !came {
		t.Error("it did not have the state at the yield")
	}
	m.Unlock()
	short.Wait()
}

// TestOneLongWork: other long work waits for the end, also where the state is yielded and
// where something is done outside.
func TestOneLongWork(t *testing.T) {
	var m Mutex
	done := 0
	m.Lock()
	begun := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		m.Lock()
		close(begun)
		m.Unlock()
	})
	for range 50 {
		m.Yield()
		m.Outside(func() {
			var short sync.WaitGroup
			short.Go(func() { // which waits for nothing now
				m.LockShort()
				done++
				m.UnlockShort()
			})
			short.Wait()
			select {
			case <-begun:
				t.Error("long work began while other long work was under way")
			case <-time.After(time.Millisecond):
			}
		})
	}
	m.Unlock()
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("long work never began")
	}
	all.Wait()
	if done != 50 {
		t.Errorf("short work came in %d times, want 50", done)
	}
}

// TestAlone: the state is one's at a time. The race detector sees it, and so does the sum.
func TestAlone(t *testing.T) {
	var m Mutex
	sum, want := 0, 0
	var all sync.WaitGroup
	for range 4 {
		want += 2 * 1000
		all.Go(func() {
			for range 1000 {
				m.LockShort()
				sum++
				m.UnlockShort()
			}
		})
		all.Go(func() {
			for range 10 {
				m.Lock()
				for range 100 {
					before := sum
					sum = before + 1
					m.Yield()
				}
				m.Unlock()
			}
		})
	}
	all.Wait()
	if sum != want {
		t.Errorf("%d, want %d", sum, want)
	}
}

// TestOutsidePanics: what panics outside has the state again, so that a deferred Unlock does its work.
func TestOutsidePanics(t *testing.T) {
	var m Mutex
	func() {
		defer func() { _ = recover() }()
		m.Lock()
		defer m.Unlock()
		m.Outside(func() { panic("outside") })
	}()
	free := 0
	m.LockShort()
	free++
	m.UnlockShort()
	m.Lock()
	free++
	m.Unlock()
	if free != 2 {
		t.Errorf("%d of 2", free)
	}
}

// priority is that of a thread as the kernel has it now, with what is lent to it (proc_pid_stat(5), field 18): 20 for
// an ordinary one, and below zero for real time.
func priority(t *testing.T, thread int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	n, err := strconv.Atoi(fields[18-3])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPriorityIsLent: the thread of long work has the priority of the thread that waits for it, until it yields.
func TestPriorityIsLent(t *testing.T) {
	var m Mutex
	m.Lock()
	defer m.Unlock()
	self := unix.Gettid()
	before := priority(t, self)
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
	for deadline := time.Now().Add(patience); priority(t, self) != -2; time.Sleep(time.Millisecond) {
		select {
		case err := <-done: // before it could have the state
			if errors.Is(err, unix.EPERM) {
				t.Skip("real-time priority is not permitted here")
			}
			t.Fatalf("short work did not wait: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("priority %d while short work waits, want -2", priority(t, self))
		}
	}
	m.Yield()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if after := priority(t, self); after != before {
		t.Errorf("priority %d after it, %d before", after, before)
	}
}
