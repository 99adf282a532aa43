package cgroupfs

import (
	"sync"
	"time"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	Appeared   EventKind = "appeared"   // a group is looked after from now on; also one made anew under the same path
	Vanished   EventKind = "vanished"   // a group is gone, or no longer looked after
	Written    EventKind = "written"    // a limit file was written, whoever did it and whatever value
	Attached   EventKind = "attached"   // a task was moved into the group, or (v2) it became populated or empty
	Redeclared EventKind = "redeclared" // the declared limit is another one now
	Lost       EventKind = "lost"       // events were lost: anything may have happened
)

// Event is something that happened to a group that is looked after. Equal ones are counted together until they are
// taken. The count is a lower bound: the kernel merges equal events that nobody has read yet (fs/notify/inotify,
// inotify_merge), so a foreign write within microseconds of one's own can hide in it.
type Event struct {
	Kind  EventKind
	Path  string // of the group; "" for Lost
	File  string // for Written: cpu.max, cpu.cfs_quota_us ...
	Count int
	At    time.Time // when the last of them was read
}

// queue keeps events until they are taken, and wakes the one who takes them.
type queue struct {
	wake chan struct{}

	mu   sync.Mutex
	list []Event
	at   map[Event]int // place in list, by kind, path and file
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), at: map[Event]int{}}
}

// put adds an event. One of a burst waits for who comes next: it is no limit, so nobody waits for an answer, and the
// agent itself writes it over and over to end throttles.
func (q *queue) put(kind EventKind, path, file string, now time.Time) {
	key := Event{Kind: kind, Path: path, File: file}
	q.mu.Lock()
	i, ok := q.at[key]
	if !ok {
		i = len(q.list)
		q.at[key] = i
		q.list = append(q.list, key)
	}
	q.list[i].Count++
	q.list[i].At = now
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
	list := q.list
	q.list = nil
	clear(q.at)
	return list
}

// Touched takes the events, as the paths of the groups that they say something about, each once. After a loss these
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

// paths lists the groups that are looked after, sorted.
func (s *Scanner) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, id := range sortedIDs(s.chosen) {
		list = append(list, id.Path)
	}
	return list
}

// limitFile says whether a file of a group holds a part of its limit.
func limitFile(name string) bool {
	switch name {
	case "cpu.max", "cpu.max.burst", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us":
		return true
	}
	return false
}

func burstFile(name string) bool { return name == "cpu.max.burst" || name == "cpu.cfs_burst_us" }

// taskFile says whether a write to a file of a group, or the kernel's notice on it, tells of tasks that come.
// cgroup.events tells of those that are born into the group by clone3(CLONE_INTO_CGROUP).
func taskFile(name string) bool {
	switch name {
	case "cgroup.procs", "cgroup.threads", "tasks", "cgroup.events":
		return true
	}
	return false
}
