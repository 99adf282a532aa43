package scx

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Stall is how long no task ran while the scheduler was changed, seen by a thread on each CPU that wakes every
// millisecond: the longest time that one of them came late.
type Stall struct {
	Took time.Duration `json:"took"` // the change, from call to return
	// the longest delay of a thread that wakes every millisecond, while the change took place
	Longest  time.Duration `json:"longest"`
	Baseline time.Duration `json:"baseline"` // the same over the 50 ms before, as a measure of what is usual here
}

const (
	beat     = time.Millisecond
	baseline = 50 * time.Millisecond
	after    = 20 * time.Millisecond // a delayed thread is seen when it runs again
)

// during runs a change and measures the stall.
func during(change func() error) (Stall, error) {
	var w watch
	stop, err := w.start()
	if err != nil {
		return Stall{}, errors.Join(err, change())
	}
	defer stop()
	time.Sleep(baseline)
	p := Stall{Baseline: w.take()}
	begin := time.Now()
	err = change()
	p.Took = time.Since(begin)
	time.Sleep(after)
	p.Longest = w.take()
	return p, err
}

// watch is a thread on each CPU that notes how late it wakes.
type watch struct {
	begun  time.Time
	latest atomic.Int64
	over   atomic.Bool
	beats  map[int]*atomic.Int64 // when each CPU's thread was last awake, from begun; -1: it has no thread any more
}

func (w *watch) take() time.Duration { return time.Duration(w.latest.Swap(0)) }

// silent is the CPU whose thread has not been awake for the longest time.
func (w *watch) silent() (cpu int, d time.Duration) {
	now := time.Since(w.begun)
	for c, last := range w.beats {
		if at := time.Duration(last.Load()); at >= 0 && now-at >= d {
			cpu, d = c, now-at
		}
	}
	return cpu, d
}

func (w *watch) start() (stop func(), err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, err
	}
	w.begun, w.beats = time.Now(), map[int]*atomic.Int64{}
	var threads sync.WaitGroup
	for cpu := range maxCPUs {
		if allowed.IsSet(cpu) {
			last := &atomic.Int64{}
			w.beats[cpu] = last
			threads.Go(func() { w.beat(cpu, last) })
		}
	}
	return func() { w.over.Store(true); threads.Wait() }, nil
}

// beat stays on its thread, and leaves the thread unchanged. If the thread ended, processes that were started on it
// would be killed with it, when they use PR_SET_PDEATHSIG.
func (w *watch) beat(cpu int, at *atomic.Int64) {
	runtime.LockOSThread()
	var before, set unix.CPUSet
	own := nice(0)
	as, err := unix.SchedGetAttr(0, 0)
	if err = errors.Join(err, unix.SchedGetaffinity(0, &before)); err != nil {
		at.Store(-1)
		runtime.UnlockOSThread()
		return
	}
	defer func() {
		if errors.Join(unix.SchedSetAttr(0, as, 0), unix.Setpriority(unix.PRIO_PROCESS, 0, int(own)),
			unix.SchedSetaffinity(0, &before)) == nil {
			runtime.UnlockOSThread() // or the thread ends
		}
	}()
	set.Set(cpu)
	ordinary := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL} // also in a real-time process
	if unix.SchedSetaffinity(0, &set) != nil || unix.SchedSetAttr(0, &ordinary, 0) != nil {
		at.Store(-1) // the CPU has gone
		return
	}
	for last := time.Since(w.begun); !w.over.Load(); {
		nap := unix.NsecToTimespec(int64(beat))
		_ = unix.Nanosleep(&nap, nil)
		now := time.Since(w.begun)
		at.Store(int64(now))
		for late := int64(now - last - beat); ; {
			if seen := w.latest.Load(); late <= seen || w.latest.CompareAndSwap(seen, late) {
				break
			}
		}
		last = now
	}
}
