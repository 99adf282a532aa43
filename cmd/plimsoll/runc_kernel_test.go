package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// bundle makes what runc runs: a root filesystem of the host's busybox alone, and a command with a limit in a group.
func bundle(t *testing.T, dir, group string, command ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "rootfs/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rootfs/proc", "rootfs/dev"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link("/bin/busybox", filepath.Join(dir, "rootfs/bin/busybox")); err != nil {
		data, err := os.ReadFile("/bin/busybox") // another filesystem
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "rootfs/bin/busybox"), data, 0o755)
		}
		if err != nil {
			t.Fatalf("%v; hint: apt install busybox-static", err)
		}
	}
	type object = map[string]any
	spec := object{"ociVersion": "1.0.2",
		"process": object{"terminal": false, "user": object{"uid": 0, "gid": 0}, "args": command, "cwd": "/"},
		"root":    object{"path": "rootfs", "readonly": true},
		"mounts":  []object{{"destination": "/proc", "type": "proc", "source": "proc"}},
		"linux": object{"cgroupsPath": group, "namespaces": []object{{"type": "pid"}, {"type": "mount"}},
			"resources": object{"cpu": object{"quota": startLimit.Microseconds(),
				"period": (100 * ms).Microseconds()}}}}
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRuncStarts: containers that runc starts and that end at once, two at a time, beside an agent that sets their
// bursts as early as it may: each of them starts. Some live long enough to be seen with their burst.
func TestRuncStarts(t *testing.T) {
	if _, err := exec.LookPath("runc"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	s := newShipped(t)
	base := cgrouptest.New(t)
	needHazard(t)
	s.configure("cpuBurstOnly", base.Path+"/*")
	s.start()
	work, lived := t.TempDir(), fmt.Sprint(patience(500*ms).Seconds())
	each := starts(t, 100) / 2
	var all sync.WaitGroup
	t.Cleanup(func() { leftByRunc(t, base) })
	for worker := range 2 {
		all.Go(func() {
			for i := range each {
				name, life := fmt.Sprintf("plimsoll-%d-%d-%d", os.Getpid(), worker, i), "0.00"
				if i%10 == 0 {
					life = lived
				}
				g := filepath.Join(base.Path, name)
				dir := filepath.Join(work, name)
				bundle(t, dir, g, "/bin/busybox", "sleep", life)
				cmd := exec.Command("runc", "--root", filepath.Join(work, "runc"), "run", "--bundle", dir, name)
				seen, ended := make(chan time.Duration, 1), make(chan struct{})
				go func() { seen <- burstOf(base, g, ended) }()
				out, err := cmd.CombinedOutput()
				close(ended)
				if err != nil {
					t.Errorf("start %d: %v: %s", i, err, out)
					return
				}
				if burst := <-seen; life == lived && burst != startLimit {
					t.Errorf("start %d: it ended with a burst of %v", i, burst)
				}
				os.RemoveAll(dir)
			}
		})
	}
	all.Wait()
}

// burstOf is the largest burst that a group was seen with until its container has ended.
func burstOf(base *cgrouptest.Group, group string, ended <-chan struct{}) (burst time.Duration) {
	for {
		if b, err := base.Tree().Burst(group); err == nil {
			burst = max(burst, b)
		}
		select {
		case <-ended:
			return burst
		case <-time.After(5 * ms):
		}
	}
}

// leftByRunc removes the groups in the other hierarchies (v1), in which runc makes the path to a container's own.
func leftByRunc(t *testing.T, base *cgrouptest.Group) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(cgrouptest.Root(), "*", base.Path))
	if err != nil {
		t.Error(err)
	}
	for _, dir := range dirs {
		_ = os.Remove(dir) // that of the test's own hierarchy is removed with the group
	}
}
