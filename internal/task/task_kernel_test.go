package task

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

const ms = time.Millisecond

// sleeper starts a process, which ends with the test.
func sleeper(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestKernelSlice: the preflight says yes where the kernel keeps slices, and there one is set, read, and taken back,
// and nothing else of the task changes.
func TestKernelSlice(t *testing.T) {
	k := &Kernel{}
	has, why := k.HasSlices()
	if has != cgrouptest.AtLeast(cgrouptest.Release(t), "6.12") {
		t.Fatalf("slices: %v (%s)", has, why)
	}
	if !has {
		return
	}
	pid := sleeper(t)
	if err := unix.Setpriority(unix.PRIO_PROCESS, pid, 5); err != nil {
		t.Fatal(err)
	}
	base, err := k.BaseSlice()
	if err != nil || base <= 0 {
		t.Fatalf("base %v, %v", base, err)
	}
	for _, slice := range []time.Duration{100 * time.Microsecond, 100 * ms, 0} {
		if err := k.SetSlice(pid, slice); err != nil {
			t.Fatal(err)
		}
		want := slice
		if slice == 0 {
			want = base
		}
		if got, err := k.Slice(pid); got != want || err != nil {
			t.Errorf("%v is read as %v, %v", slice, got, err)
		}
	}
	attr, err := unix.SchedGetAttr(pid, 0)
	if err != nil || attr.Nice != 5 || attr.Policy != unix.SCHED_NORMAL {
		t.Errorf("%+v, %v", attr, err)
	}
	if err := unix.SchedSetAttr(pid, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1}, 0); err != nil {
		t.Fatal(err)
	}
	if err := k.SetSlice(pid, 3*ms); !errors.Is(err, ErrClass) || !k.Passed(err) {
		t.Errorf("of a real-time task: %v", err)
	}
	if _, err := k.Slice(1 << 30); !k.Passed(err) {
		t.Errorf("of no task: %v", err)
	}
}

// TestKernelBaseSliceOfALentThread: the kernel's slice is known on a thread that has real-time priority for a moment,
// and the thread keeps that.
func TestKernelBaseSliceOfALentThread(t *testing.T) {
	k := &Kernel{}
	if has, why := k.HasSlices(); !has {
		if cgrouptest.AtLeast(cgrouptest.Release(t), "6.12") {
			t.Error(why)
		}
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lend := func(a *unix.SchedAttr) {
		t.Helper()
		if err := unix.SchedSetAttr(0, a, 0); err != nil {
			t.Fatal(err)
		}
	}
	lend(&unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1})
	lent, err := k.BaseSlice()
	attr, err2 := unix.SchedGetAttr(0, 0)
	lend(&unix.SchedAttr{Policy: unix.SCHED_NORMAL})
	if err := errors.Join(err, err2); err != nil || attr.Policy != unix.SCHED_FIFO {
		t.Errorf("%v, %+v", err, attr)
	}
	if base, err := k.BaseSlice(); err != nil || lent != base {
		t.Errorf("%v with real-time priority, %v (%v) without", lent, base, err)
	}
}

// TestKernelCookie: where the kernel has core scheduling and two threads a core, a task is given our cookie and it is
// taken away; elsewhere the preflight says what is missing, and nothing can be made.
func TestKernelCookie(t *testing.T) {
	k := &Kernel{}
	has, why := k.HasCookies()
	t.Logf("%v: %s", has, why)
	if !has {
		if why == cookieWhy() { // the kernel has them, and this process may not give them
			return
		}
		if _, err := k.NewCookie(); err == nil || why == "" {
			t.Errorf("a cookie is made all the same: %v", err)
		}
		if smt, _ := os.ReadFile("/sys/devices/system/cpu/smt/active"); strings.TrimSpace(string(smt)) != "1" &&
			!strings.Contains(why, "core") {
			t.Errorf("without a second thread: %q", why)
		}
		return
	}
	pid := sleeper(t)
	id, err := k.NewCookie()
	if again, _ := k.NewCookie(); err != nil || id == 0 || again != id {
		t.Fatalf("cookie %d, then %d, %v", id, again, err)
	}
	for _, want := range []uint64{id, 0} {
		if err := k.SetCookie(pid, want); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Cookie(pid); got != want || err != nil {
			t.Errorf("cookie %d, want %d, %v", got, want, err)
		}
	}
}
