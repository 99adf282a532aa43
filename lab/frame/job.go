package frame

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
)

// The quotas of groups with jobs.
const (
	LeastQuota = 5 * time.Millisecond // a slice (sched_cfs_bandwidth_slice_us)
	MostQuota  = 40 * time.Millisecond
)

// jitter: a job is late by up to a fourth of the time between two.
const jitter = 4

// Burn is the CPU time of a job: more than a group may use at once, which is its quota and as much again that the
// kernel lets it save (burst <= quota).
func Burn(quota time.Duration) time.Duration { return quota * 12 / 5 }

// Job is what a worker does in its group: a job now and then, at times that depend on the seed and the worker alone.
type Job struct {
	Worker int // negative: this process is no worker
	Seed   uint64
	Every  time.Duration // between two jobs
	Quota  time.Duration // of 100 ms
}

// Flags are those with which a lab starts itself as a worker, and those of its own that go with them.
func (j *Job) Flags(set *flag.FlagSet) {
	set.IntVar(&j.Worker, "worker", -1, "do the jobs of this group until standard input ends")
	set.Uint64Var(&j.Seed, "seed", 1, "seed of the jobs: the same seed gives the same jobs")
	set.DurationVar(&j.Every, "every", j.Every, "time between two jobs of a group")
	set.DurationVar(&j.Quota, "quota", j.Quota, "what a group may use of 100 ms")
}

// Check is an error where the flags make no sense.
func (j *Job) Check() error {
	return cmp.Or(Within("-quota", j.Quota, LeastQuota, MostQuota),
		Within("-every", j.Every, 100*time.Millisecond, time.Minute))
}

// Part is the work of a group, where this process is a worker.
func (j *Job) Part() func() error {
	if j.Worker < 0 {
		return nil
	}
	return func() error { return j.Work(os.Stdin) }
}

// args are the flags of a worker.
func (j *Job) args(worker int) []string {
	return []string{"-worker", strconv.Itoa(worker), "-seed", strconv.FormatUint(j.Seed, 10), "-every",
		j.Every.String(), "-quota", j.Quota.String()}
}

// schedule says when the jobs of one group are due, one after the other, as time since the start.
func schedule(seed uint64, worker int, every time.Duration) (next func() time.Duration) {
	rng := rand.New(rand.NewPCG(seed, uint64(worker)))
	phase := time.Duration(rng.Int64N(int64(every)))
	return func() time.Duration {
		due := phase + time.Duration(rng.Int64N(int64(every/jitter)))
		phase += every
		return due
	}
}

// startFile is the file descriptor whose end is the start of the jobs. The groups are idle until the agent has set them
// up.
const startFile = 3

// Work does the jobs of one group until in ends.
func (j *Job) Work(in io.Reader) error {
	next, burn := schedule(j.Seed, j.Worker, j.Every), Burn(j.Quota)
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
		at := unix.NsecToTimespec(int64(start + next()))
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
		}
		for end := ThreadTime() + burn; ThreadTime() < end; {
		}
	}
}

// ThreadTime is the CPU time of this thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return time.Hour // every kernel has this clock
	}
	return time.Duration(t.Nano())
}

// Jobs are groups that are throttled now and then, and the processes that do their jobs.
type Jobs struct {
	*experiment.Groups
	Paths   []string
	Inodes  []uint64
	Limit   cpu.Bandwidth
	workers []*experiment.Child
}

// NewJobs makes n groups with a quota each.
func NewJobs(groups *experiment.Groups, n int, quota time.Duration) *Jobs {
	j := &Jobs{Groups: groups, Limit: cpu.Bandwidth{Quota: quota, Period: cpu.DefaultPeriod}}
	for i := range n {
		group := Must(groups.Add(fmt.Sprintf("job%d", i)))
		Check(groups.Limit(group, j.Limit))
		j.Paths, j.Inodes = append(j.Paths, group), append(j.Inodes, Must(groups.Tree().Inode(group)))
	}
	return j
}

// Prepare starts a worker in each group: this program again, with the flags of Job. They do nothing until begin is
// called, once.
func (j *Jobs) Prepare(job Job) (begin func() error) {
	waits, starts, err := os.Pipe()
	Check(err)
	defer waits.Close()
	for i, group := range j.Paths {
		cmd := experiment.Again(job.args(i)...)
		cmd.ExtraFiles = []*os.File{waits} // startFile
		j.workers = append(j.workers, Must(experiment.Launch(cmd, func(pid int) error { return j.Enter(group, pid) })))
	}
	return starts.Close
}

// Working is an error where a worker has ended by itself.
func (j *Jobs) Working() error { return experiment.Each(j.workers, (*experiment.Child).Ended) }

// Stop ends the workers.
func (j *Jobs) Stop() error {
	defer func() { j.workers = nil }()
	return experiment.Each(j.workers, (*experiment.Child).Kill)
}

// AllUsed is the CPU time of all groups so far.
func (j *Jobs) AllUsed() (sum time.Duration) {
	for _, group := range j.Paths {
		sum += Must(j.Used(group))
	}
	return sum
}
