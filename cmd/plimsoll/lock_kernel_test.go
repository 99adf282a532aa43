package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

const (
	strangerVar      = "PLIMSOLL_TEST_STRANGER" // the root of the hierarchy that the child locks
	unprivilegedUser = 65534
)

// becomeStranger locks all that any user can lock at the root of a hierarchy, until the end of its input. As root it
// has no capability.
func becomeStranger(root string) error {
	runtime.LockOSThread() // the capabilities are a thread's
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	dir, err1 := unix.Open(root, unix.O_RDONLY, 0)
	procs, err2 := unix.Open(filepath.Join(root, "cgroup.procs"), unix.O_RDONLY, 0)
	err := errors.Join(unix.Capset(&header, &none[0]), err1, err2, unix.Flock(dir, unix.LOCK_EX|unix.LOCK_NB),
		unix.Flock(procs, unix.LOCK_EX|unix.LOCK_NB),
		unix.FcntlFlock(uintptr(procs), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}))
	fmt.Println("locked", err)
	_, _ = io.ReadAll(os.Stdin)
	return err
}

// stranger is such a process.
func stranger(t *testing.T, user uint32, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), strangerVar+"="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user},
		Pdeathsig: syscall.SIGKILL}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	said := make([]byte, 200)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "locked <nil>\n" {
		t.Fatalf("the stranger: %q, %v", said[:n], err)
	}
	return cmd
}

// TestStrangersKeepNoAgentOut: while another user, or root without capabilities, has locked what it can of the control
// groups, an agent runs, another one is refused, one that stands by takes over, and a restore restores. The stranger is
// named.
func TestStrangersKeepNoAgentOut(t *testing.T) {
	for _, user := range []uint32{unprivilegedUser, 0} {
		t.Run(fmt.Sprint("user ", user), func(t *testing.T) {
			s := newShipped(t)
			g := cgrouptest.New(t)
			g.Limit(hogLimit)
			g.Idle()
			before := files(t, g)
			s.configure("cpuBurstOnly", g.Path)
			cmd := stranger(t, user, filepath.Join(cgrouptest.Root(), g.Tree().Dir("/")))
			name := fmt.Sprintf("process %d of user %d", cmd.Process.Pid, user)

			first := s.start()
			if !strings.Contains(first.log.String(), name) {
				t.Errorf("%s is not named:\n%s", name, first.log)
			}
			if hasBurst(g) {
				changed(t, s, before, g)
			}
			other := *s
			other.state += "2"
			if _, err := other.run("restore"); err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("process %d", first.cmd.Process.Pid)) {
				t.Errorf("a second agent: %v", err)
			}
			second := s.launch("--stand-by")
			if !second.says("standing by") {
				t.Fatalf("it does not stand by:\n%s", second.log)
			}
			first.stop(syscall.SIGTERM)
			if !second.runs() {
				t.Fatalf("it does not take over:\n%s", second.log)
			}
			second.stop(syscall.SIGKILL)
			var notes strings.Builder
			restore := s.command(t.Context(), "restore")
			restore.Stderr = &notes
			if err := restore.Run(); err != nil || !strings.Contains(notes.String(), name) {
				t.Errorf("restore: %v, %q; want %q", err, notes.String(), name)
			}
			same(t, 0, before, g)
		})
	}
}
