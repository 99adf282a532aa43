package agent

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/exclusive"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// TestReserveInheritedLate: on v1 a group that copied CPUs of ours is not taken for one that its owner has bound,
// though its parent has other CPUs when it is first seen.
func TestReserveInheritedLate(t *testing.T) {
	for name, change := range map[string]func(*world){
		"put back by its owner": func(w *world) {
			w.kernel.AddGroup("/b/late")
			if err := w.kernel.ForeignWrite("cpuset/b/cpuset.cpus", "0-3"); err != nil {
				t.Fatal(err)
			}
		},
		"made while it is put back": func(w *world) {
			made := false
			w.kernel.Fault = func(op, name string, _ []byte) error {
				if op == "write" && name == "cpuset/b/cpuset.cpus" && !made {
					made = true
					w.kernel.AddGroup("/b/late")
				}
				return nil
			}
			w.place.pods = nil
		},
	} {
		w := newShared(t, 1, 4)
		w.made("/a", 200*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		w.run(time.Second)
		change(w)
		w.run(30 * time.Second)
		if r := w.agent.Status().Reserve; r != nil && len(r.Pinned) > 0 {
			t.Errorf("%s: %d groups are taken for bound", name, len(r.Pinned))
		}
		if err := w.agent.stop(); err != nil {
			t.Error(err)
		}
		if got, want := w.files("/b", "/b/late"), "/b=0-3 max, /b/late=0-3 max"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// knobs lists what the journal knows, by group and knob.
func (w *world) knobs() []string {
	w.t.Helper()
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, e := range j.Entries() {
		list = append(list, e.Path+" "+string(e.Knob))
	}
	slices.Sort(list)
	return list
}

// TestReserveGone: what was known of the CPUs of a group goes with it, from the journal too.
func TestReserveGone(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		w.run(time.Second)
		w.kernel.RemoveGroup("/b")
		handed := plan.Key{ID: workload.ID{Path: "/gone", Inode: 99}, Knob: plan.SubtreeControl}
		w.agent.ledger.Adopt(handed, "0", "1")
		if err := w.agent.Writer.Adopt(handed.ID, handed.Knob, "1", "0"); err != nil {
			t.Fatal(err)
		}
		w.run(5 * time.Second)
		if diff := cmp.Diff([]string{"/a cpus", "/a quota"}, w.knobs()); diff != "" {
			t.Errorf("-want +in the journal\n%s", diff)
		}
		w.kernel.RemoveGroup("/a")
		w.place.pods = nil
		w.run(5 * time.Second)
		known := w.agent.ledger.Known(func(k plan.Key) bool { return exclusive.OfCPUs(k.Knob) })
		if left := w.knobs(); len(known)+len(left) > 0 || w.agent.cpus.Active() {
			t.Errorf("in the end %v are known, in the journal %v", known, left)
		}
	})
}

// TestReserveDryRun: a dry run knows who has CPUs, and what stands because of the agent.
func TestReserveDryRun(t *testing.T) {
	w := newShared(t, 1, 4)
	w.made("/a", 100*ms, workload.ExclusiveYes, 1)
	w.kernel.AddGroup("/b")
	w.run(time.Second)
	o := w.agent.DryRunOptions()
	o.Tree, o.Host, o.Log = w.tree, w.host, w.agent.Log
	dry := New(o)
	left, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	dry.Adopt(left.Entries())
	dry.Plan(w.kernel.Now())
	if diff := cmp.Diff(w.agent.Status().Reserve, dry.Status().Reserve); diff != "" {
		t.Errorf("-agent +dry run\n%s", diff)
	}
}

// TestReserveResumed: a container that a hold has freed counts as having no CPUs. After the hold it is bound in the
// first turn, and its quota is lifted only then.
func TestReserveResumed(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		w.run(time.Second)
		if _, err := w.agent.Hold(t.Context(), true, "a test"); err != nil {
			t.Fatal(err)
		}
		w.run(3 * time.Second)
		if r := w.agent.Status().Reserve; r == nil || len(r.Exclusive) > 0 {
			t.Errorf("held: status %+v", r)
		}
		if err := w.agent.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"/a=0 100ms", "/a=0 max"} {
			w.kernel.Advance(w.agent.Tick(w.kernel.Now()).Next.Sub(w.kernel.Now()))
			if got := w.files("/a"); got != want {
				t.Errorf("resumed: %s, want %s", got, want)
			}
		}
	})
}

// TestReserveOrder: a quota is lifted only once the group is bound, and the group is bound until the quota is back.
func TestReserveOrder(t *testing.T) {
	bothVersions(t, func(t *testing.T, w *world, version int) {
		w.made("/a", 100*ms, workload.ExclusiveYes, 1)
		w.kernel.AddGroup("/b")
		before := w.files("/a", "/b")
		refused := "cpuset.cpus"
		w.kernel.Fault = func(op, name string, _ []byte) error {
			if op == "write" && strings.Contains(name, "a/"+refused) {
				return syscall.EACCES
			}
			return nil
		}
		w.run(3 * time.Second)
		if got := w.files("/a", "/b"); got != before {
			t.Errorf("not bound: %s, want %s", got, before)
		}
		refused = "nothing"
		w.run(20 * time.Second)
		during := map[int]string{1: "/a=0 max, /b=1-3 max", 2: "/a=0 max, /b=1-3 max"}[version]
		if got := w.files("/a", "/b"); got != during {
			t.Fatalf("%s, want %s", got, during)
		}
		refused = map[int]string{1: "cpu.cfs_quota_us", 2: "cpu.max"}[version]
		w.place.pods = slices.Clone(w.place.pods)
		w.place.pods[0].Containers = slices.Clone(w.place.pods[0].Containers)
		w.place.pods[0].Containers[0].Exclusive = workload.ExclusiveNo
		w.run(10 * time.Second)
		if got, want := w.files("/a"), "/a=0 max"; got != want {
			t.Errorf("without its quota: %s, want %s", got, want)
		}
		refused = "nothing"
		w.run(70 * time.Second)
		if got := w.files("/a", "/b"); got != before {
			t.Errorf("in the end %s, want %s", got, before)
		}
		w.place.pods = slices.Clone(w.place.pods)
		w.place.pods[0].Containers = slices.Clone(w.place.pods[0].Containers)
		w.place.pods[0].Containers[0].Exclusive = workload.ExclusiveYes
		w.run(3 * time.Second)
		if got := w.files("/a", "/b"); got != during {
			t.Errorf("once more: %s, want %s", got, during)
		}
		w.place.pods = nil
		w.run(200 * time.Millisecond) // not with the next look
		if got := w.files("/a", "/b"); got != before {
			t.Errorf("asks no more: %s, want %s", got, before)
		}
	})
}

// TestReserveNotPutBack: CPUs that cannot be put back are a problem until they are.
func TestReserveNotPutBack(t *testing.T) {
	w := newShared(t, 1, 4)
	w.made("/a", 200*ms, workload.ExclusiveYes, 1)
	w.kernel.AddGroup("/b")
	w.run(time.Second)
	tries := w.refuse("write", "/b/cpuset.cpus", "0-3\n", syscall.EACCES)
	w.place.pods = nil
	w.run(3 * time.Second)
	w.wantProblem(`/b: its cpus could not be restored to "0-3"`)
	w.kernel.Fault = nil
	w.run(20 * time.Second)
	w.wantProblem("")
	if got := w.files("/b"); got != "/b=0-3 max" || *tries != 1 {
		t.Errorf("%s, refused %d times", got, *tries)
	}
}

// TestUseOfExclusiveCPUsIsRead: with throttle events too, the guard knows what a container uses of its exclusive CPUs,
// and takes no raise of another back because of it.
func TestUseOfExclusiveCPUsIsRead(t *testing.T) {
	w := newShared(t, 1, 4)
	w.subscribes(true)
	w.made("/a", 200*ms, workload.ExclusiveYes, 2)
	w.hog("/hog")
	w.run(time.Minute)
	w.kernel.SetLoad("/a", sim.Spin(2))
	w.run(3 * time.Second) // the last reading is up to a second old: until then the use may count as the share pool's
	for range 30 {
		w.run(time.Second)
		w.wantRaised("/hog", 50*ms)
	}
}
