package cgrouptest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
)

// idle is the script of a process that does nothing.
const idle = "exec sleep 600"

// spin is that of one that takes a whole CPU. A virtual machine of test/vm has a program that is cheap to emulate.
const spin = "command -v plimsoll-spin >/dev/null && exec plimsoll-spin; while :; do :; done"

// Process is a process in a test's group.
type Process struct {
	cmd  *exec.Cmd
	once sync.Once
}

// Start runs a shell script in the group. The shell is moved before it begins, is killed when the test ends, and by
// the kernel when the thread that started it dies or when a minute of CPU is used up.
func (g *Group) Start(script string) *Process {
	g.t.Helper()
	return g.start(script, nil)
}

// IdleOf is Idle as another user.
func (g *Group) IdleOf(user uint32) *Process {
	g.t.Helper()
	return g.start(idle, &syscall.Credential{Uid: user, Gid: user})
}

func (g *Group) start(script string, user *syscall.Credential) *Process {
	g.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "ulimit -t 60; read go && { "+script+"\n}")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: user}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	p := &Process{cmd: cmd}
	g.t.Cleanup(p.Stop)
	p.sleeps(g.t)
	g.Move(p.PID())
	if _, err := io.WriteString(stdin, "go\n"); err != nil {
		g.t.Fatal(err)
	}
	return p
}

// sleeps waits until the shell waits for its input. Were it moved while it still waits for a CPU, nothing would be seen
// of it in the new group until it has one.
func (p *Process) sleeps(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond / 2) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		_, state, _ := strings.Cut(string(stat), ") ")
		switch {
		case err == nil && strings.HasPrefix(state, "S"):
			return
		case err != nil || time.Now().After(end):
			t.Fatalf("the shell does not wait for its input: %q, %v", stat, err)
		}
	}
}

// Spin burns CPU in as many processes.
func (g *Group) Spin(processes int) []*Process {
	g.t.Helper()
	var list []*Process
	for range processes {
		list = append(list, g.Start(spin))
	}
	return list
}

// Idle is a process that does nothing, for groups that must not be empty.
func (g *Group) Idle() *Process {
	g.t.Helper()
	return g.Start(idle)
}

// Move puts a process into the group.
func (g *Group) Move(pid int) {
	g.t.Helper()
	for _, dir := range g.dirs() {
		if err := g.dir.WriteFile(path.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid))); err != nil {
			g.t.Fatal(err)
		}
	}
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop kills the process and waits for its end.
func (p *Process) Stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // killed: its error says so
	})
}

// Features probes the machine that the group is on.
func (g *Group) Features() cgroup.Features { return cgroup.Probe(g.dir, cgroup.ThisHost()) }

// Volatile is a folder in memory for what an agent writes, as /run is: where a disk is busy, to write a file may take
// seconds, and an agent writes its journal first. It is "", the usual one, where there is none.
func Volatile() string {
	const folder = "/dev/shm"
	var s unix.Statfs_t
	if unix.Statfs(folder, &s) == nil && s.Type == unix.TMPFS_MAGIC {
		return folder
	}
	return ""
}

// Waits says where in the kernel each thread of a process waits that does not do what a test waits for.
func Waits(pid int) string {
	var b strings.Builder
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range threads {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // one that has ended waits for nothing
		stack, _ := os.ReadFile(filepath.Join(dir, "stack"))
		_, state, _ := strings.Cut(string(stat), ") ")
		frames := strings.Split(strings.TrimSpace(string(stack)), "\n")
		fmt.Fprintf(&b, "thread %s %.1s: %s\n", filepath.Base(dir), state,
			strings.Join(frames[:min(len(frames), 4)], ", "))
	}
	return b.String()
}
