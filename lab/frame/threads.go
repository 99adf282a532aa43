package frame

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
)

// Spread lets a process, with every thread that it has by now, run on all of some CPUs, also on CPUs that it did not
// inherit.
func Spread(pid int, cpus cpu.Set) error { return bindAll(strconv.Itoa(pid), cpus) }

// Confine ties this process, with every thread that it has by now, and all that it starts from now on to some CPUs.
func Confine(cpus cpu.Set) error { return bindAll(self, cpus) }

const self = "self" // in /proc

func bindAll(process string, cpus cpu.Set) error {
	return eachThread(process, func(id int) error { return experiment.BindTo(id, cpus) })
}

// eachThread does the same with each thread that a process has by now.
func eachThread(process string, do func(id int) error) error {
	entries, err := os.ReadDir("/proc/" + process + "/task")
	if err != nil {
		return fmt.Errorf("list the threads of process %s: %w", process, err)
	}
	return experiment.Each(entries, func(e os.DirEntry) error {
		id, err := strconv.Atoi(e.Name())
		if err == nil {
			err = do(id)
		}
		return err
	})
}

// lowestRealTime comes before all ordinary tasks, and after all other real-time tasks of the machine.
const lowestRealTime = 1

// Foremost makes this process come before all ordinary ones, with every thread that it has by now: a load generator
// stands for other machines, whose CPUs the experiment does not take. What the threads start is ordinary again.
func Foremost() error { return foremost(unix.SCHED_FLAG_RESET_ON_FORK) }

// ForemostWithKin is Foremost for threads that are made later too, as Go's runtime does when it likes. It holds for the
// processes that are started from then on as well, until Ordinary is called for each.
func ForemostWithKin() error { return foremost(0) }

func foremost(flags uint64) error {
	return eachThread(self, func(id int) error {
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Flags: flags, Priority: lowestRealTime}
		if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("make process %d a real-time one: %w", os.Getpid(), err)
		}
		return nil
	})
}

// Ordinary makes a process an ordinary one while it waits for its start (Launch).
func Ordinary(pid int) error {
	attr := unix.SchedAttr{Policy: unix.SCHED_NORMAL}
	if err := unix.SchedSetAttr(pid, &attr, 0); err != nil {
		return fmt.Errorf("make process %d an ordinary one: %w", pid, err)
	}
	return nil
}
