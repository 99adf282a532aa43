package agent

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// shelf is the simulated kernel's files, of which some are kept open as cgroup.Dir keeps them.
type shelf struct {
	*sim.Kernel
	most int
	keep map[string]bool
	open map[string]bool // files
}

func (s *shelf) ReadFile(name string) ([]byte, error) {
	if base := path.Base(name); s.keep[path.Dir(name)] && (base == "cpu.stat" || base == "cpuacct.usage") {
		s.open[name] = true
	}
	return s.Kernel.ReadFile(name)
}

func (s *shelf) KeepOnly(most int)     { s.most = most }
func (s *shelf) CloseFiles(dir string) { s.Forget(dir) }

func (s *shelf) KeepOpen(dir string) {
	if strings.Contains(dir, "/") { // else it is the root, which stays open
		s.keep[dir] = true
	}
}

func (s *shelf) Forget(dir string) {
	delete(s.keep, dir)
	for name := range s.open {
		if path.Dir(name) == dir {
			delete(s.open, name)
		}
	}
}

// of counts the open files of a group.
func (s *shelf) of(group string) (n int) {
	for name := range s.open {
		if strings.HasSuffix(path.Dir(name), group) {
			n++
		}
	}
	return n
}

// shelve has the world's agent read through a shelf.
func (w *world) shelve() *shelf {
	w.t.Helper()
	s := &shelf{Kernel: w.kernel, keep: map[string]bool{}, open: map[string]bool{}}
	tree, err := cgroup.Detect(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.agent.Tree, w.agent.reader.Tree = tree, tree
	return s
}

// TestOpenFiles: idle groups have no open files, a throttled one has while it is and for a while, and one that is gone
// has none.
func TestOpenFiles(t *testing.T) {
	w, _ := subscribed(t, true)
	s := w.shelve()
	for i := range 20 {
		w.calm(fmt.Sprint("/calm", i), strategy.Auto)
	}
	w.quietPod()
	w.hog("/hog")
	w.run(5 * time.Second)
	if s.most != 512 {
		t.Errorf("%d files may be open of 24 groups", s.most)
	}
	if n := s.of("/hog"); n == 0 {
		t.Error("the files of a throttled group are opened anew for each look")
	}
	if len(s.open) != s.of("/hog") || len(s.keep) > 2 {
		t.Errorf("open: %v, held: %v", s.open, s.keep)
	}
	w.kernel.SetLoad("/hog", sim.Load{})
	w.run(50 * time.Second)
	if s.of("/hog") == 0 {
		t.Error("the files of a group that may soon be throttled again are closed")
	}
	w.run(2 * time.Minute)
	if len(s.open) != 0 || len(s.keep) != 0 {
		t.Errorf("all is idle, open: %v, held: %v", s.open, s.keep)
	}
	w.kernel.SetLoad("/hog", sim.Spin(2))
	w.run(5 * time.Second)
	if s.of("/hog") == 0 {
		t.Error("the group throttles again, and its files are opened for each look")
	}
	w.place.pods = slices.DeleteFunc(slices.Clone(w.place.pods), func(p workload.Pod) bool {
		return p.Containers[0].Path == "/hog"
	})
	w.run(time.Second)
	if len(s.open) != 0 || len(s.keep) != 0 {
		t.Errorf("the group is gone, open: %v, held: %v", s.open, s.keep)
	}
}

// TestOpenFilesOfAGroupMadeAnew: what was held of the old group is not held of the new one of its name.
func TestOpenFilesOfAGroupMadeAnew(t *testing.T) {
	w, _ := subscribed(t, true)
	s := w.shelve()
	w.hog("/hog")
	w.run(time.Second)
	if s.of("/hog") == 0 {
		t.Fatal("nothing is open")
	}
	w.kernel.RemoveGroup("/hog")
	w.place.pods = nil
	w.calm("/hog", strategy.None) // which is never looked at often
	w.run(time.Minute)
	if len(s.open) != 0 || len(s.keep) != 0 {
		t.Errorf("open: %v, held: %v", s.open, s.keep)
	}
}

// TestOpenFilesWhilePolling: while a pod is idle its own counters are read at each look,
// and its containers have no files open.
func TestOpenFilesWhilePolling(t *testing.T) {
	w := newWorld(t)
	s := w.shelve()
	w.quietPod()
	w.run(5 * time.Second)
	if s.of("/pod") == 0 || len(s.open) != s.of("/pod") {
		t.Errorf("open: %v", s.open)
	}
}
