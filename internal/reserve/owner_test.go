package reserve

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/workload"
)

// TestOwner: where the kubelet shares out the CPUs, nothing is done, and what was is undone.
func TestOwner(t *testing.T) {
	w := newWorld(t, true, 4)
	w.make("/a", "/b")
	w.ask("/a", 1, 1, false)
	w.turn()
	in := Input{Now: w.now, Rules: w.rules, Inherits: true, Topology: w.topo, Containers: w.asking, Owner: "the kubelet"}
	for _, g := range []string{"/a", "/b"} {
		in.Groups = append(in.Groups, Group{workload.ID{Path: g, Inode: w.inode[g]}, w.sets[g]})
	}
	out := w.state.Decide(in)
	w.state.Learn(w.now, w.carryOut(out.Changes))
	if len(w.sets["/a"])+len(w.sets["/b"]) != 0 || out.Refused[0].Why != "the kubelet: left alone" || !w.state.Idle() {
		t.Errorf("%v, %+v", w.sets, out)
	}
}

// TestOffline: a CPU that goes offline is replaced, and the newest gives way where none is left.
func TestOffline(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b", "/c", "/p", "/p/d")
		w.ask("/a", 1, 1, false)
		w.ask("/p/d", 1, 1, false)
		w.ask("/b", 2, 2, false)
		w.exclusive(w.turn())
		all := w.topo
		w.topo.Places = slices.Delete(slices.Clone(w.topo.Places), 0, 1)
		if !v2 { // the kernel's doing
			for g, s := range w.sets {
				w.sets[g] = s.And(w.topo.Set())
				if len(w.sets[g]) == 0 {
					w.sets[g] = nil
				}
			}
		}
		out := w.turn()
		if len(out.Foreign) > 0 {
			t.Errorf("offline is taken for foreign: %+v", out)
		}
		w.topo = all
		w.now = w.now.Add(time.Hour)
		w.turn()
		w.exclusive(w.turn())
		w.asking = nil
		w.turn()
		w.turn()
		if !w.state.Idle() {
			t.Errorf("something of ours stands: %v", w.sets)
		}
	})
}

// TestShieldGrows: the group of the root's tasks that was made while a CPU was offline gets that CPU when it comes, is
// nobody's, and nobody loses CPUs over it.
func TestShieldGrows(t *testing.T) {
	w := newWorld(t, false, 4)
	w.make("/a")
	w.ask("/a", 1, 1, true)
	w.turn()
	before, all := w.sets["/a"], w.topo
	w.topo.Places = slices.Clone(all.Places)[:3]
	w.make("/shield")
	w.shield = "/shield"
	w.exclusive(w.turn())
	w.topo = all
	out := w.turn()
	if len(out.Pinned) > 0 || !w.sets["/a"].Equal(before) || !w.sets["/shield"].Equal(all.Set().Minus(before)) {
		t.Errorf("%v, before %s: %+v", w.sets, before, out)
	}
	w.exclusive(out)
	w.asking = nil
	w.turn()
	if got := w.sets["/shield"]; !got.Equal(all.Set()) {
		t.Errorf("at the end the shield has %s", got)
	}
}
