package scx

import (
	"runtime"
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

// TestRaiseAndLower: all threads have a real-time priority and none has it in the end, and a nice value is what it was, also
// of a thread that has kept the beat meanwhile.
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
	defer lower()
	raise()
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
	lower()
	if with, _ := fifo(); with > 0 || nice(self) != 5 {
		t.Errorf("lowered: %d threads have a real-time priority, and this one nice %d, want 0 and 5", with, nice(self))
	}
}
