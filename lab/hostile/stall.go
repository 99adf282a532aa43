package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe"
)

// A hypervisor that takes a CPU away for 10 ms now and then hardly shows in the stolen time, and meanwhile the agent
// cannot end a throttle. So a thread on each CPU wakes all the time, and notes when it was late.

// stall is a time in which a CPU ran no real-time thread although one was due.
type stall struct {
	cpu      int
	from, to time.Duration // CLOCK_MONOTONIC
}

// stalls watches some CPUs.
type stalls struct {
	ended atomic.Bool
	all   sync.WaitGroup
	mu    sync.Mutex
	list  []stall
	err   error
}

const (
	stallTick  = 2 * time.Millisecond // between two looks
	leastStall = 2 * time.Millisecond // how late a look is that tells of a stall
)

// watchStalls watches CPUs from when it returns, with a real-time thread on each, before those of the bench (3) and of
// the agent (2).
func watchStalls(cpus []int) *stalls {
	s := &stalls{}
	var ready sync.WaitGroup
	ready.Add(len(cpus))
	for _, cpu := range cpus {
		s.all.Go(func() {
			err, due := takeCPU(cpu, 4), probe.Monotonic()+stallTick
			ready.Done()
			if err == nil {
				err = s.watch(cpu, due)
			}
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.err = errors.Join(s.err, fmt.Errorf("watch CPU %d for stalls: %w", cpu, err))
			}
		})
	}
	ready.Wait()
	return s
}

// takeCPU ties the goroutine to a thread of a real-time priority on a CPU. The thread ends with the goroutine.
func takeCPU(cpu int, priority uint32) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: priority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	return errors.Join(unix.SchedSetaffinity(0, &set), unix.SchedSetAttr(0, &attr, 0))
}

// watch looks at each tick, the first of which is due then.
func (s *stalls) watch(cpu int, due time.Duration) error {
	for ; !s.ended.Load(); due += stallTick {
		at := unix.NsecToTimespec(int64(due))
		if err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil); err != nil &&
			!errors.Is(err, unix.EINTR) {
			return err
		}
		if now := probe.Monotonic(); now-due >= leastStall {
			s.mu.Lock()
			s.list = append(s.list, stall{cpu, due, now})
			s.mu.Unlock()
			due = now
		}
	}
	return nil
}

// collect returns the stalls since it was last called.
func (s *stalls) collect() ([]stall, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list, s.err
}

func (s *stalls) close() {
	s.ended.Store(true)
	s.all.Wait()
}

// during is for how long the CPU that stood still longest did so in a time.
func during(list []stall, from, to time.Duration) time.Duration {
	of, most := map[int]time.Duration{}, time.Duration(0)
	for _, s := range list {
		if over := min(s.to, to) - max(s.from, from); over > 0 {
			of[s.cpu] += over
			most = max(most, of[s.cpu])
		}
	}
	return most
}

// longest is the length of the longest.
func longest(list []stall) (most time.Duration) {
	for _, s := range list {
		most = max(most, s.to-s.from)
	}
	return most
}
