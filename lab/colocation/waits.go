package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/cgroup"
)

// schedule is what the kernel counts of tasks: how long they ran, and how long they waited on a run queue for it.
type schedule struct{ ran, waited time.Duration }

func (s schedule) since(before schedule) schedule {
	return schedule{s.ran - before.ran, s.waited - before.waited}
}

// scheduleOf adds up the tasks of a group. A worker of nginx lives as long as nginx, so nothing that was counted is lost.
func scheduleOf(tree *cgroup.Tree, group string) (sum schedule, err error) {
	tasks, err := tree.Tasks(group)
	if err != nil {
		return sum, err
	}
	for _, id := range tasks {
		name := fmt.Sprintf("/proc/%d/schedstat", id)
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return sum, err
		}
		one, err := parseSchedstat(string(data))
		if err != nil {
			return sum, fmt.Errorf("%s: %w", name, err)
		}
		sum.ran += one.ran
		sum.waited += one.waited
	}
	return sum, nil
}

// parseSchedstat reads /proc/PID/schedstat (fs/proc/base.c, proc_pid_schedstat): nanoseconds run, nanoseconds waited,
// times run.
func parseSchedstat(text string) (schedule, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 || !strings.HasSuffix(text, "\n") {
		return schedule{}, fmt.Errorf("%q is not three numbers and a newline", text)
	}
	var ns [3]int64
	for i, f := range fields {
		n, err := strconv.ParseUint(f, 10, 63)
		if err != nil {
			return schedule{}, err
		}
		ns[i] = int64(n)
	}
	return schedule{time.Duration(ns[0]), time.Duration(ns[1])}, nil
}
