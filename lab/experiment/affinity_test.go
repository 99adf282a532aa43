package experiment

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
)

// TestAffinity ties a process to one CPU, and lets it on all again.
func TestAffinity(t *testing.T) {
	all, err := Allowed()
	if err != nil || len(all) == 0 {
		t.Fatalf("CPUs %v, %v", all, err)
	}
	c, err := Launch(exec.Command("/bin/sh", "-c", "read -r go && exec sleep 1000"), func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(0)
	pid := c.cmd.Process.Pid
	for _, want := range []cpu.Set{all[len(all)-1:], all} {
		if err := Spread(pid, want); err != nil {
			t.Fatal(err)
		}
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &got); err != nil || got.Count() != len(want) || !got.IsSet(want[0]) {
			t.Errorf("%d CPUs, %v; want %v", got.Count(), err, want)
		}
	}
	if err := Bind(pid, all[0]); err != nil {
		t.Error(err)
	}
}
