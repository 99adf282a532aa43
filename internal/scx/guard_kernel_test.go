package scx

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fifo counts the threads of this process that have a real-time priority, and those that have none.
func fifo() (with, without int) {
	for _, tid := range threads() {
		as, err := unix.SchedGetAttr(tid, 0)
		switch {
		case err != nil:
		case as.Policy == unix.SCHED_FIFO:
			with++
		default:
			without++
		}
	}
	return with, without
}

// collections counts those of the garbage while something is done.
func collections(do func()) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

// litter makes so many bytes of garbage.
func litter(bytes int) {
	const piece = 1 << 20
	for range bytes / piece {
		runtime.KeepAlive(make([]byte, piece))
	}
}

// TestRaiseAndLower: all threads have a real-time priority and none has it in the end, and a nice value is what it was,
// also of a thread that has kept the beat meanwhile. Garbage is collected before and after, and not between.
func TestRaiseAndLower(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, self, 5); err != nil {
		t.Fatal(err)
	}
	defer unix.Setpriority(unix.PRIO_PROCESS, self, 0)
	const most = 1 << 40 // bytes
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(most))
	lower := raise(time.Second)
	defer lower()
	if with, without := fifo(); with == 0 || without > 0 {
		t.Fatalf("raised: %d threads have a real-time priority, and %d have none", with, without)
	}
	w := watch{begun: time.Now()}
	w.over.Store(true)
	for cpu := range maxCPUs {
		if cpus.IsSet(cpu) {
			w.beat(cpu, &atomic.Int64{})
			break
		}
	}
	if got, limit := collections(func() { litter(64 << 20) }), debug.SetMemoryLimit(-1); got > 0 ||
		limit != math.MaxInt64 {
		t.Errorf("raised: %d collections, and the memory limit is %d", got, limit)
	}
	lower()
	if percent, limit := debug.SetGCPercent(70), debug.SetMemoryLimit(-1); percent != 70 || limit != most {
		t.Errorf("lowered: GOGC is %d and the memory limit %d, want 70 and %d", percent, limit, most)
	}
	if got := collections(func() { litter(64 << 20) }); got == 0 {
		t.Error("lowered: no collection")
	}
	if with, _ := fifo(); with > 0 || nice(self) != 5 {
		t.Errorf("lowered: %d threads have a real-time priority, and this one nice %d, want 0 and 5", with, nice(self))
	}
}
