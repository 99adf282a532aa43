// Package preempt is a mutex for long work that lets short work in between.
//
// # Problem
//
// A turn over a thousand groups takes a quarter of a second, and a throttle event must be answered within a
// millisecond. Both use the same state. A sync.Mutex makes the answer wait for the whole turn, and a turn that unlocks
// and locks it again usually has it back before the thread that waits has woken up. On a machine whose CPUs are busy
// the thread of the turn may also wait for a CPU while it holds the mutex. And where a sync.Mutex is unlocked, Go wakes
// a thread of ordinary priority, which then wakes the thread that the waiting goroutine is tied to: on busy CPUs that
// alone took 3 to 5 ms.
//
// # Approach
//
// Long work holds the mutex from its begin to its end, as any mutex, so that one long work never sees another one half
// done. In between it yields: where short work waits, the state is its alone until it is done.
//
//	long work                 short work
//	Lock                      LockShort  (waits, and lends its priority)
//	  ... part one
//	  Yield          ──►        ... all of it
//	  ... part two   ◄──      UnlockShort
//	  Outside(fsync) ──►      LockShort, UnlockShort
//	Unlock
//
// The state is passed on by the kernel, from thread to thread (futex.go): without a scheduler of Go's in between, and
// with priority inheritance. So both kinds of work are tied to their threads.
//
// # Known limits
//
// Nothing tells long work what short work has changed: that is for both to agree on. Short work must be short, and must
// not lock twice. Go's scheduler knows nothing of priorities: a goroutine without a P waits for one, whatever its
// thread has.
package preempt

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Mutex guards a state. The zero value is unlocked.
type Mutex struct {
	long  sync.Mutex // held by long work from its begin to its end
	state futex
	short atomic.Int32 // short works that wait for the state
}

// Lock begins long work, and ties the goroutine to its thread.
func (m *Mutex) Lock() {
	m.long.Lock()
	runtime.LockOSThread()
	m.enter()
}

// Unlock ends long work.
func (m *Mutex) Unlock() {
	m.state.unlock()
	runtime.UnlockOSThread()
	m.long.Unlock()
}

// LockShort begins short work, and ties the goroutine to its thread. It waits for the part of long work that is under
// way, and for no more.
func (m *Mutex) LockShort() {
	runtime.LockOSThread()
	if m.state.tryLock() {
		return
	}
	m.short.Add(1)
	m.state.lock()
	m.short.Add(-1)
}

// UnlockShort ends short work.
func (m *Mutex) UnlockShort() {
	m.state.unlock()
	runtime.UnlockOSThread()
}

// Waits says whether short work waits for the state.
func (m *Mutex) Waits() bool { return m.short.Load() > 0 }

// Yield lets short work in that waits. Long work calls it where the state is in order.
func (m *Mutex) Yield() {
	if m.Waits() {
		m.state.unlock()
		m.enter()
	}
}

// Outside does something that needs no state and may take long. Short work may come in meanwhile,
// and no other long work.
func (m *Mutex) Outside(do func()) {
	m.state.unlock()
	defer m.enter()
	do()
}

// enter has the state for long work, after short work that is about to take it.
func (m *Mutex) enter() {
	for m.Waits() && m.state.free() {
		time.Sleep(10 * time.Microsecond)
	}
	m.state.lock()
}

// spareProcessors is how many more goroutines may run than the machine has CPUs.
const spareProcessors = 4

// AddProcessors makes room for the thread that answers throttles. The kernel runs that thread before all others, but
// Go's scheduler has no priorities: when GOMAXPROCS goroutines run, a goroutine that returns from a system call waits
// until another one blocks, or has had its 10 ms. On two CPUs a few readers of the status are enough for that. With
// more processors than CPUs the kernel decides instead. A GOMAXPROCS in the environment is left alone.
func AddProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spareProcessors)
	}
}
