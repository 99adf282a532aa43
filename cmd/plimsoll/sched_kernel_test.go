package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/scx/scxtest"
)

// loaded starts `plimsoll sched load` and waits until it says that the scheduler is in force.
func (s *shipped) loaded(object string) (end func() error) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.command(ctx, "sched", "load", "--most-stall", "0", object)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = os.Stderr
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it may have ended
	})
	if lines := bufio.NewScanner(out); !lines.Scan() || !strings.Contains(lines.Text(), "is in force") {
		s.t.Fatalf("sched load: %q", lines.Text())
	}
	return func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	}
}

func (s *shipped) scheduler() (name string, pid int) {
	s.t.Helper()
	var r struct {
		Schema, State, Ops string
		PID                int
	}
	if err := json.Unmarshal([]byte(s.must("sched", "status", "--json")), &r); err != nil || r.Schema != loader.Schema {
		s.t.Fatalf("%+v, %v", r, err)
	}
	if r.State != "enabled" {
		return r.State, r.PID
	}
	return r.Ops, r.PID
}

const withoutSchedExt = "no sched_ext"

// noScheduler is what plimsoll says of a kernel that loads no scheduler: of one without sched_ext, or of Debian's 7.1
// and 7.2, whose type information lacks functions that the verifier asks for. "" is one that does.
func noScheduler(t *testing.T) string {
	t.Helper()
	release := cgrouptest.Release(t)
	if _, err := os.Stat("/sys/kernel/sched_ext"); err != nil {
		return withoutSchedExt
	}
	if cgrouptest.AtLeast(release, "7.1") && !cgrouptest.AtLeast(release, "7.3") && strings.Contains(release, "+deb") {
		return "a fault of this kernel's build"
	}
	return ""
}

// A scheduler is loaded, kept, not doubled, not replaced by one that does not work, and taken out by command and by
// signal. Where the kernel loads none, that is what is said.
func TestSched(t *testing.T) {
	s := newShipped(t)
	dir := t.TempDir()
	fifo, refuse := filepath.Join(dir, "fifo.bpf.o"), filepath.Join(dir, "refuse.bpf.o")
	for file, object := range map[string][]byte{fifo: scxtest.Fifo(), refuse: scxtest.Refuse()} {
		if err := os.WriteFile(file, object, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if why := noScheduler(t); why != "" {
		for _, command := range []string{"check", "load"} {
			if out, err := s.run("sched", command, fifo); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("sched %s: %q, %v", command, out, err)
			}
		}
		return
	}
	s.must("sched", "check", fifo)
	end := s.loaded(fifo)
	if name, pid := s.scheduler(); name != "fifo" || pid == 0 {
		t.Errorf("%s is loaded by %d", name, pid)
	}
	if _, err := s.run("sched", "check", fifo); err == nil || !strings.Contains(err.Error(), "fifo is enabled") {
		t.Errorf("a second one could be loaded: %v", err)
	}
	if _, err := s.run("sched", "swap", "--most-stall", "0", refuse); err == nil ||
		!strings.Contains(err.Error(), "fifo is back in force") {
		t.Errorf("swapped: %v", err)
	}
	if got := s.must("sched", "swap", "--most-stall", "0", fifo); !strings.Contains(got, "fifo is in force") {
		t.Error(got)
	}
	if err := end(); err != nil {
		t.Errorf("on SIGTERM: %v", err)
	}
	if name, pid := s.scheduler(); name != "disabled" || pid != 0 {
		t.Errorf("%s is left, loaded by %d", name, pid)
	}
	s.loaded(fifo)
	s.must("sched", "unload")
	if name, _ := s.scheduler(); name != "disabled" {
		t.Errorf("%s is left", name)
	}
	if _, err := s.run("sched", "unload"); err == nil || !strings.Contains(err.Error(), loader.ErrNotLoaded.Error()) {
		t.Errorf("unloaded what no process has loaded: %v", err)
	}
}
