package reserve

import (
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

// TestOwner: where the kubelet shares out the CPUs, nothing is done, and what was is undone.
func TestOwner(t *testing.T) {
	w := newWorld(t, true, 4)
	w.make("/a", "/b")
	w.ask("/a", 1, 1, false)
	w.turn()
	w.owner = "the kubelet"
	out := w.turn()
	if len(w.sets["/a"])+len(w.sets["/b"]) != 0 || out.Refused[0].Why != "the kubelet: left alone" || !w.idle() {
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
		if out := w.turn(); len(out.Pinned) > 0 {
			t.Errorf("offline is taken for foreign: %+v", out)
		}
		w.topo = all
		w.now = w.now.Add(time.Hour)
		w.turn()
		w.exclusive(w.turn())
		w.asking = nil
		w.turn()
		w.turn()
		if !w.idle() {
			t.Errorf("something of ours stands: %v", w.sets)
		}
	})
}

// TestNarrowBranchAndOutside: a container outside of a branch that is bound as a whole does not get the last CPU of the
// others in the branch. They would have none, and on v2 run on CPUs that are another's own.
func TestNarrowBranchAndOutside(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/kube", "/out", "/two")
		w.sets["/kube"] = cpu.Set{0, 1}
		w.make("/kube/a", "/kube/other")
		w.ask("/kube/a", 1, 1, false)
		w.exclusive(w.turn())
		w.ask("/out", 2, 2, false)
		out := w.turn()
		w.exclusive(out)
		w.ask("/two", 1, 1, false)
		out = w.turn()
		w.exclusive(out)
		if got := w.effective("/kube/other").String(); got != "0" || len(out.Shares) != 2 || len(out.Refused) != 1 {
			t.Errorf("the other has %s: %+v", got, out)
		}
	})
}

// TestKeepsCPUsUntilTheQuotaIsBack: a container whose quota we removed keeps its CPUs until that is back, whether it no
// longer asks, is to have more or fewer than its own, or finds no room any more. Meanwhile no other container gets them
// to itself.
func TestKeepsCPUsUntilTheQuotaIsBack(t *testing.T) {
	for name, change := range map[string]func(*world){
		"asks no more":  func(w *world) { w.asking = w.asking[1:] },
		"limit is more": func(w *world) { w.asking[0].Limit = 3 },
		"no room":       func(w *world) { w.rules.MinShared = 5 },
		"grows":         func(w *world) { w.asking[0].Request, w.asking[0].Limit, w.asking[1].Request = 5, 5, 3 },
		"kubelet":       func(w *world) { w.owner = "the kubelet" },
	} {
		others := func(sh Share) bool { return sh.Path != "/p/a" && sh.Own.Contains(0) }
		versions(t, func(t *testing.T, v2 bool) {
			w := newWorld(t, v2, 5)
			w.make("/p", "/p/a", "/p/c", "/b")
			w.ask("/p/a", 1, 1, false)
			w.turn()
			w.noQuota = map[string]bool{"/p/a": true}
			w.ask("/b", 2, 2, false)
			change(w)
			for range 2 {
				if out := w.turn(); !out.Waits || slices.ContainsFunc(out.Shares, others) ||
					w.effective("/p/a").String() != "0" || w.owner == "" && len(out.Unconfined) > 0 {
					t.Errorf("%s: it may use %s: %+v", name, w.effective("/p/a"), out)
				}
			}
			w.noQuota = nil
			out := w.turn()
			w.exclusive(out)
			if out.Waits || w.effective("/p/a").Equal(cpu.Set{0}) {
				t.Errorf("%s: with its quota it may use %s: %+v", name, w.effective("/p/a"), out)
			}
		})
	}
}

// TestKeepsCPUsThatItGivesUp: likewise those that it gives up because it asks for less than a CPU.
func TestKeepsCPUsThatItGivesUp(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b", "/c")
		w.ask("/a", 2, 2, false)
		w.turn()
		w.noQuota = map[string]bool{"/a": true}
		w.asking[0].Request, w.asking[0].Limit = 0.5, 0.5
		w.ask("/b", 2, 2, false)
		out := w.turn()
		if got := w.effective("/a").String(); got != "0-1" || len(out.Shares) != 2 ||
			out.Shares[1].Own.String() != "2-3" || !out.Waits {
			t.Errorf("/a may use %s: %+v", got, out)
		}
		w.noQuota = nil
		w.exclusive(w.turn())
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
