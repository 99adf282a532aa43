package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cpuTime is the time of all CPUs since the machine was started, and the part of it that a hypervisor gave to others
// while something was to run here; in ticks.
type cpuTime struct{ all, stolen int64 }

func readCPUTime() (cpuTime, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}, err
	}
	return parseCPUTime(string(data))
}

// parseCPUTime reads the line of all CPUs (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal, and
// guests, which user and nice contain.
func parseCPUTime(stat string) (t cpuTime, err error) {
	const steal, guest = 8, 9
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < guest || fields[0] != "cpu" {
		return t, fmt.Errorf("/proc/stat begins with %q, which is not the line of all CPUs", line)
	}
	for i, field := range fields[1:guest] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		t.all += n
		if i+1 == steal {
			t.stolen = n
		}
	}
	return t, nil
}

// since is the part of the time since then that was stolen.
func (t cpuTime) since(then cpuTime) float64 {
	return float64(t.stolen-then.stolen) / float64(max(1, t.all-then.all))
}
