package scx

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// probation is how long a fresh scheduler is watched for stalls that the kernel's watchdog would take longer to see.
const probation = 10 * time.Second

// guard watches a new scheduler, and removes it from the kernel when a CPU does not run an ordinary task for too long.
// The process has a real-time priority meanwhile (raise): it runs whatever a sched_ext scheduler does.
type guard struct {
	over   atomic.Bool
	done   sync.WaitGroup
	reason atomic.Pointer[string]
	most   time.Duration
	until  time.Time
}

// protect watches until then, and calls lower when it is done. Without a bound there is nothing to watch.
func protect(a *Attachment, most time.Duration, until time.Time, lower func()) *guard {
	g := &guard{most: most, until: until}
	if most <= 0 {
		lower()
		return g
	}
	var w watch
	stop, err := w.start()
	if err != nil {
		lower()
		return g // the kernel's own watchdog stays
	}
	g.done.Go(func() {
		defer lower()
		defer stop()
		for time.Now().Before(until) && !g.over.Load() {
			time.Sleep(most / 20)
			cpu, silent := w.silent()
			if silent <= most {
				continue
			}
			why := fmt.Sprintf("CPU %d did not run an ordinary task for %v, and %v is the most that was allowed", cpu,
				silent.Round(time.Millisecond), most)
			g.reason.Store(&why)
			_ = a.link.Close() // also after an error the kernel's watchdog stays
			return
		}
	})
	return g
}

// why is what is known of the end of a scheduler.
func (g *guard) why() string {
	if why := g.reason.Load(); why != nil {
		return *why
	}
	return "the kernel ended it, by its watchdog or for an error: see the kernel's log (dmesg)"
}

func (g *guard) stop() {
	g.over.Store(true)
	g.done.Wait()
}

// raise gives all threads of this process a real-time priority while a scheduler is watched (most > 0), and lower ends
// that: long work, such as the verification of programs, must not run at that priority. Where the priority is not
// allowed, the kernel's own watchdog ends a stall. One thread alone would not suffice: it would wait for locks of Go's
// runtime that the others have.
//
// Nor may a thread wait by spinning: an ordinary thread of this process (watch) does not get the CPU that another spins
// on. Go's collector spins until a goroutine stops (runtime.suspendG), so collection is off meanwhile: for seconds, in
// a process that does nothing else.
func raise(most time.Duration) (lower func()) {
	if most <= 0 {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(math.MaxInt64)
	runtime.GC() // a collection that had begun is over, and memory is free
	setPriority(unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1})
	return func() {
		setPriority(unix.SchedAttr{Policy: unix.SCHED_NORMAL})
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// setPriority raises or lowers the threads that are not yet. Each keeps its nice value, which counts again after lower.
func setPriority(as unix.SchedAttr) {
	as.Size = unix.SizeofSchedAttr
	everyThread(threads, func(tid int) bool {
		now, err := unix.SchedGetAttr(tid, 0)
		if err != nil || (now.Policy == unix.SCHED_FIFO) == (as.Policy == unix.SCHED_FIFO) {
			return false
		}
		as.Nice = nice(tid)
		return unix.SchedSetAttr(tid, &as, 0) == nil
	})
}

// passes is how often threads are gone through at most: each pass finds only those that
// were made during the one before.
const passes = 10

// everyThread changes all threads, also those that are made meanwhile: a thread begins with what its maker has.
func everyThread(list func() []int, change func(tid int) (changed bool)) {
	for again, left := true, passes; again && left > 0; left-- {
		again = false
		for _, tid := range list() {
			again = change(tid) || again
		}
	}
}

// threads are those of this process.
func threads() []int {
	entries, _ := os.ReadDir("/proc/self/task") // without proc there is no priority
	var list []int
	for _, entry := range entries {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			list = append(list, tid)
		}
	}
	return list
}

// nice is the nice value of a thread, also of one that has a real-time priority; 0 of none. The call returns 20 less
// that (kernel/sys.c, getpriority).
func nice(tid int) int32 {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return 0
	}
	return int32(20 - raw)
}
