package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/parallelism"
)

// fakeProc is a directory like /proc with the processes that a test writes.
type fakeProc struct {
	t   *testing.T
	dir string
}

// process writes a process whose executable is the file at exe; files are further ones by name.
func (f fakeProc) process(pid int, exe string, files map[string]string) {
	f.t.Helper()
	dir := filepath.Join(f.dir, strconv.Itoa(pid))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.t.Fatal(err)
	}
	all := map[string]string{
		"stat":      fmt.Sprintf("%d (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 100 0 0", pid),
		"status":    "Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t0-2,5\n",
		"mountinfo": string(mounts), "cmdline": "x\x00", "environ": "", "maps": "",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := os.Symlink(exe, filepath.Join(dir, "exe")); err != nil {
		f.t.Fatal(err)
	}
}

// read is what a Reader says of one process.
func (f fakeProc) read(pid int) parallelism.Process {
	f.t.Helper()
	list, unread := New(f.dir).Read(context.Background(), []Group{{PIDs: []int{pid}, Limit: 0.5}})
	if len(list) != 1 || unread != 0 {
		f.t.Fatalf("%+v, %d not read", list, unread)
	}
	return list[0]
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is read of each runtime.
func TestRead(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f.process(1, self, map[string]string{"environ": "SECRET=x\x00GOMAXPROCS=3\x00GOMAXPROCS=9\x00broken\x00"})
	p := f.read(1)
	build, _ := debug.ReadBuildInfo()
	if p.Runtime != parallelism.Go || p.Go.Version != runtime.Version() || p.Go.Settings != (len(build.Settings) > 0) ||
		p.Name != "a) b" || p.Used != 3*time.Second ||
		p.Threads != 5 || p.CPUs != 4 || p.Limit != 0.5 || p.Args != nil {
		t.Errorf("Go: %+v", p)
	}
	if len(p.Env) != 1 || p.Env["GOMAXPROCS"] != "3" {
		t.Errorf("the environment: %v", p.Env)
	}
	f.process(2, file(t, "java", "#!"), map[string]string{"cmdline": "java\x00-jar\x00a b.jar\x00"})
	if p := f.read(2); p.Runtime != parallelism.JVM || p.Embedded || strings.Join(p.Args, "|") != "java|-jar|a b.jar" ||
		p.Env == nil {
		t.Errorf("JVM: %+v", p)
	}
	f.process(3, "/usr/bin/java (deleted)", nil)
	if p := f.read(3); p.Runtime != parallelism.JVM {
		t.Errorf("a JVM that was replaced: %+v", p)
	}
	f.process(4, file(t, "jsvc", "#!"),
		map[string]string{"maps": "7f00-7f10 r-xp 0 0:1 2 /usr/lib/jvm/lib/server/libjvm.so\n"})
	if p := f.read(4); p.Runtime != parallelism.JVM || !p.Embedded {
		t.Errorf("a JVM in another program: %+v", p)
	}
	f.process(5, file(t, "node", "#!"), map[string]string{"task/5/comm": "node\n", "task/6/comm": "WorkerThread\n",
		"task/7/comm": "libuv-worker\n"})
	if p := f.read(5); p.Runtime != parallelism.Node || p.Workers != -1 {
		t.Errorf("Node whose files cannot be listed: %+v", p)
	}
	fds := filepath.Join(f.dir, "5", "fd")
	if err := os.Mkdir(fds, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 1, 1, 1, 2} { // named, and by loops
		to := "anon_inode:[eventpoll]"
		if i == 0 {
			to = "socket:[1]"
		}
		if err := os.Symlink(to, filepath.Join(fds, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		if p := f.read(5); p.Runtime != parallelism.Node || p.Workers != want {
			t.Errorf("Node with %d loops: %+v", i, p)
		}
	}
	f.process(6, "/bin/sh", map[string]string{"maps": "7f00-7f10 r-xp 0 0:1 2 /usr/lib/libc.so.6\n"})
	if p := f.read(6); p.Runtime != "" || p.Env != nil {
		t.Errorf("a shell: %+v", p)
	}
}

// What cannot be read is not known, and not empty.
func TestUnread(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	java := file(t, "java", "#!")
	long := strings.Repeat("x", mostText+1)
	f.process(1, java, map[string]string{"environ": long, "cmdline": long, "status": "Cpus_allowed_list:\tnone\n"})
	if p := f.read(1); p.Env != nil || p.Args != nil || p.CPUs != 0 {
		t.Errorf("too long: %d, %d, %d", len(p.Env), len(p.Args), p.CPUs)
	}
	f.process(2, java, map[string]string{"environ": "JAVA_TOOL_OPTIONS=" + strings.Repeat("x", mostValue+1),
		"cmdline": ""})
	if p := f.read(2); p.Env != nil || p.Args != nil {
		t.Errorf("a long value: %d, %d", len(p.Env), len(p.Args))
	}
	f.process(3, java, nil)
	for _, name := range []string{"environ", "cmdline"} {
		if err := os.Remove(filepath.Join(f.dir, "3", name)); err != nil {
			t.Fatal(err)
		}
	}
	if p := f.read(3); p.Env != nil || p.Args != nil || p.Runtime != parallelism.JVM {
		t.Errorf("not permitted: %+v", p)
	}
	f.process(4, java, map[string]string{"stat": "4 (java) Z 1"})
	f.process(5, java, map[string]string{"stat": "5 (java) Z 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 1 0 100 0 0"})
	list, unread := New(f.dir).Read(context.Background(), []Group{{PIDs: []int{4, 5, 6, 0}}})
	if len(list) != 0 || unread != 1 {
		t.Errorf("ended, or in another namespace: %+v, %d", list, unread)
	}
}

// A container with many processes is not read in whole, and one whose time is up neither. Both are counted.
func TestBounds(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	var pids []int
	for i := range mostProcesses + 5 {
		f.process(i+1, "/bin/sh", nil)
		pids = append(pids, i+1)
	}
	groups := []Group{{PIDs: pids[:10]}, {PIDs: pids[10:], Nested: true, Limit: math.Inf(1)}}
	list, unread := New(f.dir).Read(context.Background(), groups)
	if len(list) != mostProcesses || unread != 5 || list[9].Nested || !list[10].Nested {
		t.Errorf("%d read, %d not", len(list), unread)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if list, unread = New(f.dir).Read(ctx, groups); len(list)+unread != len(pids) || unread < 5 {
		t.Errorf("after its time: %d read, %d not", len(list), unread)
	}
}

// A read that never ends is left behind when the time is up.
func TestReadThatHangs(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	f.process(1, "/bin/sh", nil)
	f.process(2, "/bin/sh", nil)
	fifo := filepath.Join(f.dir, "2", "stat")
	if err := errors.Join(os.Remove(fifo), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			w, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
			if err == nil { // somebody reads
				t.Cleanup(func() { w.Close() }) // and ends then
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	list, unread := New(f.dir).Read(ctx, []Group{{PIDs: []int{1, 2}}})
	if len(list) != 1 || unread != 1 {
		t.Errorf("%+v, %d not read", list, unread)
	}
}

// Executables that are none, or not to be opened.
func TestHostilePrograms(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	dir := t.TempDir()
	fifo, sparse, liar := filepath.Join(dir, "fifo"), filepath.Join(dir, "sparse"), filepath.Join(dir, "liar")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(sparse, []byte("\x7fELF"), 0o755), os.Truncate(sparse, 1<<40),
		os.WriteFile(liar, hugeSegment(), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(liar, 1<<40); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	for i, exe := range []string{fifo, sparse, liar, dir, "/dev/zero", filepath.Join(dir, "none"), file(t, "empty", ""),
		file(t, "pe", "MZ"+strings.Repeat("\xff", 4096))} {
		f.process(i+1, exe, nil)
		begin := time.Now()
		if p := f.read(i + 1); p.Runtime != "" {
			t.Errorf("%s: %+v", exe, p)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("%s: it took %v", exe, d)
		}
	}
	f.process(99, self, map[string]string{"mountinfo": "1 1 0:1 / / rw - ext4 x rw\n"})
	if p := f.read(99); p.Runtime != "" {
		t.Errorf("on a mount that is not the process's: %+v", p)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	f.process(98, self, map[string]string{"mountinfo": regexp.MustCompile(" - [^ ]+ ").ReplaceAllString(string(mounts),
		" - fuse.evil ")})
	if p := f.read(98); p.Runtime != "" {
		t.Errorf("on a file system in user space: %+v", p)
	}
	f.process(97, self, nil)
	if p := f.read(97); p.Runtime != parallelism.Go {
		t.Errorf("the same program on its own file system: %+v", p)
	}
}

// hugeSegment is an ELF file whose one segment, of data, says that it has 1 TiB.
func hugeSegment() []byte {
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	le := func(n int, v uint64) {
		for i := range n {
			b.WriteByte(byte(v >> (8 * i)))
		}
	}
	le(2, 2)        // executable
	le(2, 62)       // x86-64
	le(4, 1)        //
	le(8, 0)        // entry
	le(8, 64)       // program headers
	le(8, 0)        // section headers
	le(4, 0)        //
	le(2, 64)       //
	le(2, 56)       // of a program header
	le(2, 1)        //
	le(2, 64)       //
	le(2, 0)        //
	le(2, 0)        //
	le(4, 1)        // PT_LOAD
	le(4, 6)        // read, write
	le(8, 0)        // offset
	le(8, 0x400000) //
	le(8, 0x400000) //
	le(8, 1<<40)    // in the file
	le(8, 1<<40)    // in memory
	le(8, 0x1000)   //
	return b.Bytes()
}

// counter counts what is read.
type counter struct {
	io.ReaderAt
	bytes int
}

func (c *counter) ReadAt(to []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(to, at)
	c.bytes += n
	return n, err
}

// The reading of an executable ends with its budget, whatever the file says of its size.
func TestBudget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "liar")
	if err := errors.Join(os.WriteFile(path, hugeSegment(), 0o755), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &counter{ReaderAt: f}
	if _, err := readBuild(&budget{file: c, left: mostBinary}); !errors.Is(err, errBudget) || c.bytes > mostBinary ||
		c.bytes < mostBinary/2 {
		t.Errorf("%v after %d bytes", err, c.bytes)
	}
}

func TestTypeOfMount(t *testing.T) {
	const mounts = "22 1 0:21 / /a\\040b rw,relatime shared:1 master:2 - fuse.sshfs x rw\n23 1 8:1 / / rw - ext4 " +
		"/dev/sda rw\n24 1 8:1 / / rw -\n25\n"
	for id, want := range map[string]string{"22": "fuse.sshfs", "23": "ext4"} {
		if got, err := typeOfMount([]byte(mounts), id); got != want || err != nil {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
	for _, id := range []string{"24", "25", "26", "", "x", "2"} {
		if got, err := typeOfMount([]byte(mounts), id); err == nil {
			t.Errorf("%q: %q", id, got)
		}
	}
	for kind, want := range map[string]bool{"fuse.sshfs": true, "fuse": true, "nfs4": true, "ext4": false,
		"overlay": false, "tmpfs": false} {
		if elsewhere(kind) != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}

func TestParseStatRefuses(t *testing.T) {
	for _, text := range []string{"", "1 a S", "1 )a( S 1", "1 (a)",
		"1 (a) S 1 1 1 0 -1 4194560 1 0 0 0 x 50 0 0 20 0 5 0", "1 (a) S 1 1 1 0 -1 4194560 1 0 0 0 -1 50 0 0 20 0 5 0",
		"1 (a) S 1 1 1 0 -1 4194560 1 0 0 0 1 50 0 0 20 0 -5 0"} {
		if s, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 5 0 100 0 0"), "1")
	f.Add([]byte("1 (a) S 1 1 1 0 -1 4194560 1 0 0 0 9223372036854775807 9223372036854775807 0 0 20 0 5 0"), "")
	f.Add([]byte("22 1 0:21 / / rw shared:1 - fuse.sshfs x rw\n"), "22")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		if s, err := parseStat(data); err == nil && (s.used < 0 || s.threads < 0) {
			t.Errorf("%+v", s)
		}
		if kind, err := typeOfMount(data, id); err == nil && kind == "" {
			t.Error("a type without a name")
		}
	})
}

// Hostile executables end within the budget.
func FuzzBuild(f *testing.F) {
	f.Add(hugeSegment())
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &counter{ReaderAt: bytes.NewReader(data)}
		if b, err := readBuild(&budget{file: c, left: 1 << 20}); err == nil && b.Version == "" {
			t.Error("a program without a version")
		}
		if c.bytes > 1<<20 {
			t.Errorf("%d bytes", c.bytes)
		}
	})
}
