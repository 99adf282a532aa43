package experiment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// newGroups makes groups on the running kernel.
func newGroups(t *testing.T) *Groups {
	t.Helper()
	g, err := NewGroups(cgrouptest.Root(), "grouptest")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, cgroup.ErrNoCPU) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EBUSY) {
		cgrouptest.Skip(t, "control groups cannot be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(cgrouptest.Root(), "*", g.base)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if _, err := g.tree.Inode(g.base); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left behind: %s: %v", g.base, err)
		}
	})
	return g
}

func TestGroupsOnTheKernel(t *testing.T) {
	g := newGroups(t)
	group, err := g.Add("web")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Limit(group, Limited(0.5)); err != nil {
		t.Fatal(err)
	}
	if b, err := g.Tree().Bandwidth(group); err != nil || b != Limited(0.5) {
		t.Errorf("limit %+v, %v", b, err)
	}
	if err := g.Limit(group, cpu.Bandwidth{Quota: cpu.Unlimited}); err != nil {
		t.Fatal(err)
	}
	if b, err := g.Tree().Bandwidth(group); err != nil || b.Limited() {
		t.Errorf("limit %+v, %v, want none", b, err)
	}
	c, err := Launch(exec.Command("/bin/sh", "-c", "read -r go && exec sleep 1000"),
		func(pid int) error { return g.Enter(group, pid) })
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := g.Tree().Tasks(group)
	if err != nil || !slices.Equal(tasks, []int{c.cmd.Process.Pid}) {
		t.Errorf("tasks %v, %v, want %d", tasks, err, c.cmd.Process.Pid)
	}
	if err := c.Stop(plenty); err != nil {
		t.Error(err)
	}
	if used, err := g.Used(group); err != nil || used <= 0 {
		t.Errorf("used %v, %v: the process ran a program", used, err)
	}
}

// TestGroupsSweep leaves a group of a process that is gone, and one of a process that lives.
func TestGroupsSweep(t *testing.T) {
	g := newGroups(t)
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	const prefix = "/plimsoll-sweeptest-"
	dead, alive := prefix+strconv.Itoa(gone.Process.Pid), prefix+strconv.Itoa(os.Getpid())
	for _, group := range []string{dead, dead + "/web", dead + "/web/inner", alive, prefix + "other"} {
		if err := g.make(group); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.sweep(prefix); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]bool{dead: false, alive: true, prefix + "other": true} {
		for _, dir := range g.dirs(group) {
			if g.exists(dir) != want {
				t.Errorf("%s is there: %v, want %v", dir, !want, want)
			}
		}
	}
}

// TestGroupsV2 has a hierarchy of plain files, for what the running kernel may not have.
func TestGroupsV2(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cgroup.controllers", "cpuset cpu io\n")
	write("cgroup.subtree_control", "memory\n")
	_, err := NewGroups(root, "files")
	base := fmt.Sprintf("plimsoll-files-%d", os.Getpid())
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(),
		filepath.Join(base, "cgroup.subtree_control")) {
		t.Errorf("error %v, want that a plain folder has no subtree_control", err)
	}
	if _, err := os.Stat(filepath.Join(root, base)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upper group is left: %v", err)
	}
	// The files hold the last write only: the controller was enabled, and then disabled again.
	if data, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); !strings.HasPrefix(string(data), "-cpu") {
		t.Errorf("cgroup.subtree_control: %q, want what undoes +cpu", data)
	}
	write("cgroup.subtree_control", "cpu memory\n")
	_, _ = NewGroups(root, "files")
	if data, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control")); string(data) != "cpu memory\n" {
		t.Errorf("cgroup.subtree_control: %q, was enabled before and must stay", data)
	}
}

func TestTempDirSweeps(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	mine, err := TempDir("x")
	if err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{mine: true}
	for name, kept := range map[string]bool{
		fmt.Sprintf("plimsoll-x-%d-1", gone.Process.Pid): false,
		fmt.Sprintf("plimsoll-y-%d-1", gone.Process.Pid): true,
		"plimsoll-x-old-1": true,
	} {
		dir := filepath.Join(os.TempDir(), name)
		keep[dir] = kept
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := TempDir("x"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range keep {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
}

func TestAdvice(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("demo: %w", &fs.PathError{Op: "mkdir", Path: "/x", Err: err}) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{wrap(syscall.EACCES), "as root"},
		{wrap(syscall.EPERM), "as root"},
		{wrap(syscall.EROFS), "on the host"},
		{wrap(syscall.EBUSY), "on the host"},
		{fmt.Errorf("x: %w", cgroup.ErrNoCPU), "--cgroup-root"},
	} {
		got := Advise(c.err)
		var h interface{ Hint() string }
		if !errors.As(got, &h) || !strings.Contains(h.Hint(), c.want) {
			t.Errorf("%v: no hint with %q", c.err, c.want)
		}
		if !errors.Is(got, c.err) || got.Error() != c.err.Error() {
			t.Errorf("%v became %v", c.err, got)
		}
	}
	if other := errors.New("other"); Advise(other) != other || Advise(nil) != nil {
		t.Error("an error without advice is changed")
	}
}
