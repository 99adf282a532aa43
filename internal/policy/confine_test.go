package policy

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
	for room, want := range map[float64]string{0: "7", 0.4: "7", 1: "7", 1.995: "3,7", 2.5: "3,7", 3: "3,6-7", 4: "2-3,6-7", 8: "0-7", 9: "0-7"} {
		if got := lastCPUs(room, smt()).String(); got != want {
			t.Errorf("room of %g: CPUs %s, want %s", room, got, want)
		}
	}
}

// TestConfine: at once down, two steps up, and a group that was bound already keeps to what it had.
func TestConfine(t *testing.T) {
	set := func(text string) cpu.Set {
		s, err := cpu.ParseSet(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	batch := workload.ID{Path: "/batch", Inode: 7}
	l := Load{CPUs: 8, Offline: []Pressed{{ID: batch, Used: 4, Limit: cpu.Bandwidth{Quota: cpu.Unlimited, Period: 100 * time.Millisecond}}}, Topology: smt(),
		Confined: []Confined{{workload.ID{Path: "/batch", Inode: 70}, nil}, {workload.ID{Path: "/batch/a", Inode: 71}, set("0-3")},
			{workload.ID{Path: "/batch/b", Inode: 72}, set("0-1")}}}
	ask := strategy.Suppress{Enable: true, ThresholdPercent: 65, MinPercent: 5, Policy: strategy.SuppressCPUSet}
	var s Suppression
	var got []map[string]string
	for i, online := range []float64{1, 3, 1, 1, 1} {
		l.Used = online + 4
		settings := s.Decide(time.Unix(int64(i), 0), ask, l)
		got = append(got, settingsOf(settings))
		for _, x := range settings {
			if want := map[string]plan.Value{"/batch": "", "/batch/a": "0-3", "/batch/b": "0-1"}[x.Path]; x.Base != want || x.Inode < 70 {
				t.Errorf("%+v goes back to %q, want %q", x, x.Base, want)
			}
		}
	}
	bound := func(batch, a, b string) map[string]string {
		return map[string]string{"/batch cpus": batch, "/batch/a cpus": a, "/batch/b cpus": b}
	}
	want := []map[string]string{{}, bound("3,7", "3", "3,7"), bound("3,6-7", "3", "3,6-7"), bound("3,6-7", "3", "3,6-7"), bound("2-3,6-7", "2-3", "2-3,6-7")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
