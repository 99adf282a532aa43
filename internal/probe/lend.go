package probe

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lending real-time priority to the whole process.
//
// Problem: the thread that answers throttles runs before all others, but it needs what threads of ordinary priority
// have. A goroutine waits for a P that one of them holds, Go's collector goes on when all of them have stopped, and
// Go's own locks know no priorities. Where hundreds of groups want each CPU, an ordinary thread waits for 20 to 700 ms
// until it runs, be its nice value 0 or -20 (seen with ftrace on 6.18), and so do the throttles.
//
// Approach: from the event that ends a wait to the next wait, all threads of this process have real-time priority, one
// step below the thread that answers. That is a millisecond or less. It is lent before that thread is back in Go, where
// it would wait; so that is done without allocation, by system calls alone. It is lent to all threads or to none: Go's
// collector spins until a goroutine stops, and an ordinary thread does not get the CPU that a real-time one spins on.
// So nothing is lent while there are more or fewer threads than are known, and a thread that is made meanwhile has what
// its maker has.
//
// Known limits: what else the process does runs at that priority too while an answer is due: a good part of the time
// where throttles are answered a thousand times a second. A lock of the kernel's that another program holds is waited
// for. To lend takes 2 us a thread, before the answer; so nothing is lent to a process of very many threads, as Go may
// make on a machine of very many CPUs. A process that is started meanwhile has the priority too, and has to give it up
// itself.

// lender is used by the thread that answers alone.
type lender struct {
	threads [lentMost]int32 // 0: the end
	own     [lentMost]unix.SchedAttr
	listed  unix.Timespec // when, by coarse
	now     unix.Timespec
	tasks   int         // the directory of all threads
	links   uint64      // its links when they were listed: one for each thread, and two
	stat    unix.Stat_t // of it
	lends   unix.SchedAttr
	process int32
	lent    bool
}

const (
	// lentMost is how many threads there may be. On two CPUs an agent has 15 to 30.
	lentMost = 64
	// listEvery is how old the list of threads may be in seconds. The number of a thread in an older one may be another
	// program's by now.
	listEvery = 1
	// coarse is a clock that is read soon, and exact to a tick.
	coarse = unix.CLOCK_MONOTONIC_COARSE
)

// newLender is nil where nothing can be lent: without proc, and where somebody has given the process a real-time
// priority, which list would take for a lent one. Then the thread that answers had it too, before its own.
func newLender(had *unix.SchedAttr) *lender {
	if had == nil || !ordinary(had) {
		return nil
	}
	tasks, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &lender{process: int32(os.Getpid()), tasks: tasks,
		lends: unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: lentPriority}}
}

// ordinary says whether a thread is one of the fair class.
func ordinary(a *unix.SchedAttr) bool {
	return a.Policy == unix.SCHED_NORMAL || a.Policy == unix.SCHED_BATCH || a.Policy == unix.SCHED_IDLE
}

// raise lends. It is called where there is no P: no stack may grow, and nothing may be instrumented.
//
//go:nosplit
//go:norace
func (l *lender) raise() {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, coarse, uintptr(unsafe.Pointer(&l.now)), 0)
	syscall.RawSyscall(unix.SYS_FSTAT, uintptr(l.tasks), uintptr(unsafe.Pointer(&l.stat)), 0)
	if uint64(l.stat.Nlink) != l.links {
		return
	}
	old := l.now.Sec-l.listed.Sec > listEvery
	for i := 0; i < lentMost && l.threads[i] != 0; i++ {
		if thread := uintptr(l.threads[i]); !old || l.has(thread) {
			syscall.RawSyscall(unix.SYS_SCHED_SETATTR, thread, uintptr(unsafe.Pointer(&l.lends)), 0)
		}
	}
	l.lent = true
}

// has says whether a thread is one of this process: signal 0 is sent to it.
//
//go:nosplit
//go:norace
func (l *lender) has(thread uintptr) bool {
	_, _, errno := syscall.RawSyscall(unix.SYS_TGKILL, uintptr(l.process), thread, 0)
	return errno == 0
}

// back ends what is lent: each thread has its own policy and nice value again.
func (l *lender) back() {
	if l.lent {
		for i := 0; i < lentMost && l.threads[i] != 0; i++ {
			if l.has(uintptr(l.threads[i])) {
				_ = unix.SchedSetAttr(int(l.threads[i]), &l.own[i], 0)
			}
		}
		l.lent = false
	}
	if err := unix.Fstat(l.tasks, &l.stat); err != nil || uint64(l.stat.Nlink) != l.links ||
		l.now.Sec-l.listed.Sec >= listEvery {
		l.list()
	}
}

// list finds the threads of this process that have no real-time priority of their own. One that was made while priority
// was lent gives it back.
func (l *lender) list() {
	l.listed, l.links = l.now, uint64(l.stat.Nlink)
	n := 0
	entries, _ := os.ReadDir("/proc/self/task")
	for _, entry := range entries {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		own, err := unix.SchedGetAttr(thread, 0)
		if err != nil {
			continue
		}
		own = &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: own.Policy, Nice: own.Nice, Priority: own.Priority}
		if own.Policy == unix.SCHED_FIFO && own.Priority == lentPriority {
			own.Policy, own.Priority = unix.SCHED_NORMAL, 0
			_ = unix.SchedSetAttr(thread, own, 0)
		}
		if ordinary(own) && n < lentMost {
			l.threads[n], l.own[n] = int32(thread), *own
			n++
		}
	}
	known := uint64(len(entries))+2 == l.links
	if !known {
		l.links = 0 // so that the next wait lists them again
	}
	if !known || len(entries) > lentMost {
		n = 0
	}
	for ; n < lentMost; n++ {
		l.threads[n] = 0
	}
}
