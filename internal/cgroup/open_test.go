package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// shelf opens real files for an openFiles, so that a test sees which of them were closed.
type shelf struct {
	t *testing.T
	openFiles
	fds   map[string]int
	files map[string]string // what they are open on: a number is used again
}

func newShelf(t *testing.T, most int) *shelf {
	s := &shelf{t: t, openFiles: newOpenFiles(maxOpen), fds: map[string]int{}, files: map[string]string{}}
	s.keepOnly(most)
	t.Cleanup(func() { s.forgetAll() })
	return s
}

// take offers a file, and closes it where it is not taken, as Dir does.
func (s *shelf) take(name string, writes bool) bool {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "f")
	fd, err := unix.Open(file, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	taken := s.add(openFile{name, fd, writes})
	if !taken {
		unix.Close(fd)
		return false
	}
	s.fds[name], s.files[name] = fd, file
	return true
}

// want compares the files that are really open and the list of openFiles.
func (s *shelf) want(when string, names ...string) {
	s.t.Helper()
	var open []string
	for name, fd := range s.fds {
		if isOpen(fd, s.files[name]) {
			open = append(open, name)
		}
		if f, known := s.find(name); known && f.fd != fd {
			s.t.Errorf("%s: %s is descriptor %d, want %d", when, name, f.fd, fd)
		}
	}
	slices.Sort(open)
	slices.Sort(names)
	if !slices.Equal(open, names) || len(s.list) != len(names) || len(s.at) != len(names) {
		s.t.Errorf("%s: %q are open, want %q (%d listed)", when, open, names, len(s.list))
	}
}

func isOpen(fd int, file string) bool {
	on, err := os.Readlink(path.Join("/proc/self/fd", formatInt(int64(fd))))
	return err == nil && on == file
}

// TestOpenFilesOfHeldGroups: without KeepOpen a group has no open file. After it the group has the files of each
// reading, and the file that a refill writes, but no other that is written. After CloseFiles only the refill's stays.
func TestOpenFilesOfHeldGroups(t *testing.T) {
	s := newShelf(t, 100)
	if s.take("cpu/a/cpu.stat", false) || s.take("cpu/a/cpu.cfs_burst_us", true) {
		t.Error("a file of a group is kept open without KeepOpen")
	}
	s.keep["cpu/a"] = true
	for _, seldom := range []string{"cpu/a/cpu.cfs_quota_us", "cpu/a/cpu.max", "cpu/b/cpu.stat", "cpu/a/c/cpu.stat"} {
		if s.take(seldom, false) {
			t.Errorf("%s is kept", seldom)
		}
	}
	s.take("cpu/a/cpu.stat", false)
	s.take("cpu/a/cpuacct.usage", false)
	s.take("cpu/a/cpu.cfs_burst_us", true)
	for _, quota := range []string{"cpu/a/cpu.cfs_quota_us", "cpu/a/cpu.max"} {
		if s.take(quota, true) {
			t.Errorf("%s is kept after a write", quota)
		}
	}
	s.want("kept open", "cpu/a/cpu.stat", "cpu/a/cpuacct.usage", "cpu/a/cpu.cfs_burst_us")
	s.closeRead("cpu/a")
	s.want("released", "cpu/a/cpu.cfs_burst_us")
	if s.take("cpu/a/cpu.stat", false) {
		t.Error("a file of a released group is kept")
	}
	s.forget("cpu/a")
	s.want("forgotten")
}

// TestOpenFilesShrink: many directories that were read often for a while take no memory when they no longer are. Seen
// by what has to be allocated when they are read often again: the size of the heap depends on what else was collected.
func TestOpenFilesShrink(t *testing.T) {
	dirs := make([]string, 20_000)
	for i := range dirs {
		dirs[i] = strconv.Itoa(i)
	}
	d := newDir(t.TempDir(), 10)
	keep := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, dir := range dirs {
			d.KeepOpen(dir)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	first := keep()
	for _, dir := range dirs {
		d.CloseFiles(dir)
	}
	if again := keep(); first < 200<<10 || again < first/2 {
		t.Errorf("%d bytes for %d directories, and %d when they came back", first, len(dirs), again)
	}
}

// TestForgetClosesOne directory's files, and nothing beside or below.
func TestForgetClosesOne(t *testing.T) {
	s := newShelf(t, 100)
	for _, dir := range []string{"pod1", "pod1/c", "pod10", "pod10/c"} {
		s.keep[dir] = true
		s.take(dir+"/cpu.stat", false)
	}
	s.forget("pod1")
	s.want("one forgotten", "pod1/c/cpu.stat", "pod10/cpu.stat", "pod10/c/cpu.stat")
	if s.keep["pod1"] || !s.keep["pod1/c"] || !s.keep["pod10"] {
		t.Errorf("one forgotten: %v", s.keep)
	}
	s.forgetAll()
	s.want("all forgotten")
	if len(s.in)+len(s.at)+len(s.keep) != 0 {
		t.Errorf("all forgotten: %v, %v, %v", s.in, s.at, s.keep)
	}
}

// TestOpenFilesAreBounded: a file that a refill writes replaces one that is only read, and never the other way round.
func TestOpenFilesAreBounded(t *testing.T) {
	s := newShelf(t, 3)
	groups := []string{"a", "b", "c"}
	for _, g := range groups {
		s.keep[g] = true
		s.take(g+"/cpu.stat", false)
		s.take(g+"/cpuacct.usage", false)
		if len(s.list) > 3 {
			t.Fatalf("%d files are open, where 3 may be", len(s.list))
		}
	}
	for _, g := range groups {
		if !s.take(g+"/cpu.max.burst", true) {
			t.Errorf("the burst of %s is not kept", g)
		}
	}
	s.want("all are written", "a/cpu.max.burst", "b/cpu.max.burst", "c/cpu.max.burst")
	if s.take("a/cpu.stat", false) {
		t.Error("a file that is only read has taken the place of one that is written")
	}
	s.keepOnly(1)
	if len(s.list) != 1 {
		t.Errorf("%d files are open, where 1 may be from now on", len(s.list))
	}
	s.keepOnly(0)
	s.want("none may be")
}

// TestOpenFilesLeaveDescriptors: however many groups there are, no more files are open than the process may spare.
func TestOpenFilesLeaveDescriptors(t *testing.T) {
	d := newDir(t.TempDir(), 2)
	for most, want := range map[int]int{100: 2, 1: 1} {
		d.KeepOnly(most)
		if d.open.limit != want {
			t.Errorf("%d files may be open, want %d", d.open.limit, want)
		}
	}
}

// TestWrittenTakesThePlaceOfRead: the file that is opened for writing is read through the same descriptor.
func TestWrittenTakesThePlaceOfRead(t *testing.T) {
	s := newShelf(t, 10)
	s.keep["a"] = true
	s.chosen = false
	s.take("a/cpu.max.burst", false)
	old, file := s.fds["a/cpu.max.burst"], s.files["a/cpu.max.burst"]
	s.chosen = true
	if !s.take("a/cpu.max.burst", true) || s.take("a/cpu.max.burst", false) {
		t.Error("the file for writing is not kept, or gave way to one for reading")
	}
	s.want("written", "a/cpu.max.burst")
	if isOpen(old, file) {
		t.Error("the file for reading is still open")
	}
}
