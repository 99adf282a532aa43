package reserve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
)

// TestConfine: who asks is bound to exclusive CPUs, everybody else to the rest, and all is put back.
func TestConfine(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 8)
		w.make("/kube", "/kube/pod", "/kube/pod/a", "/kube/pod/pause", "/kube/other", "/kube/other/b", "/system",
			"/system/c")
		before := fmt.Sprint(w.sets)
		w.ask("/kube/pod/a", 2, 2, false)
		out := w.turn()
		w.exclusive(out)
		if got := out.Shares[0]; got.Own.String() != "0-1" || !got.Unlimited || out.Shared.String() != "2-7" {
			t.Errorf("%+v, shared %s", got, out.Shared)
		}
		writes := w.writes
		if v2 && writes != 4 {
			t.Errorf("%d writes on v2: the topmost do", writes)
		}
		w.exclusive(w.turn())
		if w.writes != writes {
			t.Errorf("%d writes where nothing happened", w.writes-writes)
		}
		w.make("/kube/pod/new", "/system/new")
		w.exclusive(w.turn())
		w.remove("/kube/pod/new")
		w.remove("/system/new")
		w.asking = nil
		w.turn()
		if after := fmt.Sprint(w.sets); after != before || !w.idle() {
			t.Errorf("before %s, after %s", before, after)
		}
	})
}

// TestBurstable: one with a limit above its request keeps the share pool, unless it is strict.
func TestBurstable(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b", "/c", "/d")
		w.ask("/a", 1, 3, false)
		w.ask("/b", 1, math.Inf(1), true)
		out := w.turn()
		w.exclusive(out)
		want := []Share{
			{ID: w.asking[0].ID, Own: cpu.Set{0}, CPUs: cpu.Set{0, 2, 3}, Request: 1},
			{ID: w.asking[1].ID, Own: cpu.Set{1}, CPUs: cpu.Set{1}, Request: 1, Unlimited: true},
		}
		if diff := cmp.Diff(want, out.Shares); diff != "" {
			t.Error(diff)
		}
		w.ask("/c", 1, 1, false)
		out = w.turn() // /a leaves the CPU that /c gets
		w.exclusive(out)
		w.ask("/d", 1, 1, false)
		out = w.turn()
		w.exclusive(out)
		if len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, "0 are left") {
			t.Errorf("refused %v", out.Refused)
		}
	})
}

// TestPinned: whom another program has bound keeps its CPUs, and they are not given away.
func TestPinned(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b", "/bound", "/bound/in")
		w.sets["/bound/in"] = cpu.Set{0}
		w.sets["/b"] = cpu.Set{1}
		w.ask("/a", 2, 2, false)
		w.ask("/b", 1, 1, false)
		out := w.turn()
		w.exclusive(out)
		if len(out.Shares) != 1 || out.Shares[0].Own.String() != "2-3" || len(out.Pinned) != 2 {
			t.Fatalf("%+v, pinned %v", out.Shares, out.Pinned)
		}
		if got := w.effective("/bound/in").String() + " " + w.effective("/b").String(); got != "0 1" {
			t.Errorf("the bound ones run on %s", got)
		}
		if len(out.Refused) != 1 || out.Refused[0].Why != "its owner has bound it to 1: left alone" {
			t.Errorf("%v", out.Refused)
		}
	})
}

// TestNarrowBranch: a branch that is bound as a whole keeps a CPU for the others in it.
func TestNarrowBranch(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 8)
		w.make("/kube")
		w.sets["/kube"] = cpu.Set{4, 5, 6}
		w.make("/kube/a", "/kube/b", "/kube/c")
		w.ask("/kube/a", 2, 2, false)
		w.ask("/kube/b", 1, 1, false)
		out := w.turn()
		w.exclusive(out)
		if got := w.effective("/kube/c").String(); got != "4" || len(out.Refused) != 1 ||
			!strings.Contains(out.Refused[0].Why, "0 of them within 5-6") {
			t.Errorf("the other has %s, refused %v", got, out.Refused)
		}
		w.asking = nil
		w.turn()
		if got := w.sets["/kube"].String(); got != "4-6" || !w.idle() {
			t.Errorf("in the end /kube has %s", got)
		}
	})
}

// TestForeign: a reset is answered after a back-off, another value never.
func TestForeign(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b", "/c")
		w.ask("/a", 1, 1, false)
		original := w.sets["/b"]
		w.turn()
		w.sets["/b"] = original
		w.turn()
		if w.events["/b"] != ledger.Reset || !w.sets["/b"].Equal(original) {
			t.Fatalf("%v, /b %s", w.events, w.sets["/b"])
		}
		w.now = w.now.Add(firstGap)
		w.exclusive(w.turn())
		w.sets["/b"] = cpu.Set{1, 2}
		if out := w.turn(); len(out.Pinned) != 1 || !w.sets["/b"].Equal(cpu.Set{1, 2}) {
			t.Fatalf("%+v", out)
		}
		w.sets["/a"] = cpu.Set{3}
		if out := w.turn(); w.events["/b"] != ledger.Overrode || len(out.Shares) != 0 ||
			!strings.Contains(out.Refused[0].Why, "another program has set its CPUs to 3") {
			t.Fatalf("%+v", out)
		}
		if !w.sets["/c"].Equal(original) || !w.sets["/a"].Equal(cpu.Set{3}) {
			t.Errorf("what is left: %v", w.sets)
		}
	})
}

// TestRefused: what the kernel does not take is not half done.
func TestRefused(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		w := newWorld(t, v2, 4)
		w.make("/a", "/b")
		before := fmt.Sprint(w.sets)
		w.ask("/a", 1, 1, false)
		w.refuse = "/a"
		w.turn()
		out := w.turn()
		if got := fmt.Sprint(w.sets); got != before || len(out.Refused) != 1 ||
			out.Refused[0].Why != "the kernel does not like it" {
			t.Errorf("%s, refused %v", got, out.Refused)
		}
		w.refuse = ""
		w.now = w.now.Add(firstGap)
		w.exclusive(w.turn())
	})
}

// TestHistories: through any history the kernel refuses nothing, nobody shares what is somebody's own, and in the end
// all is as it was.
func TestHistories(t *testing.T) {
	versions(t, func(t *testing.T, v2 bool) {
		for seed := range uint64(150) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			w := newWorld(t, v2, 3+rnd.IntN(14))
			w.make("/k", "/k/p", "/k/p/a", "/k/p/b", "/s", "/s/x", "/t")
			var made []string
			for step := range 15 {
				switch rnd.IntN(4) {
				case 0:
					g := fmt.Sprint([]string{"/k", "/k/p", "/s", ""}[rnd.IntN(4)], "/n", step)
					w.make(g, g+"/deep")
					made = append(made, g)
				case 1:
					if len(made) > 0 {
						w.remove(made[0] + "/deep")
						w.remove(made[0])
						made = made[1:]
					}
				case 2:
					if len(made) > 0 {
						g, request := made[rnd.IntN(len(made))], draw(rnd, 6)
						w.asking = slices.DeleteFunc(w.asking, func(c Container) bool { return c.Path == g })
						w.ask(g, request, request+float64(rnd.IntN(2)), rnd.IntN(3) == 0)
					}
				case 3:
					if len(w.asking) > 0 {
						w.asking = slices.Delete(w.asking, 0, 1)
					}
				}
				w.exclusive(w.turn())
			}
			w.asking = nil
			w.turn()
			w.turn()
			for g, s := range w.sets {
				if v2 && len(s) != 0 || !v2 && !s.Equal(w.topo.Set()) {
					t.Fatalf("seed %d: %s holds %s", seed, g, s)
				}
			}
		}
	})
}
