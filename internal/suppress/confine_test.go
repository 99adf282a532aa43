package suppress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// smt is a machine of four cores, whose threads are numbered as PCs do: 0 and 4 are of the first.
func smt() cpu.Topology {
	var t cpu.Topology
	for c := range 8 {
		t.Places = append(t.Places, cpu.Place{CPU: c, Core: c % 4})
	}
	return t
}

func TestLastCPUs(t *testing.T) {
	for room, want := range map[float64]string{0: "7", 0.4: "7", 1: "7", 1.995: "3,7", 2.5: "3,7", 3: "3,6-7",
		4: "2-3,6-7", 8: "0-7", 9: "0-7"} {
		if got := lastCPUs(room, smt(), smt().Set()).String(); got != want {
			t.Errorf("room of %g: CPUs %s, want %s", room, got, want)
		}
	}
	for room, want := range map[float64]string{1: "1", 2: "1,5", 3: "0-1,5", 4: "0-1,4-5", 5: "0-1,4-5,7", 8: "0-7"} {
		if got := lastCPUs(room, smt(), cpu.Set{0, 1}).String(); got != want {
			t.Errorf("room of %g, 0-1 first: CPUs %s, want %s", room, got, want)
		}
	}
}

// cpus reads a list.
func cpus(t *testing.T, text string) cpu.Set {
	t.Helper()
	s, err := cpu.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bounded is what happens second by second to offline groups that are bound to CPUs and use four, while others use so
// many.
func bounded(groups []Confined, online ...float64) (list [][]plan.Intent) {
	batch := workload.ID{Path: "/batch", Inode: 7}
	l := Load{CPUs: 8,
		Offline: []Group{{ID: batch, Used: 4, Limit: cpu.Bandwidth{Quota: cpu.Unlimited,
			Period: 100 * time.Millisecond}}},
		Topology: smt(), Confined: groups}
	ask := strategy.Suppress{Enable: true, ThresholdPercent: 65, MinPercent: 5, Policy: strategy.SuppressCPUSet}
	var s State
	for i, used := range online {
		l.Used = used + 4
		list = append(list, s.Decide(time.Unix(int64(i), 0), ask, l))
	}
	return list
}

// TestConfine: at once down, two steps up, and a group that was bound already keeps to what it had.
func TestConfine(t *testing.T) {
	before := map[string]string{"/batch": "0-7", "/batch/a": "0-3", "/batch/b": "0-1", "/batch/c": "1-7"}
	var groups []Confined
	for i, path := range []string{"/batch", "/batch/a", "/batch/b", "/batch/c"} {
		groups = append(groups, Confined{ID: workload.ID{Path: path, Inode: uint64(70 + i)},
			Before: cpus(t, before[path]), Follows: path == "/batch/c"})
	}
	var got []map[string]string
	for _, intents := range bounded(groups, 1, 3, 1, 1, 1) {
		got = append(got, valuesOf(intents))
		for _, x := range intents {
			if x.Inode < 70 {
				t.Errorf("%+v is not of the cpuset hierarchy", x)
			}
		}
	}
	bound := func(batch, a, b string) map[string]string {
		return map[string]string{"/batch cpus": batch, "/batch/a cpus": a, "/batch/b cpus": b}
	}
	want := []map[string]string{{}, bound("1,5", "1", "1"), bound("1,5,7", "1", "1"), bound("1,5,7", "1", "1"),
		bound("1,3,5,7", "1,3", "1")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestConfineWithoutACommonCPU: no group is bound to a CPU that its owner did not give it: it has a quota then.
func TestConfineWithoutACommonCPU(t *testing.T) {
	groups := []Confined{{ID: workload.ID{Path: "/batch"}, Before: cpus(t, "0-7")},
		{ID: workload.ID{Path: "/batch/a"}, Before: cpus(t, "0-3")}, {ID: workload.ID{Path: "/batch/b"},
			Before: cpus(t, "4-7"), Follows: true}}
	got := valuesOf(bounded(groups, 3, 3)[1])
	if diff := cmp.Diff(map[string]string{"/batch quota": "220ms"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func valuesOf(list []plan.Intent) map[string]string {
	got := map[string]string{}
	for _, x := range list {
		got[x.Path+" "+string(x.Knob)] = string(x.Value)
	}
	return got
}
