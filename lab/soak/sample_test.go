package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestHoldsOf: a descriptor of a file that is there is counted apart, once for each file; any other is what the process
// holds.
func TestHoldsOf(t *testing.T) {
	root := t.TempDir()
	holds := func() string {
		t.Helper()
		h, err := holdsOf(os.Getpid(), root)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d of groups, %d others", h.open, h.files)
	}
	h, err := holdsOf(os.Getpid(), root)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "cpu.stat")
	open := func(flag int) {
		t.Helper()
		f, err := os.OpenFile(file, flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
	}
	for _, step := range []struct {
		what         string
		do           func()
		open, others int64
	}{
		{"one file", func() { open(os.O_CREATE | os.O_RDWR) }, 1, 0},
		{"the same file again", func() { open(os.O_RDONLY) }, 1, 1},
		{"it is removed", func() { _ = os.Remove(file) }, 0, 2},
		{"another one of the same name", func() { open(os.O_CREATE | os.O_RDWR) }, 1, 2},
	} {
		step.do()
		if got, want := holds(), fmt.Sprintf("%d of groups, %d others", step.open, h.files+step.others); got != want {
			t.Errorf("%s: %s, want %s", step.what, got, want)
		}
	}
}
