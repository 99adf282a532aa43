package preempt

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// futex is a mutex of threads with priority inheritance (futex(2); kernel/futex/pi.c). While a thread waits for it, the
// one that holds it has at least its priority, which takes no capability. The kernel passes it on to who waits, first
// to the thread of the highest priority: who unlocks it and wants it back has to wait.
type futex struct {
	word atomic.Uint32 // the thread that holds it, and whether others wait in the kernel; 0: nobody
	// passes counts the unlocks. What was done before an unlock is seen after the lock that follows (the kernel's
	// barriers see to that); this tells it to Go, whose memory model does not know that the kernel has written the
	// word.
	passes atomic.Uint32
}

// futex(2) between threads of one process.
const (
	private  = 128
	lockPI   = 6 | private
	unlockPI = 7 | private
)

func (f *futex) free() bool { return f.word.Load() == 0 }

func (f *futex) tryLock() bool {
	locked := f.word.CompareAndSwap(0, uint32(unix.Gettid()))
	f.passes.Load()
	return locked
}

func (f *futex) lock() {
	for !f.tryLock() {
		if f.call(lockPI) {
			f.passes.Load()
			return
		}
	}
}

// unlock is called by the thread that locked it.
func (f *futex) unlock() {
	f.passes.Add(1)
	for !f.word.CompareAndSwap(uint32(unix.Gettid()), 0) && !f.call(unlockPI) {
	}
}

// call says whether the kernel has done it, and not asked to try again. Any other error is one of this package: a lock
// by the thread that has it, an unlock by another, a holder that has ended.
func (f *futex) call(op uintptr) bool {
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&f.word)), op, 0, 0, 0, 0)
	switch err {
	case 0:
		return true
	case unix.EINTR, unix.EAGAIN:
		return false
	}
	panic(fmt.Sprintf("preempt: futex(2), operation %d: %v", op, err))
}
