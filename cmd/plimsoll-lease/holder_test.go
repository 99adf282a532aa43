package main

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
	"plimsoll/internal/logbook"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestHolderOfTheLock: only a process that is known, and is an agent, may be judged and ended.
func TestHolderOfTheLock(t *testing.T) {
	agent := lock.TakenError{Process: lock.Process{PID: 7}, Start: 70, OurState: true}
	stranger, unseen := agent, agent
	stranger.Stranger, unseen.PID = true, 0
	for what, c := range map[string]struct {
		locked *lock.TakenError
		want   lease.Holder
	}{
		"nobody":                  {nil, lease.Holder{}},
		"a stranger":              {&stranger, lease.Holder{}},
		"one that cannot be seen": {&unseen, lease.Holder{}},
		"an agent":                {&agent, lease.Holder{Process: lease.Process{PID: 7, Start: 70}, Ours: true}},
		"an agent of other's state": {&lock.TakenError{Process: lock.Process{PID: 7}, Start: 70},
			lease.Holder{Process: lease.Process{PID: 7, Start: 70}}},
	} {
		if got := holderOf(c.locked); got != c.want {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}

// TestOnlyTheHolderIsEnded: whoever was to be ended lives on when it does not hold the lock any
// more, is not said to be killed, and is not complained of at each look.
func TestOnlyTheHolderIsEnded(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	place := lock.Place{Dir: filepath.Join(t.TempDir(), "locks"), Root: root, StateDir: t.TempDir()}
	held, err := lock.Take(place) // by this process
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	said := &logbook.Book{}
	g := &watcher{place: place, log: slog.New(slog.NewTextHandler(said, nil))}
	for range 2 { // looks
		if g.kill(&lock.TakenError{Process: lock.Process{PID: other.Process.Pid}, Start: 1, OurState: true}) {
			t.Error("a process was ended that does not hold the lock")
		}
	}
	for text, want := range map[string]int{"it is being killed": 1, "cannot be ended": 1, "was killed": 0} {
		if n := strings.Count(said.String(), text); n != want {
			t.Errorf("it says %d times %q, not %d times: %s", n, text, want, said)
		}
	}
}

// TestRaisesOfAnotherBootAreOver: the groups of a journal that the machine's last boot left are no more.
func TestRaisesOfAnotherBootAreOver(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string]bool{boot: true, "another": false} {
		state := t.TempDir()
		j, err := journal.Open(state, of, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		e := journal.Entry{ID: workload.ID{Path: "/a", Inode: 7}, Knob: plan.Quota, Original: "50ms", Min: "50ms",
			Max: "150ms", Baseline: "50ms"}
		if err := errors.Join(j.Claim(e), j.Close()); err != nil {
			t.Fatal(err)
		}
		g := &watcher{place: lock.Place{StateDir: state}, log: slog.New(slog.DiscardHandler)}
		if got := g.entries(); got != want {
			t.Errorf("a journal of boot %s: entries %v, want %v", of, got, want)
		}
	}
}
