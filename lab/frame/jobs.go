package frame

import (
	"errors"
	"fmt"
	"os"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
)

// Jobs are groups that are throttled now and then, and the processes that do their jobs.
type Jobs struct {
	*experiment.Groups
	Paths   []string
	Inodes  []uint64
	Limit   cpu.Bandwidth
	workers []*experiment.Child
}

// NewJobs makes n groups with a quota each.
func NewJobs(groups *experiment.Groups, n int, quota time.Duration) (*Jobs, error) {
	j := &Jobs{Groups: groups, Limit: cpu.Bandwidth{Quota: quota, Period: cpu.DefaultPeriod}}
	for i := range n {
		group, err := groups.Add(fmt.Sprintf("job%d", i))
		if err != nil {
			return nil, err
		}
		if err := groups.Limit(group, j.Limit); err != nil {
			return nil, err
		}
		inode, err := groups.Tree().Inode(group)
		if err != nil {
			return nil, err
		}
		j.Paths, j.Inodes = append(j.Paths, group), append(j.Inodes, inode)
	}
	return j, nil
}

// Prepare starts a worker in each group: this program again, with the flags of Job. They do nothing until begin is
// called, once.
func (j *Jobs) Prepare(job Job) (begin func() error, err error) {
	waits, starts, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer waits.Close()
	for i, group := range j.Paths {
		cmd := experiment.Again(job.args(i)...)
		cmd.ExtraFiles = []*os.File{waits} // startFile
		c, err := experiment.Launch(cmd, func(pid int) error { return j.Enter(group, pid) })
		if err != nil {
			return nil, errors.Join(err, starts.Close())
		}
		j.workers = append(j.workers, c)
	}
	return starts.Close, nil
}

// Working is an error where a worker has ended by itself.
func (j *Jobs) Working() error { return experiment.Each(j.workers, (*experiment.Child).Ended) }

// Stop ends the workers.
func (j *Jobs) Stop() error {
	defer func() { j.workers = nil }()
	return experiment.Each(j.workers, (*experiment.Child).Kill)
}

// AllUsed is the CPU time of all groups so far.
func (j *Jobs) AllUsed() (sum time.Duration, err error) {
	for _, group := range j.Paths {
		used, err := j.Used(group)
		if err != nil {
			return sum, err
		}
		sum += used
	}
	return sum, nil
}
