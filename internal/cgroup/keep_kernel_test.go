package cgroup_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
)

// descriptors lists the open files below a directory, with their numbers.
func descriptors(t *testing.T, below string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, below+"/") {
			list = append(list, e.Name()+" "+path.Base(to))
		}
	}
	return list
}

// TestKernelHeldFiles: only a group named by KeepOpen has open files. The second refill uses the descriptor of the
// first, also after CloseFiles. A group that was removed has no open file.
func TestKernelHeldFiles(t *testing.T) {
	g := cgrouptest.New(t)
	cgrouptest.Need(t, g.Features().Get(cgroup.FeatureBurst))
	root, tree := path.Dir(g.File("cpu.stat")), g.Tree()
	g.Limit(20 * time.Millisecond)
	tree.KeepOnly(10)
	look := func() {
		t.Helper()
		bandwidth(t, g)
		if _, err := tree.Stat(g.Path); err != nil {
			t.Fatal(err)
		}
	}
	refill := func(burst time.Duration) []string {
		t.Helper()
		if err := tree.SetBurst(g.Path, burst); err != nil {
			t.Fatal(err)
		}
		if got, err := tree.Burst(g.Path); err != nil || got != burst {
			t.Fatalf("burst %v, %v, want %v", got, err, burst)
		}
		return descriptors(t, root)
	}
	look()
	if open := refill(0); len(open) != 0 {
		t.Errorf("of a group without KeepOpen %q are open", open)
	}
	tree.KeepOpen(g.Path)
	look()
	first := refill(3 * time.Millisecond)
	if len(first) != 2 {
		t.Errorf("of a group after KeepOpen %q are open, want cpu.stat and the burst", first)
	}
	if again := refill(7 * time.Millisecond); !slices.Equal(first, again) {
		t.Errorf("the second refill has opened a file: %q, then %q", first, again)
	}
	tree.CloseFiles(g.Path)
	look()
	if rest := refill(0); len(rest) != 1 || !slices.Contains(first, rest[0]) || !strings.Contains(rest[0], "burst") {
		t.Errorf("of a group that is released %q are open, before %q", rest, first)
	}
	tree.Forget(g.Path)
	if open := descriptors(t, root); len(open) != 0 {
		t.Errorf("of a group that is forgotten %q are open", open)
	}
}

// TestKernelWriteToAGroupMadeAnew: an open file of a group that is gone does not keep a write from the new one.
func TestKernelWriteToAGroupMadeAnew(t *testing.T) {
	g := cgrouptest.New(t)
	cgrouptest.Need(t, g.Features().Get(cgroup.FeatureBurst))
	tree, dir := g.Tree(), g.Dir()
	tree.KeepOnly(10)
	tree.KeepOpen(g.Path)
	g.Limit(20 * time.Millisecond)
	if err := tree.SetBurst(g.Path, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	root := path.Dir(g.File("cpu.stat"))
	if n := len(descriptors(t, root)); n != 1 {
		t.Fatalf("%d files are open", n)
	}
	// Past the Dir, which would close its files.
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	if err := tree.SetBurst(g.Path, 10*time.Millisecond); err == nil {
		t.Error("a write to a group that is gone was taken")
	}
	if err := dir.Mkdir(tree.Dir(g.Path)); err != nil {
		t.Fatal(err)
	}
	g.Limit(30 * time.Millisecond)
	for _, burst := range []time.Duration{15 * time.Millisecond, 20 * time.Millisecond} {
		if err := tree.SetBurst(g.Path, burst); err != nil || bandwidth(t, g).Burst != burst {
			t.Errorf("the new group has %v, %v", bandwidth(t, g), err)
		}
	}
}

// TestKernelLinks: the kernel counts the groups in a group.
func TestKernelLinks(t *testing.T) {
	g := cgrouptest.New(t)
	for want := range 3 {
		inode, groups, err := g.Tree().Links(g.Path)
		if id, _ := g.Tree().Inode(g.Path); err != nil || groups != want || inode != id {
			t.Errorf("%d groups in group %d, want %d in %d, %v", groups, inode, want, id, err)
		}
		g.Child(string(rune('a' + want)))
	}
}
