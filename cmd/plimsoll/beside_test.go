package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/lock"
	"plimsoll/internal/node"
)

// TestHeartSigns: an agent that took the lock on a full disk writes its name with a later heartbeat. RLIMIT_FSIZE
// stands for the full disk.
func TestHeartSigns(t *testing.T) {
	p := lock.Place{Dir: filepath.Join(t.TempDir(), "locks"), Root: t.TempDir(), StateDir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.Root, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	held, err := lock.Take(p)
	if err := errors.Join(err, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)); err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if by, err := lock.Holder(p); err != nil || by == nil || by.PID != 0 {
		t.Fatalf("held by %v, %v: the scenario proves nothing", by, err)
	}
	g := &globals{Dirs: node.Dirs{StateDir: p.StateDir}}
	heart := g.heart(held, slog.New(slog.DiscardHandler))
	defer heart.Close()
	heart.Beat(time.Now())
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		by, err := lock.Holder(p)
		if err == nil && by != nil && by.PID == os.Getpid() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("held by %v, %v; want this process", by, err)
		}
	}
}
