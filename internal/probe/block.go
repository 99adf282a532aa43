package probe

import (
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Waiting for an event without keeping Go's runtime awake.
//
// Problem: a thread that blocks in a system call keeps its P, for it may be back at once. The runtime's monitor
// (sysmon) takes that P away after 10 ms only where other Ps are idle, and does not sleep before: it checks every 20 us
// for a millisecond, and then less and less often, some 60 times in all (runtime/proc.go, sysmon and retake, Go 1.26).
// So each event cost 2 ms of CPU time after it was answered, in wake-ups that preempt the very container that was short
// of time.
//
// Approach: announce that the call will block (entersyscallblock, as the runtime itself does where it knows): the
// P is given up at once, and the monitor sleeps again after its next check. The goroutine keeps its thread, and with it
// its priority, which it would not if it waited by the runtime's own poller: then an ordinary thread has to run first
// to learn of the event.
//
// Known limits: both functions are internals of the runtime, kept for others that need them for this
// (go.dev/issue/67401, gVisor's BlockingPoll).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// blockingPoll is ppoll(2) with all signals let through, and then lends. Between the two calls no stack may grow, and
// nothing may be instrumented. The pointers must be to the heap.
//
//go:nosplit
//go:norace
func blockingPoll(fds *unix.PollFd, n int, timeout *unix.Timespec, l *lender) syscall.Errno {
	entersyscallblock()
	_, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(fds)), uintptr(n),
		uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	if l != nil {
		l.raise()
	}
	exitsyscall()
	return errno
}

// blocker waits for a file to become readable, or to be woken.
type blocker struct {
	fds  [2]unix.PollFd // the file, and what wakes
	left unix.Timespec
	lend *lender // nil: the thread that waits has no priority to lend
}

func newBlocker(file int) (*blocker, error) {
	waker, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &blocker{fds: [2]unix.PollFd{{Fd: int32(file), Events: unix.POLLIN},
		{Fd: int32(waker), Events: unix.POLLIN}}}, nil
}

// wait returns when the file is readable, at an instant that is not zero, when woken, or when a signal has come.
func (b *blocker) wait(until time.Time) error {
	var timeout *unix.Timespec
	if !until.IsZero() {
		b.left = unix.NsecToTimespec(int64(max(0, time.Until(until))))
		timeout = &b.left
	}
	b.back()
	if errno := blockingPoll(&b.fds[0], len(b.fds), timeout, b.lend); errno != 0 && errno != unix.EINTR {
		return errno
	}
	return nil
}

// back ends what the last wait has lent.
func (b *blocker) back() {
	if b.lend != nil {
		b.lend.back()
	}
}

// wake ends a wait, and all later ones.
func (b *blocker) wake() error {
	_, err := unix.Write(int(b.fds[1].Fd), []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err
}

func (b *blocker) close() error {
	err := unix.Close(int(b.fds[1].Fd))
	if b.back(); b.lend != nil {
		err, b.lend = errors.Join(err, unix.Close(b.lend.tasks)), nil
	}
	return err
}
