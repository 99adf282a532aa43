package main

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
)

// TestReserveAndHotplug: on v1 a CPU that goes offline is removed from all cpusets for good, and the processes of a
// cpuset that becomes empty are moved to the group above (kernel/cgroup/cpuset.c, hotplug_update_tasks_legacy). The
// reservation ends with it, no process is without a CPU, and the reservation begins again when the owner has given the
// groups the CPU back.
func TestReserveAndHotplug(t *testing.T) {
	s := newShipped(t)
	r := newReserved(t, s)
	if !emulated() || r.pod.Tree().Version() == cgroup.V2 {
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh on 5.10:v1",
			"CPUs are taken away in virtual machines only, and on v2 by TestRunReserves")
	}
	before := r.files()
	agent := s.start()
	r.exclusive(r.inB)

	name := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", r.online[len(r.online)-1])
	plug := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plug("0")
	rest := r.online[:len(r.online)-1]
	eventually(t, patience(5*time.Second), func() string {
		a, err1 := r.inA.Affinity()
		b, err2 := r.inB.Affinity()
		got := s.status().Reserve
		if !a.Equal(rest) || !b.Equal(rest) || got == nil || len(got.Exclusive) > 0 || len(got.Refused) != 1 ||
			len(got.Pinned) > 0 || r.empty() {
			return fmt.Sprintf("%v %v: a runs on %s, b on %s; %+v; a cpuset is empty: %v", err1, err2, a, b, got,
				r.empty())
		}
		return ""
	})
	for _, g := range []*cgrouptest.Group{r.a, r.b} {
		// the kernel lets none into an empty cpuset
		if cpus, err := g.Idle().Affinity(); err != nil || !cpus.Equal(rest) {
			t.Errorf("%v: a new process of %s runs on %s", err, g.Path, cpus)
		}
	}

	plug("1")
	for _, g := range []*cgrouptest.Group{r.pod, r.a, r.b} {
		file := cgrouptest.Root() + "/cpuset" + g.Path + "/cpuset.cpus"
		if err := os.WriteFile(file, []byte(r.online.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.a.Move(r.inA.PID())
	r.b.Move(r.inB.PID())
	r.exclusive(r.inB)
	agent.stop(syscall.SIGTERM)
	r.back(before)
}

// empty says whether a container's cpuset has no CPU (v1).
func (r *reserved) empty() bool {
	r.t.Helper()
	for _, g := range []*cgrouptest.Group{r.a, r.b} {
		set, err := g.Tree().CPUs(g.Path)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(set) == 0 {
			return true
		}
	}
	return false
}
