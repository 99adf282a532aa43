package experiment

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// TestPinnableGroups binds a group to one CPU: its tasks run there and nowhere else, and nothing is left in the end.
func TestPinnableGroups(t *testing.T) {
	g, err := NewPinnableGroups(cgrouptest.Root(), "pintest")
	if err != nil {
		cgrouptest.Skip(t, "control groups that can be bound to CPUs cannot be made here: %v", err)
	}
	group, err := g.Add("one")
	if err != nil {
		t.Fatal(errors.Join(err, g.Close()))
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	id := 0
	for !allowed.IsSet(id) {
		id++
	}
	if err := g.Tree().SetCPUs(group, cpu.Set{id}); err != nil {
		t.Fatal(errors.Join(err, g.Close()))
	}
	c, err := Launch(exec.Command("/bin/sh", "-c", "read -r go && exec sleep 1000"),
		func(pid int) error { return g.Enter(group, pid) })
	if err != nil {
		t.Fatal(errors.Join(err, g.Close()))
	}
	var got unix.CPUSet
	if err := unix.SchedGetaffinity(c.cmd.Process.Pid, &got); err != nil || got.Count() != 1 || !got.IsSet(id) {
		t.Errorf("%d CPUs, %v; want CPU %d alone", got.Count(), err, id)
	}
	if err := errors.Join(c.Stop(plenty), g.Close()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cgrouptest.Root(), "*", g.base)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := g.tree.Inode(g.base); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s: %v", g.base, err)
	}
}
