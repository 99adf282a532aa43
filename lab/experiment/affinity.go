package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// Bind ties a process to a CPU: left to the balancer, two could be on one CPU while another is idle.
func Bind(pid, id int) error { return bind(pid, cpu.Set{id}) }

// Confine ties this process, with every thread that it has by now, and all that it starts from now on to some CPUs.
func Confine(cpus cpu.Set) error {
	ids, err := threads()
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

// threads are those of this process.
func threads() (ids []int, err error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("list the threads of this process: %w", err)
	}
	for _, e := range entries {
		id, err := strconv.Atoi(filepath.Base(e.Name()))
		if err != nil {
			return nil, fmt.Errorf("list the threads of this process: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
