package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

// spent is what a process has used so far.
type spent struct {
	at    time.Time
	cpu   time.Duration
	reads int64 // system calls that read
}

// process measures a process from outside.
type process int

func processOf(c *experiment.Child) process { return process(c.PID()) }

func (p process) spent() (spent, error) {
	used, err := experiment.CPUTime(int(p))
	if err != nil {
		return spent{}, err
	}
	reads, err := p.field("io", "syscr:")
	return spent{time.Now(), used, reads}, err
}

// rss is the resident memory in bytes.
func (p process) rss() (int64, error) {
	kib, err := p.field("status", "VmRSS:")
	return kib << 10, err
}

// openFiles counts the descriptors of an agent, for each managed group.
func (b *bench) openFiles(agent *experiment.Child) (float64, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", agent.PID()))
	return float64(len(list)) / float64(len(b.fleet.units)), err
}

// field finds a number in a file of /proc.
func (p process) field(file, key string) (int64, error) {
	name := fmt.Sprintf("/proc/%d/%s", p, file)
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	words := strings.Fields(string(data))
	for i, word := range words[:max(0, len(words)-1)] {
		if word == key {
			return strconv.ParseInt(words[i+1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s: no %s", name, key)
}
