// Package task reads and sets what the kernel's scheduler keeps for each task and not for a group: its slice and its
// core-scheduling cookie. Later threads and child processes inherit both settings. A setting ends with
// the task, and no file shows it.
package task

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrClass is met of a task that the fair class does not run: it has no slice.
var ErrClass = errors.New("not a task of the fair class")

// Kernel is the running kernel's tasks. The zero value can do all but give a cookie.
type Kernel struct {
	mu     sync.Mutex
	cookie *cookie
	base   atomic.Int64 // the last BaseSlice; 0: none was read
}

// Passed says of an error that a task has ended, or is not of the fair class.
func (*Kernel) Passed(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, ErrClass) }

// onOneThread runs f, and nothing else meanwhile, on one thread of ours. That thread stays: with one that ends the
// kernel would send their signal to the processes that it has started (prctl, PR_SET_PDEATHSIG).
func onOneThread(f func(tid int) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f(unix.Gettid())
}

func wrap(what string, tid int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of task %d: %w", what, tid, err)
}

// RunsOn says whether a task may run on each of these CPUs.
func (*Kernel) RunsOn(tid int, cpus []int) (bool, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &mask); err != nil {
		return false, wrap("CPUs", tid, err)
	}
	for _, n := range cpus {
		if !mask.IsSet(n) {
			return false, nil
		}
	}
	return true, nil
}

// Name is what a task calls itself; "" where it has ended.
func (*Kernel) Name(tid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
