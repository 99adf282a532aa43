package reserve

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// fence carries out a change of a partition. The kernel makes one only where the groups above hand the CPUs down.
func (w *world) fence(c plan.Change, r plan.Result) plan.Result {
	w.t.Helper()
	key := string(c.Knob) + " " + c.Cgroup.Path
	if held := w.held(c.Cgroup.Path, c.Knob); held != c.From {
		w.t.Fatalf("%+v, but there is %q", c, held)
	}
	if c.To == "root" {
		for _, up := range append(slices.Collect(workload.Above(c.Cgroup.Path)), c.Cgroup.Path) {
			if own := set(w.t, w.fences["exclusive "+up]); !w.effective(c.Cgroup.Path).Within(own) {
				w.t.Fatalf("%s hands down %s, and %s is to have %s", up, own, c.Cgroup.Path, w.effective(c.Cgroup.Path))
			}
		}
		if w.refuse == "partition" {
			r.Outcome, r.InForce, r.Err = plan.Refused, c.From, "the kernel cannot make the partition"
			return r
		}
	}
	w.fences[key] = string(c.To)
	if c.To == "" || c.To == plan.Member {
		delete(w.fences, key)
	}
	return r
}

func fenced(t *testing.T) *world {
	w := newWorld(t, true, 8)
	w.rules.Policy, w.fences = strategy.ReserveAuto, map[string]string{}
	w.make("/k", "/k/p", "/k/p/a", "/k/b", "/k/c", "/s")
	return w
}

// TestFence: who has CPUs to itself is a partition, who shares them is none, and in the end nothing stands.
func TestFence(t *testing.T) {
	w := fenced(t)
	w.ask("/k/p/a", 2, 2, false)
	w.ask("/k/b", 1, 3, false)
	w.turn()
	out := w.turn()
	w.exclusive(out)
	want := map[string]string{"exclusive /k": "0-1", "exclusive /k/p": "0-1", "exclusive /k/p/a": "0-1",
		"partition /k/p/a": "root"}
	if diff := cmp.Diff(want, w.fences); diff != "" || !out.Shares[0].Partition || out.Shares[1].Partition {
		t.Error(diff, out.Shares)
	}
	w.asking[0].Request, w.asking[0].Limit = 3, 3 // it grows: the partition ends, and begins anew
	w.turn()
	w.turn()
	want = map[string]string{"exclusive /k": "0-1,3", "exclusive /k/p": "0-1,3", "exclusive /k/p/a": "0-1,3",
		"partition /k/p/a": "root"}
	if diff := cmp.Diff(want, w.fences); diff != "" {
		t.Error(diff)
	}
	w.asking = w.asking[1:]
	w.exclusive(w.turn())
	w.asking = nil
	w.turn()
	if len(w.fences) > 0 || !w.idle() {
		t.Errorf("what stands: %v", w.fences)
	}
}

// TestFenceApart: the root has not the CPUs of a partition, and ours are not taken for another's, whose CPUs are
// written to no group.
func TestFenceApart(t *testing.T) {
	w := fenced(t)
	w.ask("/k/p/a", 2, 2, false)
	w.turn()
	w.turn()
	w.apart = cpu.Set{0, 1, 6, 7} // ours, and another's
	w.ask("/k/b", 4, 4, false)
	out := w.turn()
	w.exclusive(out)
	if len(out.Shares) != 1 || out.Shares[0].Own.String() != "0-1" || len(out.Refused) != 1 ||
		!strings.Contains(out.Refused[0].Why, "2 are isolated or in another's partition (6-7)") {
		t.Errorf("%+v, refused %v", out.Shares, out.Refused)
	}
	for group, want := range map[string]string{"/k": "", "/k/b": "2-5", "/s": "2-5"} {
		if got := w.sets[group].String(); got != want {
			t.Errorf("%s is bound to %q, want %q", group, got, want)
		}
	}
}

// TestFenceBesideOthers: a group above that passes CPUs down to another's partition passes ours down too, and in the
// end those that it did. A container that has such CPUs of its owner's becomes no partition.
func TestFenceBesideOthers(t *testing.T) {
	w := fenced(t)
	w.apart = cpu.Set{6, 7}
	w.fences["exclusive /k"], w.fences["exclusive /k/b"] = "6-7", "5"
	w.ask("/k/p/a", 2, 2, false)
	w.ask("/k/b", 1, 1, false)
	for range 3 {
		w.exclusive(w.turn())
	}
	want := map[string]string{"exclusive /k": "0-1,6-7", "exclusive /k/p": "0-1", "exclusive /k/p/a": "0-1",
		"partition /k/p/a": "root", "exclusive /k/b": "5"}
	if diff := cmp.Diff(want, w.fences); diff != "" {
		t.Error(diff)
	}
	if got := w.sets["/s"].String(); got != "3-5" {
		t.Errorf("/s is bound to %s", got)
	}
	w.asking = nil
	w.turn()
	want = map[string]string{"exclusive /k": "6-7", "exclusive /k/b": "5"}
	if diff := cmp.Diff(want, w.fences); diff != "" || !w.idle() {
		t.Error(diff)
	}
}

// TestFenceApartInABranch: the CPU that a bound branch keeps for its other groups is none of another's partition.
func TestFenceApartInABranch(t *testing.T) {
	w := fenced(t)
	w.make("/q", "/q/a", "/q/b")
	w.sets["/q"], w.apart = cpu.Set{6, 7}, cpu.Set{6}
	w.ask("/q/a", 1, 1, false)
	if out := w.turn(); len(out.Shares) > 0 || len(out.Refused) != 1 {
		t.Errorf("%+v, refused %v, /q/b is bound to %q", out.Shares, out.Refused, w.sets["/q/b"])
	}
}

// TestFenceWithoutAList: another's partition without cpuset.cpus, which counts as bound, gets no list and gives no CPU.
func TestFenceWithoutAList(t *testing.T) {
	w := fenced(t)
	in := Input{Rules: w.rules, Inherits: true, Topology: w.topo, Isolated: cpu.Set{6, 7}, Partitioned: cpu.Set{6, 7},
		Groups:     []Group{{ID: workload.ID{Path: "/a"}}, {ID: workload.ID{Path: "/rt"}, Baseline: cpu.Set{6, 7}}},
		Containers: []Container{{ID: workload.ID{Path: "/a"}, Request: 5, Limit: 5}}}
	out := new(State).Decide(in)
	if len(out.Shares) != 1 || out.Shares[0].Own.String() != "0-4" || len(out.Pinned) != 1 {
		t.Errorf("%+v", out)
	}
	for _, x := range out.Intents {
		if x.Path == "/rt" {
			t.Errorf("%+v", x)
		}
	}
}

// TestFenceBesideClamped: groups whose empty list was restored as all CPUs but those of another's partition are not
// bound. Such lists exist since the last agent (apply.Writer.free).
func TestFenceBesideClamped(t *testing.T) {
	w := fenced(t)
	all := cpu.Set{0, 1, 2, 3, 4, 5, 6}
	in := Input{Rules: w.rules, Inherits: true, Topology: w.topo, Isolated: cpu.Set{7}, Partitioned: cpu.Set{7},
		Groups: []Group{{ID: workload.ID{Path: "/k"}, CPUs: all, Baseline: all},
			{ID: workload.ID{Path: "/k/a"}, CPUs: all, Baseline: all},
			{ID: workload.ID{Path: "/s"}, CPUs: all, Baseline: all}},
		Containers: []Container{{ID: workload.ID{Path: "/k/a"}, Request: 6, Limit: 6}}}
	out := new(State).Decide(in)
	if len(out.Shares) != 1 || out.Shares[0].Own.String() != "0-5" || len(out.Refused)+len(out.Pinned) > 0 {
		t.Errorf("shares %+v, refused %v, pinned %v", out.Shares, out.Refused, out.Pinned)
	}
	in.Containers[0].Request = 7
	if out := new(State).Decide(in); len(out.Refused) != 1 || strings.Contains(out.Refused[0].Why, "within") {
		t.Errorf("it may use all CPUs of the node, but it is refused because %v", out.Refused)
	}
}

// TestFenceRefused: where the kernel does not make a partition, or it breaks, the cpusets do.
func TestFenceRefused(t *testing.T) {
	w := fenced(t)
	w.refuse = "partition"
	w.ask("/k/p/a", 2, 2, false)
	w.turn()
	out := w.turn()
	w.exclusive(out)
	if len(w.fences) > 0 || len(out.Refused) > 0 || !out.Shares[0].Own.Equal(cpu.Set{0, 1}) {
		t.Errorf("%v %+v", w.fences, out)
	}
	w.refuse = ""
	w.turn()
	if len(w.fences) > 0 {
		t.Errorf("tried again at once: %v", w.fences)
	}
	w.now = w.now.Add(firstGap)
	w.turn()
	if w.fences["partition /k/p/a"] != "root" {
		t.Errorf("not tried again: %v", w.fences)
	}
	w.broken = "/k/p/a"
	w.exclusive(w.turn())
	if len(w.fences) > 0 {
		t.Errorf("broken, and left: %v", w.fences)
	}
}
