// Package sysfs reads what the kernel says about the machine and its threads outside of the control groups: /sys and
// /proc.
package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// Host is a machine whose root directory is at Root.
type Host struct{ root string }

// NewHost is the machine below a root directory: "/", or "/host" in a container that has the node's root there.
func NewHost(root string) *Host { return &Host{root: root} }

// Self is what this process has used.
type Self struct {
	CPU time.Duration
	RSS int64 // bytes
}

// Online is the set of CPUs that the scheduler uses.
func (h *Host) Online() (cpu.Set, error) { return h.cpus("sys/devices/system/cpu/online") }

// Possible is the set of CPUs that may ever be online.
func (h *Host) Possible() (cpu.Set, error) { return h.cpus("sys/devices/system/cpu/possible") }

func (h *Host) cpus(name string) (cpu.Set, error) {
	data, err := h.read(name)
	if err != nil {
		return nil, err
	}
	set, err := cpu.ParseSet(string(data))
	if err == nil && len(set) == 0 {
		err = errors.New("no CPU is listed")
	}
	if err != nil {
		return nil, h.wrap(name, err)
	}
	return set, nil
}

// Release is the kernel's, as uname -r prints it.
func (h *Host) Release() (string, error) {
	data, err := h.read("proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(data)), err
}

// Busy is the time that the CPUs have not been idle since boot, in steps of 10 ms: all but idle and iowait. The time
// of guests is part of user and nice (kernel/sched/cputime.c, account_guest_time) and is not counted again.
func (h *Host) Busy() (time.Duration, error) {
	busy, _, err := h.cpuTime()
	return busy, err
}

// Stolen is the part of Busy that a hypervisor gave to others while something was to run here.
func (h *Host) Stolen() (time.Duration, error) {
	_, stolen, err := h.cpuTime()
	return stolen, err
}

func (h *Host) cpuTime() (busy, stolen time.Duration, err error) {
	data, err := h.read("proc/stat")
	if err != nil {
		return 0, 0, err
	}
	busy, stolen, err = parseCPUTime(data)
	return busy, stolen, h.wrap("proc/stat", err)
}

// Threads reads by thread number for how long threads have been on a CPU since they began. Threads that have ended are
// left out. A number belongs to the PID namespace that proc shows.
func (h *Host) Threads(tids []int) (map[int]time.Duration, error) {
	ran := make(map[int]time.Duration, len(tids))
	for _, tid := range tids {
		runtime, err := h.thread(tid)
		if gone(err) {
			if err = h.stillThere(tid, err); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		ran[tid] = runtime
	}
	return ran, nil
}

// thread reads the file of the thread itself: that of /proc/TID sums over its whole process.
func (h *Host) thread(tid int) (time.Duration, error) {
	name := fmt.Sprintf("proc/%d/task/%d/schedstat", tid, tid)
	data, err := h.read(name)
	if err != nil {
		return 0, err
	}
	ran, _, err := ParseSchedstat(data)
	return ran, h.wrap(name, err)
}

// gone says whether a thread has ended: before its file was opened, or before it was read.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// stillThere returns the error if the thread lives, and only the file is missing: a kernel without schedstat.
func (h *Host) stillThere(tid int, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, statErr := os.Stat(filepath.Join(h.root, "proc", strconv.Itoa(tid), "stat")); statErr != nil {
		return nil
	}
	if _, again := os.Stat(filepath.Join(h.root, fmt.Sprintf("proc/%d/task/%d/schedstat", tid, tid))); again == nil {
		return nil // the number is in use again
	}
	return fmt.Errorf("the kernel does not report the threads' time (CONFIG_SCHED_INFO): %w", err)
}

// Self is what this process, not the one of the Host's root, has used.
func (h *Host) Self() (Self, error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return Self{}, fmt.Errorf("getrusage: %w", err)
	}
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Self{}, err
	}
	pages, err := parseStatm(data)
	if err != nil {
		return Self{}, fmt.Errorf("/proc/self/statm: %w", err)
	}
	used := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	return Self{CPU: used, RSS: pages * int64(os.Getpagesize())}, nil
}

func (h *Host) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(h.root, name)) }

func (h *Host) wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Join(h.root, name), err)
}
