package cgroupfs

import (
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"sort"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
)

// memory is a v1 tree in memory, of which the cpu hierarchy is the root. Each group ever made has an inode of its own.
type memory struct {
	groups map[string]uint64 // "." is the root
	files  map[string]string
	owners map[string]uint32 // of groups that are not root's
	next   uint64
	fault  error  // of the listings
	place  string // of the one that fails; "" fails all
	listed int    // listings so far
}

// Links counts what is in a group, as the kernel does.
func (m *memory) Links(name string) (inode uint64, dirs int, err error) {
	if m.fault != nil && (m.place == "" || m.place == name) {
		inode, err = m.Inode(name)
		return inode, -1, err
	}
	inode, err = m.Inode(name)
	for g := range m.groups {
		if g != "." && path.Dir(g) == name {
			dirs++
		}
	}
	return inode, dirs, err
}

func (m *memory) Owner(name string) (uint32, error) { return m.owners[name], nil }

func newMemory(groups ...string) *memory {
	m := &memory{groups: map[string]uint64{".": 1}, files: map[string]string{}, next: 1}
	m.mkdir(groups...)
	return m
}

// mkdir makes groups with all that are above them.
func (m *memory) mkdir(groups ...string) {
	for _, g := range groups {
		name := strings.TrimPrefix(g, "/")
		if dir := path.Dir(name); dir != "." && m.groups[dir] == 0 {
			m.mkdir(dir)
		}
		if m.groups[name] == 0 {
			m.next++
			m.groups[name] = m.next
			m.limit(name, -1, 100_000)
		}
	}
}

func (m *memory) rmdir(group string) {
	name := strings.TrimPrefix(group, "/")
	for g := range m.groups {
		if g == name || strings.HasPrefix(g, name+"/") {
			delete(m.groups, g)
		}
	}
}

func (m *memory) limit(group string, quota, period int64) {
	name := strings.TrimPrefix(group, "/")
	m.files[name+"/cpu.cfs_quota_us"] = fmt.Sprintf("%d\n", quota)
	m.files[name+"/cpu.cfs_period_us"] = fmt.Sprintf("%d\n", period)
}

func (m *memory) ReadFile(name string) ([]byte, error) {
	text, ok := m.files[name]
	if !ok || m.groups[path.Dir(name)] == 0 {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (m *memory) WriteFile(name string, data []byte) error { return fs.ErrPermission }

func (m *memory) Dirs(name string) ([]string, error) {
	if m.fault != nil && (m.place == "" || m.place == name) {
		return nil, m.fault
	}
	m.listed++
	if m.groups[name] == 0 {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var names []string
	for g := range m.groups {
		if g != "." && path.Dir(g) == name {
			names = append(names, path.Base(g))
		}
	}
	sort.Strings(names)
	return names, nil
}

func (m *memory) Inode(name string) (uint64, error) {
	if name == "cpu.shares" {
		return 999, nil
	}
	if ino := m.groups[name]; ino != 0 {
		return ino, nil
	}
	return 0, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// clock is a time that stands until it is moved.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Unix(1_000_000, 0)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func include(t *testing.T, globs ...string) *config.File {
	t.Helper()
	f, err := config.FromFlags("auto", globs)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// scanner makes a Scanner of a tree in memory that watches nothing.
func scanner(t *testing.T, m *memory, opt Options) *Scanner {
	t.Helper()
	tree, err := cgroup.Detect(m)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(tree, "", opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outline prints the managed groups: "POD: CONTAINER CONTAINER" a line, the pod empty where there is none.
func outline(t *testing.T, s *Scanner) string {
	t.Helper()
	pods, err := s.Pods()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range pods {
		b.WriteString(p.Path + ":")
		for _, c := range p.Containers {
			b.WriteString(" " + c.Path)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func logTo(b *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
