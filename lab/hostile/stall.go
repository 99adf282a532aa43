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

// A hypervisor that keeps a CPU for 10 ms now and then is 0.0 % of stolen time, and hides a throttle that lasts: while
// the agent's thread has no CPU, nobody can end one. Stalls shows when that was.

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

// watchStalls begins to watch CPUs, with a real-time thread on each, before those of the bench and of the agent.
func watchStalls(cpus []int) *stalls {
	s := &stalls{}
	for _, cpu := range cpus {
		s.all.Go(func() {
			if err := s.watch(cpu); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.err = errors.Join(s.err, fmt.Errorf("watch CPU %d for stalls: %w", cpu, err))
			}
		})
	}
	return s
}

func (s *stalls) watch(cpu int) error {
	runtime.LockOSThread() // and the thread ends with the goroutine
	var set unix.CPUSet
	set.Set(cpu)
	attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 4, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := errors.Join(unix.SchedSetaffinity(0, &set), unix.SchedSetAttr(0, &attr, 0)); err != nil {
		return err
	}
	for due := probe.Monotonic() + stallTick; !s.ended.Load(); due += stallTick {
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
