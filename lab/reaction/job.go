package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe"
)

const (
	leastQuota = 5 * time.Millisecond // a slice (sched_cfs_bandwidth_slice_us)
	mostQuota  = 40 * time.Millisecond
	jitter     = 4 // a job is late by up to a fourth of the time between two
)

// burn is the CPU time of a job: more than a group may use at once, which is its quota and as much again that the kernel
// lets it save (burst <= quota).
func burn(quota time.Duration) time.Duration { return quota * 12 / 5 }

// schedule is when the jobs of one group are due, as time since the start.
type schedule struct {
	rng   *rand.Rand
	every time.Duration
	phase time.Duration
	n     int
}

func newSchedule(seed uint64, worker int, every time.Duration) *schedule {
	rng := rand.New(rand.NewPCG(seed, uint64(worker)))
	return &schedule{rng: rng, every: every, phase: time.Duration(rng.Int64N(int64(every)))}
}

// next is when the next job is due.
func (s *schedule) next() time.Duration {
	due := s.phase + time.Duration(s.n)*s.every + time.Duration(s.rng.Int64N(int64(s.every/jitter)))
	s.n++
	return due
}

// startFile is the file descriptor whose end is the start of the jobs. The groups are idle until the agent has set them
// up.
const startFile = 3

// work does the jobs of one group until in ends.
func work(in io.Reader, jobs *schedule, burn time.Duration) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // the jobs are the only load of the group
	input := bufio.NewReader(in)
	if _, err := input.ReadString('\n'); err != nil {
		return fmt.Errorf("wait to be let into the group: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, input) // any end of the input ends the process
		os.Exit(0)
	}()
	if _, err := io.Copy(io.Discard, os.NewFile(startFile, "start")); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	start := probe.Monotonic()
	for {
		at := unix.NsecToTimespec(int64(start + jobs.next()))
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
		}
		for end := used() + burn; used() < end; {
		}
	}
}

// used is the CPU time of this thread.
func used() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Hour // every kernel has this clock
	}
	return time.Duration(t.Nano())
}
