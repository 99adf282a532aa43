package preempt

import (
	"slices"
	"sync"
	"testing"
	"time"
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

// TestQueueIsWokenAfterShortWork: who queues up behind short work is woken when that is done, not when it begins. In
// Go's runtime the waker spins where the other one is not asleep yet,
// which may last as long as the kernel keeps that thread off its CPU.
func TestQueueIsWokenAfterShortWork(t *testing.T) {
	var m Mutex
	m.LockShort()
	if m.next.TryLock() {
		t.Fatal("the queue behind short work moves before it is done")
	}
	m.UnlockShort()
	if !m.next.TryLock() {
		t.Fatal("the queue does not move after short work")
	}
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
