package experiment

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// TestRemoveLimits: in the mode requestsOnly the neighbours compete, and weights divide the CPUs by request: of two
// that want all of them, the one with a quarter of the requests gets about a quarter.
// At its end everything is as before.
func TestRemoveLimits(t *testing.T) {
	groups := newGroups(t)
	o, err := StartOffline(cgrouptest.Root())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Stop()
	group, err := groups.Add("web")
	if err != nil {
		t.Fatal(err)
	}
	cpus := len(o.processes)
	for range cpus { // as many as can use all of them
		c, err := Launch(Spin(), func(pid int) error { return groups.Enter(group, pid) })
		if err != nil {
			t.Fatal(err)
		}
		defer c.Stop(0)
	}
	r := &run{groups: groups, group: group, offline: o, limit: Limited(float64(cpus) / 4)}
	before := place(t, groups, o)
	if before[1] != 1 {
		t.Fatalf("offline work is not behind: %v", before)
	}
	back, err := r.removeLimits(cpus)
	if err != nil {
		t.Fatal(err)
	}
	if during := place(t, groups, o); during[1] != 0 || during[0] != WeightOf(groups.tree.Version(), float64(cpus)/4) {
		t.Errorf("in the mode: %v", during)
	}
	if got := share(t, groups, group, o); got < 0.15 || got > 0.35 {
		t.Errorf("a quarter of the requests gets %.2f of the time", got)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	if after := place(t, groups, o); after != before {
		t.Errorf("before %v, after %v", before, after)
	}
	if got := share(t, groups, group, o); got < 0.9 {
		t.Errorf("offline work is behind again, and the service gets %.2f of the time", got)
	}
}

// share is what a group gets of the time that it and the offline work use.
func share(t *testing.T, groups *Groups, group string, o *Offline) float64 {
	t.Helper()
	before, err1 := groups.Used(group)
	others, err2 := o.Used()
	time.Sleep(3 * time.Second)
	after, err3 := groups.Used(group)
	othersAfter, err4 := o.Used()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return float64(after-before) / float64(after-before+othersAfter-others)
}

// place is the weight of the upper group, and 1 where offline work is behind all others.
func place(t *testing.T, groups *Groups, o *Offline) [2]int64 {
	t.Helper()
	ours, err1 := groups.tree.Weight(groups.base)
	idle, err2 := groups.tree.Idle(o.Base())
	if errors.Is(err2, fs.ErrNotExist) { // below 5.15 its weight is the smallest
		var weight int64
		weight, err2 = groups.tree.Weight(o.Base())
		idle = weight == leastWeight
	}
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if idle {
		return [2]int64{ours, 1}
	}
	return [2]int64{ours, 0}
}
