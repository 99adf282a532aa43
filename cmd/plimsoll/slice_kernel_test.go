package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/task"
)

// TestRunSlices: online tasks have the slice of the configuration, and after kill -9 and a restore that of the
// kernel again, as after the end.
func TestRunSlices(t *testing.T) {
	k := &task.Kernel{}
	if has, why := k.HasSlices(); !has { // TestKernelSlice of internal/task checks which kernels have slices
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh on 6.12:v2 and 6.18:v2", "no slices: %s", why)
	}
	base, err := k.BaseSlice()
	if err != nil {
		t.Fatal(err)
	}
	s := newShipped(t)
	s.flags = []string{"--poll"}
	top := cgrouptest.New(t)
	online, offline := top.Child("online"), top.Child("offline")
	online.Idle()
	offline.Idle()
	s.write(fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\ncolocation: {enable: true, "+
		"mechanism: weight, slice: 3ms}\n"+
		"overrides:\n  - {cgroup: %s, class: LS}\n  - {cgroup: %s, class: BE}\n", online.Path, offline.Path))
	sliceOf := func(g *cgrouptest.Group) time.Duration {
		t.Helper()
		tids, err := g.Tree().Tasks(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		if len(tids) == 0 {
			return 0 // it has not come yet
		}
		slice, err := k.Slice(tids[0])
		if err != nil {
			t.Fatal(err)
		}
		return slice
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		agent := s.start()
		eventually(t, patience(10*time.Second), func() string {
			if on, off := sliceOf(online), sliceOf(offline); on != 3*time.Millisecond || off != base {
				return fmt.Sprintf("slice %v of online, %v of offline tasks", on, off)
			}
			return ""
		})
		agent.stop(signal)
		if signal == syscall.SIGKILL {
			if got := sliceOf(online); got != 3*time.Millisecond {
				t.Fatalf("nothing was left behind: %v", got)
			}
			s.unlocked("restore")
		}
		if got := sliceOf(online); got != base {
			t.Errorf("%v after %v, want %v", got, signal, base)
		}
	}
}
