package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/lock"
	"plimsoll/internal/plan"
	"plimsoll/internal/task"
	"plimsoll/internal/workload"
)

// What a process of this binary becomes: a program with these capabilities and no others, one in the PID namespace that
// it was made in, or an agent that hangs, with this lock directory, root and state directory.
const (
	capsVar  = "PLIMSOLL_TEST_CAPS"
	apartVar = "PLIMSOLL_TEST_APART"
	hangVar  = "PLIMSOLL_TEST_HANG"
)

func TestMain(m *testing.M) {
	if caps, ok := os.LookupEnv(capsVar); ok {
		fmt.Fprintln(os.Stderr, becomeProgram(caps))
		os.Exit(1)
	}
	if os.Getenv(apartVar) != "" {
		err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount("proc", "/proc", "proc", 0, ""))
		fmt.Fprintln(os.Stderr, errors.Join(err, syscall.Exec(os.Args[1], os.Args[1:], os.Environ())))
		os.Exit(1)
	}
	if place := strings.Split(os.Getenv(hangVar), "\n"); len(place) == 3 {
		_, err := lock.Take(lock.Place{Dir: place[0], Root: place[1], StateDir: place[2]})
		fmt.Println("locked", err)
		_, _ = io.ReadAll(os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// becomeProgram leaves root only these capabilities, as a runtime does for a container, and runs the program of the
// arguments.
func becomeProgram(caps string) error {
	runtime.LockOSThread()
	keep := strings.Fields(caps)
	for c := 0; ; c++ {
		if slices.Contains(keep, strconv.Itoa(c)) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 { // there are no more
			break
		}
		if err != nil {
			return err
		}
	}
	return syscall.Exec(os.Args[1], os.Args[1:], slices.DeleteFunc(os.Environ(),
		func(v string) bool { return strings.HasPrefix(v, capsVar) }))
}

// left is what a dead agent has left in a real group.
type left struct {
	t     *testing.T
	group *cgrouptest.Group
	place lock.Place
	state string
}

func newLeft(t *testing.T) *left {
	t.Helper()
	g := cgrouptest.New(t)
	g.Limit(20 * time.Millisecond)
	state := t.TempDir()
	return &left{t, g, lock.Place{Dir: filepath.Join(state, "locks"),
		Root: filepath.Join(cgrouptest.Root(), g.Tree().Dir("/")), StateDir: state}, state}
}

// writes has an agent write a value, and die.
func (l *left) writes(knob plan.Knob, from, to plan.Value) {
	l.t.Helper()
	boot, err := journal.BootID()
	if err != nil {
		l.t.Fatal(err)
	}
	j, err := journal.Open(l.state, boot, time.Now)
	if err != nil {
		l.t.Fatal(err)
	}
	defer j.Close()
	inode, err := l.group.Tree().Inode(l.group.Path)
	if err != nil {
		l.t.Fatal(err)
	}
	w := apply.New(l.group.Tree(), j, time.Now)
	w.Tasks = &task.Kernel{}
	for _, r := range w.Do([]plan.Change{{Cgroup: workload.ID{Path: l.group.Path, Inode: inode}, Knob: knob, From: from,
		To: to, Why: "test"}}) {
		if r.Outcome != plan.Applied {
			l.t.Fatalf("%+v", r)
		}
	}
}

// hangs starts an agent that has the lock, and does nothing.
func (l *left) hangs() *exec.Cmd {
	l.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hangVar+"="+strings.Join([]string{l.place.Dir, l.place.Root, l.place.StateDir},
		"\n"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := make([]byte, 200)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "locked <nil>\n" {
		l.t.Fatalf("the agent that hangs: %q, %v", said[:n], err)
	}
	return cmd
}

// run runs the program with some capabilities until its log has a text.
func (l *left) run(program, caps, text string) {
	l.t.Helper()
	cmd := exec.Command("/proc/self/exe", program, "--cgroup-root", cgrouptest.Root(), "--state-dir", l.state,
		"--lock-dir", l.place.Dir, "--after", "3s")
	cmd.Env = append(os.Environ(), capsVar+"="+caps)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	name := filepath.Join(l.t.TempDir(), "log")
	log, err := os.Create(name)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(syscall.SIGTERM)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		said, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(said), text) {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("%v; it does not say %q:\n%s", err, text, said)
		}
	}
}

// TestKernelWithoutCapabilities: limits are put back, and an agent that hangs is killed,
// by root without any capability.
func TestKernelWithoutCapabilities(t *testing.T) {
	program := build(t)
	l := newLeft(t)
	l.writes(plan.Quota, "20ms", "40ms")
	agent := l.hangs()
	l.run(program, "", "limits are put back")
	if err := agent.Wait(); err == nil || agent.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the agent that hangs ended with %v", agent.ProcessState)
	}
	b, err := l.group.Tree().Bandwidth(l.group.Path)
	if err != nil || b.Quota != 20*time.Millisecond {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestKernelCapabilityForSlices: CAP_SYS_NICE is what the slices of other users' tasks take to be put back. Without it
// that is all that is lost, and it is named.
func TestKernelCapabilityForSlices(t *testing.T) {
	kernel := &task.Kernel{}
	if has, why := kernel.HasSlices(); !has {
		if cgrouptest.AtLeast(cgrouptest.Release(t), "6.12") {
			t.Fatal(why)
		}
		cgrouptest.Elsewhere(t, "tier kernel on 6.12 or later", "no slices: %s", why)
	}
	program := build(t)
	l := newLeft(t)
	sleeper := exec.Command("sleep", "60")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534},
		Pdeathsig: syscall.SIGKILL}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	l.group.Move(sleeper.Process.Pid)
	l.writes(plan.Slice, plan.Slice.Unset(), "7ms")
	l.writes(plan.Quota, "20ms", "40ms")
	l.run(program, "", "refused=1")
	b, err := l.group.Tree().Bandwidth(l.group.Path)
	slice, err2 := kernel.Slice(sleeper.Process.Pid)
	if err := errors.Join(err, err2); err != nil || b.Quota != 20*time.Millisecond || slice != 7*time.Millisecond {
		t.Errorf("without the capability: %+v, a slice of %v, %v", b, slice, err)
	}
	l.run(program, strconv.Itoa(unix.CAP_SYS_NICE), "refused=0")
	base, err := kernel.BaseSlice()
	slice, err2 = kernel.Slice(sleeper.Process.Pid)
	if err := errors.Join(err, err2); err != nil || slice != base {
		t.Errorf("with it: a slice of %v, not %v; %v", slice, base, err)
	}
}
