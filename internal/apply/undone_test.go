package apply

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestJudgeQuota: which of the readings after writes and refills says that a write was undone.
func TestJudgeQuota(t *testing.T) {
	type reading struct {
		writes int
		held   plan.Value
		undone bool
	}
	for name, c := range map[string]struct {
		quiet    bool // no refill of late
		readings []reading
	}{
		"nobody writes":                {false, []reading{{0, "50ms", false}, {0, "50ms", false}}},
		"a write":                      {false, []reading{{1, "60ms", false}, {0, "60ms", false}}},
		"a write that was undone":      {false, []reading{{1, "50ms", true}, {0, "50ms", false}}},
		"told of late":                 {false, []reading{{0, "50ms", false}, {1, "50ms", true}}},
		"a write that is told of late": {false, []reading{{0, "60ms", false}, {1, "60ms", false}, {1, "60ms", true}}},
		"two, the first is told of late": {false,
			[]reading{{0, "60ms", false}, {1, "70ms", false}, {1, "70ms", false}, {1, "70ms", true}}},
		"two at once, the second stands": {false, []reading{{2, "60ms", false}, {0, "60ms", false}}},
		"there was no refill":            {true, []reading{{1, "50ms", false}, {1, "60ms", false}}},
		"one undone, and one that is not": {false,
			[]reading{{1, "50ms", true}, {1, "60ms", false}, {1, "60ms", true}}},
		"told of late, and the next is undone": {false, []reading{{0, "60ms", false}, {2, "60ms", true}}},
	} {
		g := &quota{held: "50ms", racing: !c.quiet}
		for i, r := range c.readings {
			if got := g.judge(time.Unix(int64(i), 0), r.writes, r.held); got != r.undone {
				t.Errorf("%s: reading %d: undone %v", name, i, got)
			}
		}
	}
}

// notifier tells what a test says.
type notifier struct {
	counts  map[string]int
	lost    bool
	watched map[string]bool
	err     error
}

func (n *notifier) Watch(group string) error {
	if n.err == nil {
		n.watched[group] = true
	}
	return n.err
}
func (n *notifier) Unwatch(group string) { delete(n.watched, group) }
func (n *notifier) Writes() (map[string]int, bool) {
	counts, lost := n.counts, n.lost
	n.counts, n.lost = nil, false
	return counts, lost
}

// TestUndone: a write that is told of beside a refill and leaves the quota as it was is reported, once; one long after
// it, one of our own, and one beside lost news are not.
func TestUndone(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		told := &notifier{watched: map[string]bool{}}
		n.w.Watching(told)
		want := func(what string, count int) {
			t.Helper()
			if got, err := n.w.Undone(); len(got) != count || err != nil {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		refill := func() { n.do(n.refill("/pod/a"), plan.Applied) }
		refill()
		want("first", 0)
		told.counts = map[string]int{"/pod/a": 1}
		refill()
		want("a write beside a refill", 1)
		told.counts = map[string]int{"/pod/a": 1}
		want("told of after it", 1)
		n.k.Advance(2 * lateness)
		want("nothing", 0)
		told.counts = map[string]int{"/pod/a": 1}
		want("no refill of late", 0)
		told.lost, told.counts = true, map[string]int{"/pod/a": 1}
		refill()
		want("news were lost", 0)
		refill()
		n.do(n.change("/pod/a", plan.Quota, "40ms"), plan.Applied)
		told.counts = map[string]int{"/pod/a": 1}
		want("our own", 0)
		n.foreign("/pod/a", plan.Quota, "45ms")
		told.counts = map[string]int{"/pod/a": 1}
		refill()
		want("a write that stands", 0)
		n.k.RemoveGroup("/pod/a")
		told.counts = map[string]int{"/pod/a": 1}
		want("the group is gone", 0)
		if len(told.watched) != 0 {
			t.Errorf("watched: %v", told.watched)
		}
	})
}

// TestUndoneAtTheFirstRefill: a write that the first refill of a group undoes is reported where the group was expected
// to be refilled. A group that is expected no more is watched no more.
func TestUndoneAtTheFirstRefill(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		told := &notifier{watched: map[string]bool{}}
		n.w.Watching(told)
		gone := n.id("/pod/b")
		gone.Inode++
		n.w.ExpectRefills([]workload.ID{n.id("/pod/a"), n.id("/free"), gone}, []workload.ID{n.id("/pod")})
		want := func(watched ...string) {
			t.Helper()
			if got := slices.Sorted(maps.Keys(told.watched)); !slices.Equal(got, watched) ||
				len(n.w.quotas.groups) != len(watched) {
				t.Errorf("%d groups, watched %q, want %q", len(n.w.quotas.groups), got, watched)
			}
		}
		want("/pod/a")
		told.counts = map[string]int{"/pod/a": 1}
		n.do(n.refill("/pod/a"), plan.Applied)
		if got, err := n.w.Undone(); len(got) != 1 || got[0].ID != n.id("/pod/a") || err != nil {
			t.Errorf("%+v, %v, want /pod/a", got, err)
		}
		n.do(n.refill("/pod"), plan.Applied)
		want("/pod", "/pod/a")
		n.w.ExpectRefills(nil, []workload.ID{n.id("/pod")})
		want("/pod")
	})
}

// TestDeclaredAfterAll: a group whose limit is declared late is watched until then.
// One that was refilled stays watched.
func TestDeclaredAfterAll(t *testing.T) {
	each(t, func(t *testing.T, n *node) {
		told := &notifier{watched: map[string]bool{}}
		n.w.Watching(told)
		both := []workload.ID{n.id("/pod/a"), n.id("/pod")}
		n.w.ExpectRefills(both, nil)
		n.do(n.refill("/pod/a"), plan.Applied)
		for range 2 {
			n.w.ExpectRefills(nil, both)
			if got := slices.Sorted(maps.Keys(told.watched)); !slices.Equal(got, []string{"/pod/a"}) {
				t.Errorf("watched %q, want /pod/a", got)
			}
		}
	})
}

// TestFewAreWatchedAtOnce: of many groups that are expected to be refilled some are watched in each turn, and no more
// than there is room for. A refilled group takes the place of one that was not refilled.
func TestFewAreWatchedAtOnce(t *testing.T) {
	n, told := newNode(t, v2), &notifier{watched: map[string]bool{}}
	n.w.Watching(told)
	var ids []workload.ID
	for i := range maxWatched + 3 {
		group := fmt.Sprintf("/group%d", i)
		n.k.AddGroup(group)
		n.must(n.tree.SetQuota(group, 50*ms))
		ids = append(ids, n.id(group))
	}
	n.w.ExpectRefills(ids, nil)
	for turn := 1; turn <= maxWatched/watchAtOnce+1; turn++ {
		if want := min(turn*watchAtOnce, maxWatched); len(told.watched) != want {
			t.Fatalf("turn %d: %d are watched, want %d", turn, len(told.watched), want)
		}
		_, err := n.w.Undone()
		n.must(err)
	}
	for _, group := range []string{ids[0].Path, ids[maxWatched].Path, ids[maxWatched+1].Path} {
		n.do(n.refill(group), plan.Applied)
	}
	if len(told.watched) != maxWatched || !told.watched[ids[0].Path] || !told.watched[ids[maxWatched].Path] ||
		!told.watched[ids[maxWatched+1].Path] {
		t.Errorf("%d are watched, and not all that were refilled", len(told.watched))
	}
}

// TestWatchedAreBounded: the group that was refilled longest ago is watched no more.
func TestWatchedAreBounded(t *testing.T) {
	told := &notifier{watched: map[string]bool{}}
	q := quotas{notify: told, groups: map[string]*quota{}}
	id := func(i int) workload.ID {
		return workload.ID{Path: "/" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Inode: uint64(i)}
	}
	for i := range maxWatched + 3 {
		q.watch(id(i), time.Unix(int64(i), 0))
	}
	if len(q.groups) != maxWatched || len(told.watched) != maxWatched || told.watched[id(2).Path] ||
		!told.watched[id(3).Path] {
		t.Errorf("%d groups, %d watched", len(q.groups), len(told.watched))
	}
}
