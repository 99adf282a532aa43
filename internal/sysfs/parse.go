package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture that Go knows (include/asm-generic/param.h).
const tick = 10 * time.Millisecond

var errNewline = errors.New("no newline at the end: a torn read")

func firstLine(data []byte) (string, error) {
	text, _, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return "", errNewline
	}
	return string(text), nil
}

func count(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a count", text)
	}
	return n, nil
}

// parseCPUTime sums the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, guest,
// guest_nice (fs/proc/stat.c, show_stat). Old kernels end earlier. Stolen time is part of the busy time.
func parseCPUTime(data []byte) (busy, stolen time.Duration, err error) {
	text, err := firstLine(data)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(text)
	if len(fields) < 5 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("%q is not the line of all CPUs", text)
	}
	const idle, iowait, steal, guest = 4, 5, 8, 9
	var ticks, taken int64
	for i, field := range fields[1:] {
		n, err := count(field)
		if err != nil {
			return 0, 0, err
		}
		column := i + 1
		if column == idle || column == iowait || column >= guest {
			continue
		}
		if ticks += n; ticks < 0 || ticks > math.MaxInt64/int64(tick) {
			return 0, 0, fmt.Errorf("%q is out of range", text)
		}
		if column == steal {
			taken = n
		}
	}
	return time.Duration(ticks) * tick, time.Duration(taken) * tick, nil
}

// ParseSchedstat reads "RUNTIME WAITED SLICES": nanoseconds on a CPU, nanoseconds on run queues, a count
// (fs/proc/base.c, proc_pid_schedstat).
func ParseSchedstat(data []byte) (ran, waited time.Duration, err error) {
	text, err := firstLine(data)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("%q is not \"RUNTIME WAITED SLICES\"", text)
	}
	on, err := count(fields[0])
	if err != nil {
		return 0, 0, err
	}
	queued, err := count(fields[1])
	if err != nil {
		return 0, 0, err
	}
	return time.Duration(on), time.Duration(queued), nil
}

// parseStatm finds the resident pages, the second field of /proc/PID/statm (fs/proc/array.c, proc_pid_statm).
func parseStatm(data []byte) (int64, error) {
	text, err := firstLine(data)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0, fmt.Errorf("%q has no second field", text)
	}
	return count(fields[1])
}
