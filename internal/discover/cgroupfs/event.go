package cgroupfs

import "sync"

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	Appeared   EventKind = "appeared"   // a group is managed from now on; also a new group under the same path
	Vanished   EventKind = "vanished"   // a group is gone, or no longer managed
	Written    EventKind = "written"    // a limit file was written, by any process and with any value
	Attached   EventKind = "attached"   // a task was moved into the group, or (v2) it became populated or empty
	Redeclared EventKind = "redeclared" // the declared limit is another one now
	Lost       EventKind = "lost"       // events were lost: anything may have happened
)

// Event is a change of a managed group. Equal events are one until Events returns them.
type Event struct {
	Kind EventKind
	Path string // of the group; "" for Lost
	File string // for Written: cpu.max, cpu.cfs_quota_us ...
}

// queue keeps events until they are taken, and wakes the reader.
type queue struct {
	wake chan struct{}

	mu   sync.Mutex
	list []Event
	has  map[Event]bool // what is in list
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), has: map[Event]bool{}}
}

// put adds an event. The event of a burst does not wake the reader: a burst is no limit, so the answer is not urgent,
// and the agent itself writes bursts often to end throttles.
func (q *queue) put(kind EventKind, path, file string) {
	e := Event{kind, path, file}
	q.mu.Lock()
	if !q.has[e] {
		q.has[e] = true
		q.list = append(q.list, e)
	}
	q.mu.Unlock()
	if burstFile(file) {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take empties the queue. The order is that of the first of each kind.
func (q *queue) take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return nil
	}
	list := q.list
	q.list, q.has = nil, map[Event]bool{} // thousands at the start, and seldom so many again
	return list
}

// Touched takes the events and returns the paths of their groups, each once. After a loss these
// are all groups.
func (s *Scanner) Touched() []string {
	events := s.Events()
	if len(events) == 0 {
		return nil
	}
	var paths []string
	seen := map[string]bool{"": true}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	for _, e := range events {
		add(e.Path)
		if e.Kind == Lost {
			for _, p := range s.paths() {
				add(p)
			}
		}
	}
	return paths
}

// paths lists the groups of the last snapshot.
func (s *Scanner) paths() []string {
	var list []string
	for _, p := range s.latest.Load().pods {
		for _, id := range p.IDs() {
			list = append(list, id.Path)
		}
	}
	return list
}

// limitFile says whether a file of a group is a part of its limit.
func limitFile(name string) bool {
	switch name {
	case "cpu.max", "cpu.max.burst", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us":
		return true
	}
	return false
}

func burstFile(name string) bool { return name == "cpu.max.burst" || name == "cpu.cfs_burst_us" }

// taskFile says whether an event on a file of a group means that tasks moved into the group.
// cgroup.events changes when clone3(CLONE_INTO_CGROUP) starts a task in the empty group.
func taskFile(name string) bool {
	switch name {
	case "cgroup.procs", "cgroup.threads", "tasks", "cgroup.events":
		return true
	}
	return false
}
