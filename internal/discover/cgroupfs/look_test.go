package cgroupfs

import (
	"testing"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

// TestEventsListOnlyWhatIsNew: when a group comes or goes, the groups beside it are not listed.
func TestEventsListOnlyWhatIsNew(t *testing.T) {
	m := newMemory("/lab/a", "/lab/b/c")
	w := &scarce{free: 100, watched: map[string]bool{}}
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*", "/lab/*/*")})
	s.watcher, s.base = w, "/base"
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	created, removed := fsnotify.Create, fsnotify.Remove
	for _, step := range []struct {
		name   string
		change func()
		event  fsnotify.Op
		of     string
		listed int
		events []string
	}{
		{"made", func() { m.mkdir("/lab/x/y") }, created, "/lab/x", 2,
			[]string{"appeared /lab/x", "appeared /lab/x/y"}},
		{"told of twice", func() {}, created, "/lab/x", 0, nil},
		{"made anew, of the same name", func() { m.rmdir("/lab/a"); m.mkdir("/lab/a") }, created, "/lab/a", 1,
			[]string{"vanished /lab/a", "appeared /lab/a"}},
		{"removed", func() { m.rmdir("/lab/x") }, removed, "/lab/x", 0,
			[]string{"vanished /lab/x", "vanished /lab/x/y"}},
		{"told of too late", func() {}, removed, "/lab/a", 0, nil},
		{"gone already", func() {}, created, "/lab/x", 0, nil},
	} {
		taken(s)
		step.change()
		m.listed = 0
		s.notice(fsnotify.Event{Name: "/base" + step.of, Op: step.event})
		if m.listed != step.listed {
			t.Errorf("%s: %d groups were listed, want %d", step.name, m.listed, step.listed)
		}
		if diff := cmp.Diff(step.events, taken(s)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	if !w.watched["/base/lab/a"] || w.watched["/base/lab/x"] {
		t.Errorf("watched: %v", w.watched)
	}
}
