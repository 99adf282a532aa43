package meter

import (
	"testing"
	"time"

	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
)

// TestPairsOfReusedNumbers: a group is not blamed for what the owner of its number before it has done, also where the
// measurement began in that one's time.
func TestPairsOfReusedNumbers(t *testing.T) {
	pair := func(behind time.Duration) map[runq.Slot]runq.Pair {
		return map[runq.Slot]runq.Pair{runq.First: {Behind: behind, Phantom: behind / 2}}
	}
	tree := groups{".": 0, "a": 0}
	m := newMeter(detect(t, tree), &numbers{slots: map[uint64]runq.Slot{}, next: runq.First - 1},
		runq.Options{Groups: mostGroups})
	s := &subject{begin: pair(10)}
	m.subjects = []*subject{s}
	if got := m.behind(pair(12), s.begin); got[0].Time != 2 || got[0].Phantom != 1 {
		t.Errorf("since the measurement began: %+v", got)
	}
	if got := m.behind(pair(4), s.begin); got[0].Time != 4 || got[0].Phantom != 2 {
		t.Errorf("once its pairs were deleted: %+v", got)
	}
	if _, err := m.set(report.Container{Cgroup: "/a"}, runq.Group{Inode: 7}); err != nil {
		t.Fatal(err)
	}
	if got := m.behind(pair(12), s.begin); got[0].Time != 12 || got[0].Cgroup != "/a" {
		t.Errorf("once the number is another group: %+v", got)
	}
}
