package cgrouptest

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"syscall"
	"testing"
)

// A test's groups and processes are gone when it ends.
func TestKernelGroupLeavesNothing(t *testing.T) {
	var dir string
	var pids []int
	t.Run("a test", func(t *testing.T) {
		pod := New(t)
		container := pod.Child("container")
		dir = path.Dir(pod.File("cgroup.procs"))
		for _, p := range container.Spin(2) {
			pids = append(pids, p.PID())
		}
		container.Idle()
		if tasks, err := pod.Tree().Tasks(container.Path); err != nil || len(tasks) != 3 {
			t.Errorf("tasks %v, %v", tasks, err)
		}
		if _, err := pod.Tree().Usage(container.Path); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Access(dir, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", dir, err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}

// What a killed test binary left is removed by the next.
func TestKernelSweep(t *testing.T) {
	g := New(t)
	dead := exec.Command("/bin/sh", "-c", ":")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := fmt.Sprintf("/%s%d-0", namePrefix, dead.Process.Pid)
	for _, name := range []string{left, left + "/container"} {
		if err := g.Dir().Mkdir(g.Tree().Dir(name)); err != nil {
			t.Fatal(err)
		}
	}
	New(t)
	if _, err := g.Tree().Inode(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s stays: %v", left, err)
	}
	if _, err := g.Tree().Inode(g.Path); err != nil {
		t.Errorf("a live test's group is gone: %v", err)
	}
}
