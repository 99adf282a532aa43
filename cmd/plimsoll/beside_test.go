package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/fulldisk"
	"plimsoll/internal/lock"
	"plimsoll/internal/node"
)

// TestHeartSigns: an agent that took the lock on a full disk writes its name with a later heartbeat.
func TestHeartSigns(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	p := lock.Place{Dir: filepath.Join(t.TempDir(), "locks"), Root: t.TempDir(), StateDir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.Root, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	free := fulldisk.Fill(t, 0)
	held, err := lock.Take(p)
	if free(); err != nil {
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
