package cgroupfs

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	godbus "github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
)

// taken takes the events as "KIND PATH FILE" lines.
func taken(s *Scanner) []string {
	var lines []string
	for _, e := range s.Events() {
		lines = append(lines, strings.TrimSpace(string(e.Kind)+" "+e.Path+" "+e.File))
	}
	return lines
}

func expectEvents(t *testing.T, s *Scanner, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, taken(s)); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

// TestUnnamed: the groups that the configuration leaves out are listed, for a hint at a mistyped path.
func TestUnnamed(t *testing.T) {
	s := scanner(t, newMemory("/lab/a", "/lab/b", "/other"), Options{Resolver: include(t, "/lab/a")})
	if diff := cmp.Diff([]string{"/lab", "/lab/a", "/lab/b", "/other"}, s.Groups()); diff != "" {
		t.Errorf("groups: %s", diff)
	}
	if diff := cmp.Diff([]string{"/lab", "/lab/b", "/other"}, s.Unnamed()); diff != "" {
		t.Errorf("unnamed: %s", diff)
	}
}

func TestRescanFindsWhatChanged(t *testing.T) {
	m := newMemory("/lab/a", "/lab/b")
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*")})
	expectEvents(t, s, "appeared /lab/a", "appeared /lab/b")
	m.mkdir("/lab/c")
	m.rmdir("/lab/a")
	m.rmdir("/lab/b")
	m.mkdir("/lab/b") // another one
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, s, "vanished /lab/a", "vanished /lab/b", "appeared /lab/b", "appeared /lab/c")
	pods, err := s.Pods()
	if err != nil || len(pods) != 2 || pods[0].Containers[0].Inode != m.groups["lab/b"] {
		t.Errorf("pods %+v, %v", pods, err)
	}
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Pods(); &again[0] != &pods[0] {
		t.Error("another snapshot, though nothing is new")
	}
	expectEvents(t, s)
	if rescans, _ := s.Counts(); len(s.nodes) != 4 || rescans != 3 || !s.blind() {
		t.Errorf("%d groups, %d rescans, blind %v", len(s.nodes), rescans, s.blind())
	}
}

// TestRescanListsOnlyWhatChanged: a group whose children are the same as before is not listed.
func TestRescanListsOnlyWhatChanged(t *testing.T) {
	m := newMemory("/lab/a/x", "/lab/b", "/other/c")
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*", "/lab/*/*", "/other/*")})
	for _, step := range []struct {
		name   string
		change func()
		listed int // that has changed, and what is new in it
		events []string
	}{
		{"nothing", func() {}, 0, nil},
		{"made", func() { m.mkdir("/lab/b/y") }, 2, []string{"appeared /lab/b/y"}},
		{"removed", func() { m.rmdir("/lab/a/x") }, 1, []string{"vanished /lab/a/x"}},
		{"nothing again", func() {}, 0, nil},
		{"one in the place of another", func() { m.rmdir("/other/c"); m.mkdir("/other/d") }, 2,
			[]string{"vanished /other/c", "appeared /other/d"}},
		{"made anew, of the same name", func() { m.rmdir("/lab/b/y"); m.mkdir("/lab/b/y") }, 2,
			[]string{"vanished /lab/b/y", "appeared /lab/b/y"}},
	} {
		taken(s)
		step.change()
		m.listed = 0
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
		if m.listed != step.listed {
			t.Errorf("%s: %d groups were listed, want %d", step.name, m.listed, step.listed)
		}
		var events []string
		for _, line := range taken(s) {
			if !strings.HasPrefix(line, "lost") {
				events = append(events, line)
			}
		}
		if diff := cmp.Diff(step.events, events); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestBlindMarksAll: where inotify does not watch all groups, all count as written to once a minute.
func TestBlindMarksAll(t *testing.T) {
	clock := newClock()
	s := scanner(t, newMemory("/lab/a", "/lab/b"), Options{Resolver: include(t, "/lab/*"), Now: clock.Now})
	s.Touched()
	for i, want := range []int{0, 2, 0, 2} {
		clock.pass(30 * time.Second)
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
		if touched := s.Touched(); len(touched) != want {
			t.Errorf("after %d s: %q", 30*(i+1), touched)
		}
	}
	s.watcher = &scarce{free: 10, watched: map[string]bool{}}
	for range 4 {
		clock.pass(30 * time.Second)
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
		if touched := s.Touched(); len(touched) != 0 {
			t.Errorf("all is watched, and marked: %q", touched)
		}
	}
}

// TestOthersComeAndGo: unmanaged groups do not renew the snapshot.
func TestOthersComeAndGo(t *testing.T) {
	m := newMemory("/lab/a", "/other")
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*")})
	s.base = "/base"
	before := s.latest.Load()
	m.mkdir("/other/x")
	s.notice(fsnotify.Event{Name: "/base/other/x", Op: fsnotify.Create})
	m.rmdir("/other/x")
	s.notice(fsnotify.Event{Name: "/base/other/x", Op: fsnotify.Remove})
	if s.latest.Load() != before {
		t.Error("the snapshot was renewed for an unmanaged group")
	}
	if s.nodes["/other/x"] != nil {
		t.Error("a group that is gone is known")
	}
	taken(s)
	m.mkdir("/lab/b")
	s.notice(fsnotify.Event{Name: "/base/lab/b", Op: fsnotify.Create})
	m.rmdir("/lab/a")
	s.notice(fsnotify.Event{Name: "/base/lab/a", Op: fsnotify.Remove})
	expectEvents(t, s, "appeared /lab/b", "vanished /lab/a")
}

func TestPodsStandWhenTheTreeCannotBeRead(t *testing.T) {
	m := newMemory("/docker/" + strings.Repeat("a", 64))
	s := scanner(t, m, Options{})
	m.fault = fs.ErrPermission
	if err := s.Rescan(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Rescan: %v", err)
	}
	pods, err := s.Pods()
	if len(pods) != 1 || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	m.fault = nil
	if err := s.Rescan(); err != nil {
		t.Error(err)
	}
	if _, err := s.Pods(); err != nil {
		t.Error(err)
	}
	m.fault, m.place = fs.ErrPermission, "docker" // not the root
	if err := s.Rescan(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Rescan: %v", err)
	}
	tree, err := cgroup.Detect(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(tree, "", Options{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("New: %v", err)
	}
}

func TestConfigure(t *testing.T) {
	s := scanner(t, newMemory("/lab/a", "/other/a"), Options{Resolver: include(t, "/lab/*")})
	s.Events()
	s.Configure(include(t, "/other/*"))
	expectEvents(t, s, "vanished /lab/a", "appeared /other/a")
	if got := outline(t, s); got != ": /other/a\n" {
		t.Error(got)
	}
}

func TestTouched(t *testing.T) {
	s := scanner(t, newMemory("/lab/a", "/lab/b", "/lab/c"), Options{Resolver: include(t, "/lab/*")})
	s.Touched()
	s.queue.put(Written, "/lab/b", "cpu.max")
	s.queue.put(Written, "/lab/a", "cpu.max")
	s.queue.put(Attached, "/lab/b", "cgroup.procs")
	s.queue.put(Written, "/lab/a", "cpu.cfs_burst_us")
	s.queue.put(Written, "/lab/a", "cpu.cfs_quota_us")
	want := []string{"/lab/b", "/lab/a"}
	if diff := cmp.Diff(want, s.Touched()); diff != "" {
		t.Error(diff)
	}
	s.fault(fsnotify.ErrEventOverflow)
	want = []string{"/lab/a", "/lab/b", "/lab/c"}
	if diff := cmp.Diff(want, s.Touched()); diff != "" {
		t.Error(diff)
	}
	if rescans, lost := s.Counts(); rescans != 2 || lost != 1 {
		t.Errorf("%d rescans, %d lost", rescans, lost)
	}
}

func TestEqualEventsAreOne(t *testing.T) {
	q := newQueue()
	q.put(Written, "/a", "cpu.max")
	q.put(Attached, "/a", "tasks")
	q.put(Written, "/a", "cpu.max")
	select {
	case <-q.wake:
	default:
		t.Error("the reader was not woken")
	}
	want := []Event{{Written, "/a", "cpu.max"}, {Attached, "/a", "tasks"}}
	if diff := cmp.Diff(want, q.take()); diff != "" {
		t.Error(diff)
	}
	q.put(Written, "/a", "cpu.max.burst")
	select {
	case <-q.wake:
		t.Error("a burst has woken somebody")
	default:
	}
	q.take()
	q.put(Written, "/a", "cpu.max")
	if list := q.take(); len(list) != 1 {
		t.Errorf("after they were taken: %+v", list)
	}
}

// scarce is a watcher with a limited number of watches.
type scarce struct {
	free    int
	watched map[string]bool
}

func (w *scarce) Add(dir string) error {
	if w.free == 0 {
		return unix.ENOSPC
	}
	w.free--
	w.watched[dir] = true
	return nil
}

func (w *scarce) Remove(dir string) error {
	w.free++
	delete(w.watched, dir)
	return nil
}

func (w *scarce) Close() error { return nil }

func TestOutOfWatches(t *testing.T) {
	clock := newClock()
	m := newMemory("/lab/a", "/lab/b")
	var log strings.Builder
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*"), Now: clock.Now, Log: logTo(&log)})
	w := &scarce{free: 3, watched: map[string]bool{}}
	s.watcher = w
	rescan := func() {
		t.Helper()
		if err := s.Rescan(); err != nil {
			t.Fatal(err)
		}
	}
	rescan()
	rescan()
	if len(w.watched) != 3 || !s.blind() {
		t.Errorf("%v, blind %v", w.watched, s.blind())
	}
	if n := strings.Count(log.String(), "max_user_watches"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	clock.pass(999 * time.Millisecond)
	if s.walkIn() <= 0 {
		t.Error("a walk is due after less than a second")
	}
	clock.pass(time.Millisecond)
	if s.walkIn() > 0 {
		t.Error("no walk is due after a second without sight")
	}

	m.rmdir("/lab/b") // unwatched
	w.free = 1
	m.mkdir("/lab/c")
	rescan()
	if len(w.watched) != 4 || s.blind() {
		t.Errorf("with watches again: %v, blind %v", w.watched, s.blind())
	}
	clock.pass(9 * time.Second)
	if s.walkIn() <= 0 {
		t.Error("a walk is due after 9 s although all is watched")
	}
	m.rmdir("/lab/a")
	rescan()
	if len(w.watched) != 3 || w.watched["lab/a"] {
		t.Errorf("after a group is gone: %v", w.watched)
	}
}

func TestStrayEvents(t *testing.T) {
	m := newMemory("/lab/a")
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*")})
	s.base = "/cg/cpu"
	s.Events()
	for _, name := range []string{"", "/", "/cg", "/cg/cpu", "/elsewhere/lab/a/cpu.cfs_quota_us",
		"/cg/cpu/gone/cpu.cfs_quota_us",
		"/cg/cpu/lab/cpu.cfs_quota_us", "/cg/cpu/lab/a/cpu.stat"} {
		s.notice(fsnotify.Event{Name: name, Op: fsnotify.Write})
	}
	expectEvents(t, s)
	s.notice(fsnotify.Event{Name: "/cg/cpu/lab/a/cpu.cfs_quota_us", Op: fsnotify.Write})
	s.notice(fsnotify.Event{Name: "/cg/cpu/lab/a/tasks", Op: fsnotify.Write})
	expectEvents(t, s, "written /lab/a cpu.cfs_quota_us", "attached /lab/a tasks")
	m.mkdir("/lab/b")
	s.notice(fsnotify.Event{Name: "/cg/cpu/lab/b", Op: fsnotify.Create})
	expectEvents(t, s, "appeared /lab/b")
	m.rmdir("/lab/b")
	s.notice(fsnotify.Event{Name: "/cg/cpu/lab/b", Op: fsnotify.Remove})
	expectEvents(t, s, "vanished /lab/b")
	if rescans, _ := s.Counts(); rescans != 1 {
		t.Errorf("helped by a rescan: %d", rescans)
	}
}

// TestNothingWaitsForASource: while systemd does not answer, the snapshot,
// the events and the counters are there at once.
func TestNothingWaitsForASource(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	first := true
	dial := func(context.Context) (*godbus.Conn, error) {
		if first {
			first = false
			return nil, godbus.Error{Name: "org.freedesktop.systemd1.NoSuchUnit"}
		}
		close(asked)
		<-answer
		return nil, errors.New("too late")
	}
	now := time.Unix(1000, 0)
	const unit = "/system.slice/a.service"
	s := scanner(t, newMemory(unit), Options{Resolver: include(t, unit), Now: func() time.Time { return now },
		Sources: Sources{Systemd: &Systemd{dial: dial, now: func() time.Time { return now }}}})
	s.Events()
	s.queue.put(Lost, "", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Rescan()
	}()
	<-asked
	var touched []string
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = s.Pods()
		touched = s.Touched()
		s.Counts()
	}()
	select {
	case <-answered:
	case <-done: // which gives up after half a second
		t.Error("they waited until the question was given up")
	}
	close(answer)
	<-done
	<-answered
	if diff := cmp.Diff([]string{unit}, touched); diff != "" {
		t.Error(diff)
	}
}
