package outcome

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// TestProblemsCallGroups: a problem has the name that people know, and the path where there is none.
func TestProblemsCallGroups(t *testing.T) {
	r := New(slog.New(slog.DiscardHandler))
	known, gone := workload.ID{Path: "/kubepods/pod1/2"}, workload.ID{Path: "/gone"}
	r.groups[known] = &Account{Group: &observe.Group{
		Container: workload.Container{ID: known, Name: "default/web/nginx"}}}
	for id, want := range map[workload.ID]string{known: "default/web/nginx: another program",
		gone: "/gone: another program"} {
		if said := r.Note(Note{Key: plan.Key{ID: id, Knob: plan.Quota},
			Event: ledger.Overrode}); !strings.HasPrefix(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
}

// TestQuantile: the rank is rounded up: of a few durations the 99th percentile is the largest.
func TestQuantile(t *testing.T) {
	for n, want := range map[int][2]time.Duration{0: {0, 0}, 1: {1, 1}, 2: {1, 2}, 99: {50, 99}, 100: {50, 99},
		ringSize: {512, 1014}} {
		var r ring
		for d := range n {
			r.add(time.Duration(n - d))
		}
		if got := [2]time.Duration{r.quantile(0.5), r.quantile(0.99)}; got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}

// TestOrder: groups are listed by their paths in whatever order they come and go, and one that is gone is not taken for
// a new one of the same path.
func TestOrder(t *testing.T) {
	r := New(slog.New(slog.DiscardHandler))
	// each path twice
	id := func(i int) workload.ID { return workload.ID{Path: fmt.Sprintf("/%d", i/2), Inode: uint64(i)} }
	random := rand.New(rand.NewPCG(1, 2))
	for _, i := range random.Perm(40) {
		r.Account(&observe.Group{Container: workload.Container{ID: id(i)}})
		r.Account(&observe.Group{Container: workload.Container{ID: id(i)}}) // known
	}
	for _, i := range random.Perm(40) {
		if i%3 == 0 {
			r.Drop(id(i))
			r.Drop(id(i)) // gone
		}
	}
	less := func(a, b *Account) int { return byPath(a, b.ID) }
	want := slices.SortedFunc(maps.Values(r.groups), less)
	if len(want) != 26 || r.Groups() != 26 || !slices.Equal(r.order, want) {
		t.Errorf("%d groups, %d in order", len(want), r.Groups())
	}
}

// TestIdleSandboxes: a pod's sandbox is in no list, unless it has a limit, or something of ours: then it may be a
// container whose name is not known yet.
func TestIdleSandboxes(t *testing.T) {
	r := New(slog.New(slog.DiscardHandler))
	add := func(path string, sandbox bool, quota time.Duration) *Account {
		id := workload.ID{Path: path, Inode: uint64(len(r.groups))}
		return r.Account(&observe.Group{Container: workload.Container{ID: id, Sandbox: sandbox},
			Disk: cpu.Bandwidth{Quota: quota, Period: 100 * ms}})
	}
	add("/container", false, cpu.Unlimited)
	add("/new", true, 50*ms)
	add("/ours", true, cpu.Unlimited).burst.Changed = true
	add("/sandbox", true, cpu.Unlimited)
	var paths []string
	none := func(*Account) (report.Throttles, bool) { return report.Throttles{}, false }
	for _, c := range r.Containers(nil, time.Time{}, none,
		func(*Account) report.Throttles { return report.Throttles{} }) {
		paths = append(paths, c.Cgroup)
	}
	if want := []string{"/container", "/new", "/ours"}; !slices.Equal(paths, want) {
		t.Errorf("%v, want %v", paths, want)
	}
}
