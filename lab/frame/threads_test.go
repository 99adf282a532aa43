package frame

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
)

// TestAffinity ties a process to one CPU, and lets it on all again.
func TestAffinity(t *testing.T) {
	all, err := experiment.Allowed()
	if err != nil || len(all) == 0 {
		t.Fatalf("CPUs %v, %v", all, err)
	}
	c, err := experiment.Launch(exec.Command("/bin/sh", "-c", "read -r go && exec sleep 1000"),
		func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(0)
	pid := c.PID()
	for _, want := range []cpu.Set{all[len(all)-1:], all} {
		if err := Spread(pid, want); err != nil {
			t.Fatal(err)
		}
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &got); err != nil || got.Count() != len(want) || !got.IsSet(want[0]) {
			t.Errorf("%d CPUs, %v; want %v", got.Count(), err, want)
		}
	}
	if err := experiment.Bind(pid, all[0]); err != nil {
		t.Error(err)
	}
}

// TestForemost makes this process a real-time one, and a child of it an ordinary one.
func TestForemost(t *testing.T) {
	if err := ForemostWithKin(); err != nil {
		cgrouptest.Skip(t, "no real-time priority is allowed here: %v", err)
	}
	c, err := experiment.Launch(exec.Command("/bin/sh", "-c", "read -r go && exec sleep 1000"), func(pid int) error {
		if attr, err := unix.SchedGetAttr(pid, 0); err != nil || attr.Policy != unix.SCHED_FIFO {
			t.Errorf("a child: %+v, %v; want a real-time one", attr, err)
		}
		return Ordinary(pid)
	})
	failed := eachThread(self, Ordinary)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	defer c.Stop(0)
	if attr, err := unix.SchedGetAttr(c.PID(), 0); err != nil || attr.Policy != unix.SCHED_NORMAL {
		t.Errorf("a child that was started: %+v, %v; want an ordinary one", attr, err)
	}
}
