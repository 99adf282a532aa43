package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/lab/experiment"
)

// fleet is the groups that are throttled, and the processes that do their jobs.
type fleet struct {
	*experiment.Groups
	paths   []string
	inodes  []uint64
	limit   cpu.Bandwidth
	workers []*experiment.Child
}

func newFleet(groups *experiment.Groups, n int, quota time.Duration) (*fleet, error) {
	f := &fleet{Groups: groups, limit: cpu.Bandwidth{Quota: quota, Period: cpu.DefaultPeriod}}
	for i := range n {
		group, err := groups.Add(fmt.Sprintf("job%d", i))
		if err != nil {
			return nil, err
		}
		if err := groups.Limit(group, f.limit); err != nil {
			return nil, err
		}
		inode, err := groups.Tree().Inode(group)
		if err != nil {
			return nil, err
		}
		f.paths, f.inodes = append(f.paths, group), append(f.inodes, inode)
	}
	return f, nil
}

// prepare starts a worker in each group: this program again. They do nothing until begin is called, once.
func (f *fleet) prepare(seed uint64, every time.Duration) (begin func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	waits, starts, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer waits.Close()
	for i, group := range f.paths {
		cmd := exec.Command(self, "-worker", strconv.Itoa(i), "-seed", strconv.FormatUint(seed, 10), "-every", every.String(), "-quota", f.limit.Quota.String())
		cmd.ExtraFiles = []*os.File{waits} // startFile
		c, err := experiment.Launch(cmd, func(pid int) error { return f.Enter(group, pid) })
		if err != nil {
			return nil, errors.Join(err, starts.Close())
		}
		f.workers = append(f.workers, c)
	}
	return starts.Close, nil
}

// works is an error where a worker has ended by itself.
func (f *fleet) works() error {
	var errs []error
	for _, c := range f.workers {
		errs = append(errs, c.Ended())
	}
	return errors.Join(errs...)
}

func (f *fleet) stop() error {
	var errs []error
	for _, c := range f.workers {
		errs = append(errs, c.Stop(0))
	}
	f.workers = nil
	return errors.Join(errs...)
}

// used is the CPU time of all groups so far.
func (f *fleet) used() (sum time.Duration, err error) {
	for _, group := range f.paths {
		used, err := f.Used(group)
		if err != nil {
			return sum, err
		}
		sum += used
	}
	return sum, nil
}
