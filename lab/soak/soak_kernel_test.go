package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/lab/frame"
)

// TestFilesOfGroupsThatAreGone: the kernel names such a file as before,
// also when there is a new group of the same name.
func TestFilesOfGroupsThatAreGone(t *testing.T) {
	parent := cgrouptest.New(t)
	others := func(what string, open, more int64) {
		t.Helper()
		h, err := holdsOf(os.Getpid(), cgrouptest.Root())
		if err != nil {
			t.Fatal(err)
		}
		if h.open != open || h.files != more {
			t.Errorf("%s: %d of groups and %d others, want %d and %d", what, h.open, h.files, open, more)
		}
	}
	child := parent.Child("c")
	before, err := holdsOf(os.Getpid(), cgrouptest.Root())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(child.File("cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	others("the group is there", before.open+1, before.files)
	child.Remove()
	others("it is gone", before.open, before.files+1)
	parent.Child("c")
	others("another one has its name", before.open, before.files+1)
}

// TestSoakOnRealGroups runs the soak, small and short, and expects that all of it happens and nothing is left
// behind, also when it is interrupted. It is too short to say what grows.
func TestSoakOnRealGroups(t *testing.T) {
	cgrouptest.New(t) // groups can be made here
	slow := time.Duration(1)
	if os.Getenv("PLIMSOLL_EMULATED") != "" { // an agent takes ten seconds to start
		slow = 4
	}
	s := &settings{Settings: frame.Settings{Root: cgrouptest.Root(), Plimsoll: cgrouptest.Binary(t)}, containers: 20,
		span: slow * 12 * time.Second, kill: slow * 3 * time.Second,
		last: slow * 4 * time.Second, churn: 20, flap: slow * 4 * time.Second,
		every: 250 * time.Millisecond, seed: 1}
	t.Setenv("TMPDIR", t.TempDir())
	r, err := frame.Run(t.Context(), "soak", s, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kills < 2 || r.Flaps < 2 || r.Owner.Resizes == 0 || r.Owner.Restarts == 0 || r.Owner.Replaced == 0 ||
		r.Owner.Jobs == 0 {
		t.Errorf("too little happened: %+v", r.Owner)
	}
	if len(r.Lost)+len(r.AfterStop)+len(r.AfterRestore)+r.LeftMaps > 0 || r.LeftByKill == 0 {
		t.Errorf("lost %v, after the stop %v, after the kill %d, after the restore %v, %d maps", r.Lost, r.AfterStop,
			r.LeftByKill, r.AfterRestore, r.LeftMaps)
	}
	for _, x := range r.Samples {
		if x.RSS < 1<<20 || x.Files < 10 || x.Threads < 2 || x.Goroutines < 5 || x.Watches < int64(r.Groups) ||
			x.Journal == 0 {
			t.Fatalf("%+v, of %d groups", x, r.Groups)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := frame.Run(ctx, "soak", s, t.Logf); err == nil {
		t.Error("an interrupted soak gave a result")
	}
	cgrouptest.NothingLeft(t, "plimsoll-soak-")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "plimsoll-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
