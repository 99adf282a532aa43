package main

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"plimsoll/internal/scx/scxtest"
)

// TestRefusedSchedulerLeavesNothing: neither the socket nor a state directory that was not
// there stays of a load that failed.
func TestRefusedSchedulerLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "refuse.bpf.o")
	if err := os.WriteFile(file, scxtest.Refuse(), 0o600); err != nil {
		t.Fatal(err)
	}
	n := testNode{state: filepath.Join(t.TempDir(), "state")}
	if out, _, err := n.run("sched", "load", file); err == nil {
		t.Fatalf("loaded: %s", out)
	}
	if _, err := os.Stat(n.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state directory is there: %v", err)
	}
	kept := filepath.Join(n.state, "journal")
	if err := errors.Join(os.Mkdir(n.state, 0o700), os.WriteFile(kept, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, _, err := n.run("sched", "load", file); err == nil {
		t.Fatalf("loaded: %s", out)
	}
	if files, err := os.ReadDir(n.state); err != nil || len(files) != 1 {
		t.Errorf("in a state directory that was there: %v, %v; want the journal alone", files, err)
	}
}

// TestSchedOutlivesItsTerminal: a load that was started with nohup leaves SIGHUP ignored.
func TestSchedOutlivesItsTerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "refuse.bpf.o")
	if err := os.WriteFile(file, scxtest.Refuse(), 0o600); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	n := testNode{state: filepath.Join(t.TempDir(), "state")}
	if out, _, err := n.run("sched", "load", file); err == nil {
		t.Fatalf("loaded: %s", out)
	}
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("the end of the terminal ends it")
	}
}
