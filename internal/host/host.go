// Package host is this machine as the agent sees it: what it has used, where its CPUs are, and the throttles that the
// programs in the kernel (internal/probe) report.
package host

import (
	"sync"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sysfs"
)

// Host measures this machine. The root group's own count is finer than /proc/stat; where there is none, that does.
type Host struct {
	*sysfs.Host
	Tree *cgroup.Tree
}

// Online counts the CPUs.
func (h Host) Online() (int, error) {
	set, err := h.Host.Online()
	return len(set), err
}

// Busy is the CPU time that the whole machine has used.
func (h Host) Busy() (time.Duration, error) {
	if used, err := h.Tree.Usage("/"); err == nil {
		return used, nil
	}
	return h.Host.Busy()
}

// Threads are the run times of threads; nil where they cannot be read.
func (h Host) Threads(tids []int) map[int]time.Duration {
	used, _ := h.Host.Threads(tids)
	return used
}

// Self is what this process uses.
func (h Host) Self() (time.Duration, int64) {
	self, err := h.Host.Self()
	if err != nil {
		return 0, 0
	}
	return self.CPU, self.RSS
}

// Layout reads the topology again when other CPUs are online. An agent and its dry runs may share a Layout.
type Layout struct {
	Host *sysfs.Host
	mu   sync.Mutex
	last cpu.Topology
}

// Topology is that of the CPUs that are online.
func (l *Layout) Topology() (cpu.Topology, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	online, err := l.Host.Online()
	if err != nil || len(online) > 0 && l.last.Set().Equal(online) {
		return l.last, err
	}
	l.last, err = l.Host.Topology()
	return l.last, err
}
