package task

import "golang.org/x/sys/unix"

// RunsOn says whether a task may run on each of these CPUs.
func (*Kernel) RunsOn(tid int, cpus []int) (bool, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &mask); err != nil {
		return false, wrap("CPUs", tid, err)
	}
	for _, n := range cpus {
		if !mask.IsSet(n) {
			return false, nil
		}
	}
	return true, nil
}
