package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/experiment"
)

// taskTimes is what the kernel counts of tasks: how long they ran, and how long they waited on a run queue for it.
type taskTimes struct{ ran, waited time.Duration }

func (s taskTimes) since(before taskTimes) taskTimes {
	return taskTimes{s.ran - before.ran, s.waited - before.waited}
}

// watch reads the times of the tasks of a group, often and fast. A worker of nginx lives as long as nginx, so nothing
// that was counted is lost.
type watch struct{ tasks []watched }

type watched struct {
	pid  int
	stat *os.File // /proc/PID/schedstat
}

func newWatch(tree *cgroup.Tree, group string) (*watch, error) {
	tids, err := tree.Tasks(group)
	w := &watch{}
	for _, tid := range tids {
		f, openErr := os.Open(fmt.Sprintf("/proc/%d/schedstat", tid))
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		w.tasks = append(w.tasks, watched{tid, f})
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// now sums over the tasks.
func (w *watch) now() (sum taskTimes, err error) {
	var buf [64]byte
	for _, t := range w.tasks {
		ran, err := experiment.CPUTime(t.pid)
		if err != nil {
			return sum, err
		}
		n, err := t.stat.ReadAt(buf[:], 0)
		if n == 0 {
			return sum, err
		}
		waited, err := parseSchedstat(string(buf[:n]))
		if err != nil {
			return sum, fmt.Errorf("%s: %w", t.stat.Name(), err)
		}
		sum.ran += ran
		sum.waited += waited
	}
	return sum, nil
}

func (w *watch) close() error {
	return experiment.Each(w.tasks, func(t watched) error { return t.stat.Close() })
}

// parseSchedstat reads of /proc/PID/schedstat how long the task has waited on run queues (fs/proc/base.c,
// proc_pid_schedstat): nanoseconds run, nanoseconds waited, times run.
func parseSchedstat(text string) (waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 || !strings.HasSuffix(text, "\n") {
		return 0, fmt.Errorf("%q is not three numbers and a newline", text)
	}
	ns := [3]uint64{}
	for i, f := range fields {
		if ns[i], err = strconv.ParseUint(f, 10, 63); err != nil {
			return 0, err
		}
	}
	return time.Duration(ns[1]), nil
}
