package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStrangersCannotLock: another user can neither open the lock's file nor have a write lock on the mark.
func TestStrangersCannotLock(t *testing.T) {
	root(t)
	p := placeOf(t)
	lock := held(t, p)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	name, err := p.name()
	if err := errors.Join(err, os.Chmod(p.Dir, 0o755), os.Chmod(filepath.Dir(p.Dir), 0o755),
		os.Chmod(filepath.Dir(filepath.Dir(p.Dir)), 0o755)); err != nil {
		t.Fatal(err) // as the kubelet makes the directory, which everybody can enter
	}
	lock = held(t, p)
	defer lock.Release()
	for what, cmd := range map[string]*exec.Cmd{
		"the file": locker(t, "flock shared", name),
		"the mark": locker(t, "write", filepath.Join(p.Root, markFile)),
	} {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "permission denied") {
			t.Errorf("%s: %q, %v", what, out, err)
		}
	}
}

// TestLockOfAStrangerOfRoots: root can open the lock's file. A process that only locks it keeps nobody out, for the
// mark is left; and where the mark cannot be had either, it is named and not waited for.
func TestLockOfAStrangerOfRoots(t *testing.T) {
	root(t)
	p := placeOf(t)
	name, err := p.name()
	if err := errors.Join(err, p.prepare(), os.WriteFile(name, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := stranger(t, 0, "flock", name)
	for range 2 {
		lock := held(t, p)
		if len(lock.Strangers) != 1 || lock.Strangers[0].PID != cmd.Process.Pid {
			t.Errorf("in the way are %v", lock.Strangers)
		}
		var locked *TakenError
		if _, err := Take(p); !errors.As(err, &locked) || locked.Stranger {
			t.Errorf("a second agent: %v", err)
		}
		if by, err := Holder(p); err != nil || by == nil || by.Stranger {
			t.Errorf("held by %v, %v; want an agent", by, err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	takenInLine(t, p)

	if err := os.Remove(filepath.Join(p.Root, markFile)); err != nil {
		t.Fatal(err)
	}
	if by, err := Holder(p); err != nil || by == nil || !by.Stranger || by.PID != cmd.Process.Pid {
		t.Errorf("held by %v, %v; want the stranger", by, err)
	}
	line, err := WaitForHandover(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var locked *TakenError
	if _, _, err := line.Take(ctx, p); !errors.As(err, &locked) || !locked.Stranger || locked.PID != cmd.Process.Pid ||
		!strings.Contains(err.Error(), "of user 0") || !strings.Contains(err.Error(), "no plimsoll") {
		t.Errorf("an agent that stands by: %v", err)
	}
}

// TestLockOfAStrangerWithAnAgentsName: the name that a dead agent left in the file is not
// that of a process which locks it.
func TestLockOfAStrangerWithAnAgentsName(t *testing.T) {
	root(t)
	p := placeOf(t)
	name, err := p.name()
	if err := errors.Join(err, p.prepare()); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"pid": 1, "start": 1, "state": %q}`, identity(p.StateDir))
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := stranger(t, 0, "flock", name)
	if by, err := Holder(p); err != nil || by == nil || !by.Stranger || by.OurState || by.PID != cmd.Process.Pid {
		t.Errorf("held by %v, %v; want the stranger", by, err)
	}
	takenInLine(t, p)
}

// TestNoStateIsNobodys: an agent whose state directory is not known is not that of a state directory that is not there.
func TestNoStateIsNobodys(t *testing.T) {
	p := placeOf(t)
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	file, err := p.lockFile()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p.StateDir = filepath.Join(t.TempDir(), "none")
	if err := p.sign(file); err != nil {
		t.Fatal(err)
	}
	if by, err := Holder(p); err != nil || by == nil || by.Stranger || by.OurState {
		t.Errorf("held by %+v, %v; want an agent of another state directory", by, err)
	}
}

// TestLockOfAStrangerOfAnotherPIDNamespace: it has no number there, and is told from an agent by the name that it has
// not written.
func TestLockOfAStrangerOfAnotherPIDNamespace(t *testing.T) {
	root(t)
	p := placeOf(t)
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	file, err := p.lockFile() // and no name in it
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := locker(t, "apart", p.Dir, p.Root, p.StateDir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if out, err := cmd.Output(); err != nil || string(out) != "locked <nil>\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestLockFileIsNoLink: a link in the place of the lock's file is not followed, for the name of the owner would be
// written over what it leads to.
func TestLockFileIsNoLink(t *testing.T) {
	p := placeOf(t)
	target := filepath.Join(t.TempDir(), "target")
	name, err := p.name()
	if err := errors.Join(err, p.prepare(), os.WriteFile(target, []byte("mine"), 0o600),
		os.Symlink(target, name)); err != nil {
		t.Fatal(err)
	}
	if lock, err := Take(p); err == nil {
		t.Errorf("the lock is that of a link: %v", lock.Release())
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestLockOfNothing(t *testing.T) {
	p := placeOf(t)
	p.Root += "/none"
	if _, err := Take(p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestLockDirOfOthers: where others can make files, one of theirs could be the lock.
func TestLockDirOfOthers(t *testing.T) {
	p := placeOf(t)
	if err := os.Mkdir(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refused := func(whose string) {
		t.Helper()
		if _, err := Take(p); err == nil || !strings.Contains(err.Error(), p.Dir) {
			t.Errorf("a directory that %s can write: %v", whose, err)
		}
	}
	for whose, mode := range map[string]os.FileMode{"its group": 0o770, "anybody": 0o707} {
		if err := os.Chmod(p.Dir, mode); err != nil {
			t.Fatal(err)
		}
		refused(whose)
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chmod(p.Dir, 0o700), os.Chown(p.Dir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
		refused("another user")
	}
	p.Dir += ".link"
	if err := os.Symlink(t.TempDir(), p.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(p); err == nil || !strings.Contains(err.Error(), p.Dir) {
		t.Errorf("a symbolic link: %v", err)
	}
}

func TestUnknownHolderHasAHint(t *testing.T) {
	e := &TakenError{Root: "/sys/fs/cgroup"}
	if strings.Contains(e.Error(), "0") || !strings.Contains(e.Hint(), "/proc/locks") {
		t.Errorf("error %q, hint %q", e.Error(), e.Hint())
	}
}
