package experiment

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// Bind ties a process to a CPU: left to the balancer, two could be on one CPU while another is idle.
func Bind(pid, id int) error { return bind(pid, cpu.Set{id}) }

// Spread lets a process, with every thread that it has by now, run on all of some CPUs, also on CPUs that it did not
// inherit.
func Spread(pid int, cpus cpu.Set) error { return bindAll(strconv.Itoa(pid), cpus) }

// Allowed are the CPUs that this process may run on.
func Allowed() (set cpu.Set, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("read which CPUs may be used: %w", err)
	}
	for id := range 64 * len(allowed) {
		if allowed.IsSet(id) {
			set = append(set, id)
		}
	}
	return set, nil
}

// Confine ties this process, with every thread that it has by now, and all that it starts from now on to some CPUs.
func Confine(cpus cpu.Set) error { return bindAll(self, cpus) }

const self = "self" // in /proc

func bindAll(process string, cpus cpu.Set) error {
	ids, err := threads(process)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := bind(id, cpus); err != nil {
			return err
		}
	}
	return nil
}

func bind(pid int, cpus cpu.Set) error {
	var set unix.CPUSet
	for _, id := range cpus {
		set.Set(id)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil && err != unix.ESRCH {
		return fmt.Errorf("bind process %d to CPU %s: %w", pid, cpus, err)
	}
	return nil
}

// threads are those of a process.
func threads(process string) (ids []int, err error) {
	entries, err := os.ReadDir("/proc/" + process + "/task")
	for _, e := range entries {
		id, wrong := strconv.Atoi(e.Name())
		ids, err = append(ids, id), errors.Join(err, wrong)
	}
	if err != nil {
		return nil, fmt.Errorf("list the threads of process %s: %w", process, err)
	}
	return ids, nil
}
