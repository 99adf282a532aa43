package frame

import (
	"errors"
	"fmt"
	"os"
	"strconv"

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
	ids, err := threads(process)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := experiment.BindTo(id, cpus); err != nil {
			return err
		}
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
