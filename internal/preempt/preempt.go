// Package preempt is a mutex for long work that lets short work in between.
//
// # Problem
//
// A turn over a thousand groups takes a quarter of a second, and a throttle event must be answered within a
// millisecond. Both use the same state. A sync.Mutex makes the answer wait for the whole turn, and a turn that unlocks
// and locks it again usually has it back before the thread that waits has woken up. On a machine whose CPUs are busy
// the thread of the turn may also wait for a CPU while it holds the mutex.
//
// # Approach
//
// Long work holds the mutex from its begin to its end, as any mutex, so that one long work never sees another one half
// done. In between it yields: where short work waits, the state is its alone until it is done. Short work holds the
// mutex next from when it asks for the state until it is done, so that the yielding work queues up behind it.
//
//	long work                 short work
//	Lock                      LockShort  (waits, and lends its priority)
//	  ... part one
//	  Yield          ──►        ... all of it
//	  ... part two   ◄──      UnlockShort
//	  Outside(fsync) ──►      LockShort, UnlockShort
//	Unlock
//
// Short work that waits lends its thread's priority to the thread of the long work until that yields (priority
// inheritance). So long work is tied to its thread.
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
)

// Mutex guards a state. The zero value is unlocked.
type Mutex struct {
	long  sync.Mutex // held by long work from its begin to its end
	next  sync.Mutex // held by who asks for the state, and by short work that has it
	state sync.Mutex
	short atomic.Bool // short work waits for the state, and holds next
	loan  loan        // of priority; guarded by next
}

// Lock begins long work, and ties the goroutine to its thread.
func (m *Mutex) Lock() {
	m.long.Lock()
	runtime.LockOSThread()
	m.enter()
}

// Unlock ends long work.
func (m *Mutex) Unlock() {
	m.leave()
	runtime.UnlockOSThread()
	m.long.Unlock()
}

// LockShort begins short work. It waits for the part of long work that is under way, and for no more. It keeps next, so
// that the long work that queues up behind it is woken when the short work is done,
// and neither costs it time nor takes its CPU.
func (m *Mutex) LockShort() {
	m.next.Lock()
	if m.state.TryLock() {
		return
	}
	m.loan.lend()
	m.short.Store(true)
	m.state.Lock()
	m.short.Store(false)
}

// UnlockShort ends short work.
func (m *Mutex) UnlockShort() {
	m.state.Unlock()
	m.next.Unlock()
}

// Waits says whether short work waits for the state.
func (m *Mutex) Waits() bool { return m.short.Load() }

// Yield lets short work in that waits. Long work calls it where the state is in order.
func (m *Mutex) Yield() {
	if m.Waits() {
		m.leave()
		m.enter()
	}
}

// Outside does something that needs no state and may take long. Short work may come in meanwhile,
// and no other long work.
func (m *Mutex) Outside(do func()) {
	m.leave()
	defer m.enter()
	do()
}

// enter has the state for long work. It has no claim before it has the state: what it waits for then is short.
func (m *Mutex) enter() {
	m.next.Lock()
	defer m.next.Unlock()
	m.state.Lock()
	m.loan.to = thread()
}

// leave gives the state away, to who waits for it, and then what was lent.
func (m *Mutex) leave() {
	m.state.Unlock()
	m.next.Lock()
	defer m.next.Unlock()
	m.loan.giveBack()
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
