package main

import (
	"fmt"
	"os"
	"time"

	"plimsoll/lab/experiment"
)

// spent is what a process has used so far.
type spent struct {
	at    time.Time
	cpu   time.Duration
	reads int64 // system calls that read
}

func spentOf(c *experiment.Child) (spent, error) {
	used, err := c.Used()
	if err != nil {
		return spent{}, err
	}
	reads, err := c.Count("io", "syscr:")
	return spent{time.Now(), used, reads}, err
}

// openFiles counts the descriptors of an agent, for each managed group.
func (b *bench) openFiles(agent *experiment.Child) (float64, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", agent.PID()))
	return float64(len(list)) / float64(len(b.fleet.units)), err
}
