package observe

import (
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/policy"
)

// NodeMeter measures how many CPUs the machine uses.
type NodeMeter struct {
	samples []busySample
	CPUs    int // online
	cpusAt  time.Time
}

type busySample struct {
	at   time.Time
	busy time.Duration
}

// leastSpan is the shortest time over which a mean is taken.
const leastSpan = 150 * time.Millisecond

// Measure takes a sample and returns the mean use over about NodeSpan.
func (m *NodeMeter) Measure(now time.Time, h Host, thresholdPercent int64) policy.Node {
	if now.Sub(m.cpusAt) >= filesEvery {
		if n, err := h.Online(); err == nil {
			m.CPUs, m.cpusAt = n, now
		}
	}
	n := policy.Node{CPUs: m.CPUs, Capacity: float64(m.CPUs), ThresholdPercent: thresholdPercent}
	busy, err := h.Busy()
	if err != nil {
		m.samples = nil
		return n
	}
	m.samples = append(m.samples, busySample{now, busy})
	n.Busy, n.BusyAt = busy, now
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= policy.NodeSpan {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if elapsed := now.Sub(first.at); elapsed >= leastSpan {
		n.Known, n.Used = m.CPUs > 0, float64(busy-first.busy)/float64(elapsed)
	}
	return n
}

// threadMeter measures the CPU time of a group without a usage counter (a v1 group in the cpu hierarchy only) through
// its threads. The use of a thread that exits between two readings is missed from the first of them on.
type threadMeter struct {
	used  time.Duration
	seen  map[int]time.Duration
	since time.Time
}

// threadUsage is the CPU time of a group, measured through its threads.
func (r *Reader) threadUsage(g *Group, now time.Time) time.Duration {
	if g.threads == nil {
		g.threads = &threadMeter{}
	}
	m, current := g.threads, r.Host.Threads(tasksBelow(r.Tree, g.Path))
	for tid, runtime := range current {
		before, known := m.seen[tid]
		switch {
		case known:
			m.used += max(0, runtime-before)
		case m.seen != nil: // new since the last reading: it cannot have run longer than that
			m.used += min(runtime, now.Sub(m.since))
		}
	}
	m.seen, m.since = current, now
	return m.used
}

// tasksBelow lists the threads of a group and of the groups in it.
func tasksBelow(tree *cgroup.Tree, group string) []int {
	tids, err := tree.Tasks(group)
	if err != nil {
		return nil
	}
	children, err := tree.Children(group)
	if err != nil {
		return tids
	}
	for _, c := range children {
		tids = append(tids, tasksBelow(tree, c)...)
	}
	return tids
}
