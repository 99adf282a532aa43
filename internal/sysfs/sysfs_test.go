package sysfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// write makes a root directory of the files.
func write(t *testing.T, files map[string]string) *Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return NewHost(root)
}

func TestHost(t *testing.T) {
	h := write(t, map[string]string{
		"sys/devices/system/cpu/online":   "0-2,8\n",
		"sys/devices/system/cpu/possible": "0-9\n",
		"proc/stat":                       "cpu  1 2 3 4 5 6 7 8 9 10\nintr 1\n",
		"proc/7/task/7/schedstat":         "5000 1 1\n",
		"proc/8/task/8/schedstat":         "6000 1 1\n",
	})
	if got, err := h.Online(); err != nil || !cmp.Equal(got, cpu.Set{0, 1, 2, 8}) {
		t.Errorf("online %v, %v", got, err)
	}
	if got, err := h.Possible(); err != nil || got.String() != "0-9" {
		t.Errorf("possible %v, %v", got, err)
	}
	if got, err := h.Busy(); err != nil || got != 270*time.Millisecond {
		t.Errorf("busy %v, %v", got, err)
	}
	want := map[int]time.Duration{8: 6000, 7: 5000}
	got, err := h.Threads([]int{8, 0, 9, 7})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("threads: %v, %s", err, diff)
	}
}

func TestHostErrors(t *testing.T) {
	h := write(t, map[string]string{
		"sys/devices/system/cpu/online": "\n",
		"proc/stat":                     "cpu x\n",
		"proc/7/task/7/schedstat":       "5000\n",
		"proc/8/stat":                   "8 (no schedstat) R 1 1\n",
	})
	_, online := h.Online()
	_, busy := h.Busy()
	_, broken := h.Threads([]int{7})
	_, missing := h.Threads([]int{8})
	for name, err := range map[string]error{"cpu/online": online, "proc/stat": busy, "task/7/schedstat": broken,
		"task/8/schedstat": missing} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error of %s is %v", name, err)
		}
	}
}

// The running kernel: an ended thread is left out.
func TestThisHost(t *testing.T) {
	h := NewHost("/")
	online, err := h.Online()
	if err != nil || len(online) < 1 || len(online) < runtime.NumCPU() {
		t.Errorf("online %v, %v", online, err)
	}
	if busy, err := h.Busy(); err != nil || busy <= 0 {
		t.Errorf("busy %v, %v", busy, err)
	}
	child := exec.Command("sleep", "60")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self, pid := syscall.Gettid(), child.Process.Pid
	threads, err := h.Threads([]int{self, pid})
	if err != nil || len(threads) != 2 || threads[self] <= 0 || threads[pid] <= 0 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if threads, err := h.Threads([]int{pid, self}); err != nil || len(threads) != 1 || threads[self] <= 0 {
		t.Errorf("threads %v, %v", threads, err)
	}
}

func TestSelf(t *testing.T) {
	h := NewHost("/")
	before, err := h.Self()
	if err != nil || before.RSS < 1<<20 || before.RSS > 1<<34 {
		t.Fatalf("%+v, %v", before, err)
	}
	var after Self
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) &&
		after.CPU < before.CPU+20*time.Millisecond; {
		if after, err = h.Self(); err != nil {
			t.Fatal(err)
		}
	}
	if after.CPU < before.CPU+20*time.Millisecond {
		t.Errorf("CPU time went from %v to %v", before.CPU, after.CPU)
	}
}
