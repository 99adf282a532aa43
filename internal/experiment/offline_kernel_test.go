package experiment

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// TestOfflineWork expects a process on each CPU, behind all others where the kernel can do that, and nothing left.
func TestOfflineWork(t *testing.T) {
	groups := newGroups(t)
	o, err := StartOffline(cgrouptest.Root())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	before, err := o.Used()
	if err != nil {
		t.Fatal(err)
	}
	var all, set unix.CPUSet
	for _, c := range o.processes {
		if err := unix.SchedGetaffinity(c.cmd.Process.Pid, &set); err != nil || set.Count() != 1 {
			t.Errorf("process on %d CPUs, %v", set.Count(), err)
		}
		for i := range all {
			all[i] |= set[i]
		}
	}
	if err := unix.SchedGetaffinity(0, &set); err != nil || all != set {
		t.Errorf("processes on %v, CPUs %v, %v", all, set, err)
	}
	switch idle, err := groups.tree.Idle(o.Base()); {
	case errors.Is(err, fs.ErrNotExist):
		if weight, err := groups.tree.Weight(o.Base()); o.Behind || err != nil || weight != leastWeight {
			t.Errorf("behind %v, weight %d, %v", o.Behind, weight, err)
		}
	case err != nil || !idle || !o.Behind:
		t.Errorf("idle %v, behind %v, %v", idle, o.Behind, err)
	}
	for {
		used, err := o.Used()
		if err != nil {
			t.Fatal(err)
		}
		if used > before {
			break
		}
		if time.Since(begin) > plenty {
			t.Fatal("the work does not work")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := groups.tree.Inode(o.Base()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left behind: %s: %v", o.Base(), err)
	}
}
