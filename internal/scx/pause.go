package scx

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Pause is how long tasks stood still while the scheduler was changed, seen by a thread on each CPU that wakes every
// millisecond: the longest time that one of them came late.
type Pause struct {
	Took    time.Duration `json:"took"`    // the change, from call to return
	Longest time.Duration `json:"longest"` // of a thread, while it took place
	Calm    time.Duration `json:"calm"`    // the same over 50 ms before, as a measure of what is usual here
}

const (
	beat  = time.Millisecond
	calm  = 50 * time.Millisecond
	after = 20 * time.Millisecond // what was held up is seen when it runs again
)

// during runs a change and measures the pause.
func during(change func() error) (Pause, error) {
	var w watch
	stop, err := w.start()
	if err != nil {
		return Pause{}, errors.Join(err, change())
	}
	defer stop()
	time.Sleep(calm)
	p := Pause{Calm: w.take()}
	begin := time.Now()
	err = change()
	p.Took = time.Since(begin)
	time.Sleep(after)
	p.Longest = w.take()
	return p, err
}

// watch is a thread on each CPU that notes how late it wakes.
type watch struct {
	latest atomic.Int64
	over   atomic.Bool
}

func (w *watch) take() time.Duration { return time.Duration(w.latest.Swap(0)) }

func (w *watch) start() (stop func(), err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, err
	}
	var threads sync.WaitGroup
	for cpu := range runtime.NumCPU() * 64 { // numbers may have holes
		if allowed.IsSet(cpu) {
			threads.Go(func() { w.beat(cpu) })
		}
	}
	return func() { w.over.Store(true); threads.Wait() }, nil
}

// beat stays on its thread, which ends with it.
func (w *watch) beat(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if unix.SchedSetaffinity(0, &set) != nil {
		return // the CPU has gone
	}
	for last := time.Now(); !w.over.Load(); {
		nap := unix.NsecToTimespec(int64(beat))
		_ = unix.Nanosleep(&nap, nil)
		now := time.Now()
		for late := int64(now.Sub(last) - beat); ; {
			if seen := w.latest.Load(); late <= seen || w.latest.CompareAndSwap(seen, late) {
				break
			}
		}
		last = now
	}
}
