package experiment

import (
	"fmt"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// Bind ties a process to a CPU: left to the balancer, two could be on one CPU while another is idle.
func Bind(pid, id int) error { return BindTo(pid, cpu.Set{id}) }

// BindTo lets a thread, or the first thread of a process, run on these CPUs alone. One that has ended is no error.
func BindTo(pid int, cpus cpu.Set) error {
	var set unix.CPUSet
	for _, id := range cpus {
		set.Set(id)
	}
	if err := unix.SchedSetaffinity(pid, &set); err != nil && err != unix.ESRCH {
		return fmt.Errorf("bind process %d to CPU %s: %w", pid, cpus, err)
	}
	return nil
}

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
