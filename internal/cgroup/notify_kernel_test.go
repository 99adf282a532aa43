package cgroup_test

import (
	"os"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
)

// TestKernelNotify: a write of a quota is counted once, by any process and through any descriptor. Reads, writes of
// other files and opening without a write are not counted.
func TestKernelNotify(t *testing.T) {
	g := cgrouptest.New(t)
	file, text, other := g.File("cpu.max"), "50000 100000", g.File("cpu.weight")
	if g.Tree().Version() == cgroup.V1 {
		file, text, other = g.File("cpu.cfs_quota_us"), "50000", g.File("cpu.shares")
	}
	n, err := cgroup.NewNotify(g.Tree(), g.Dir().Root())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.Watch(g.Path); err != nil {
		t.Fatal(err)
	}
	open := func(name string, flags int) *os.File {
		t.Helper()
		f, err := os.OpenFile(name, os.O_WRONLY|flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	write := func(f *os.File, text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	var kept *os.File
	for _, c := range []struct {
		what string
		do   func()
		want int
	}{
		{"nothing", func() {}, 0},
		{"our own way of writing", func() {
			if err := g.Tree().SetQuota(g.Path, 40*ms); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a shell's", func() { f := open(file, os.O_TRUNC); write(f, text); f.Close() }, 1},
		{"twice", func() {
			for range 2 {
				f := open(file, os.O_TRUNC)
				write(f, text)
				f.Close()
			}
		}, 2},
		{"opened and not written", func() { open(file, 0).Close() }, 0},
		{"read", func() { _, _ = os.ReadFile(file) }, 0},
		{"another file", func() { f := open(other, 0); write(f, "100"); f.Close() }, 0},
		{"truncated so far", func() { kept = open(file, os.O_TRUNC) }, 0},
		{"then written", func() { write(kept, text) }, 0},
		{"and closed", func() { kept.Close() }, 1},
		{"not watched", func() { n.Unwatch(g.Path); f := open(file, 0); write(f, text); f.Close() }, 0},
	} {
		c.do()
		counts, lost := n.Writes()
		if counts[g.Path] != c.want || lost {
			t.Errorf("%s: %d writes, want %d; lost %v", c.what, counts[g.Path], c.want, lost)
		}
	}
	if err := n.Watch(g.Path); err != nil {
		t.Fatal(err)
	}
	g.Remove()
	if counts, _ := n.Writes(); counts[g.Path] != 0 {
		t.Errorf("%d writes of a group that is gone", counts[g.Path])
	}
	if err := n.Watch(g.Path); err == nil {
		t.Error("a group that is gone is watched")
	}
}
