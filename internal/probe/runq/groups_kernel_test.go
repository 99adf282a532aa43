package runq

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// When all numbers are in use, another group gets the number of a group that is gone, and counts for that one from then
// on. Without names a wait behind another group is counted all the same.
func TestForgottenNumber(t *testing.T) {
	p := open(t, Options{Groups: 2, Nameless: true})
	a, b, c := cgrouptest.New(t), cgrouptest.New(t), cgrouptest.New(t)
	b.Prevail() // these two wait for each other, and for no other load
	c.Prevail()
	first, second := set(t, p, a, 1), set(t, p, b, 1)
	cgrouptest.Pin(t, 0, b.Spin(1)[0], a.Spin(1)[0])
	time.Sleep(50 * ms)
	gone, err := a.Tree().Inode(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.Tree().Inode(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if slot, err := p.Set(Group{Inode: id}); err == nil {
		t.Errorf("a third group has number %d of two", slot)
	}
	a.Remove()
	if err := p.Forget(gone); err != nil {
		t.Fatal(err)
	}
	if third := set(t, p, c, 1); third != first || third == second {
		t.Errorf("numbers %d and %d, and then %d", first, second, third)
	}
	cgrouptest.Pin(t, 0, c.Spin(1)[0])
	got := during(t, p, 300*ms, first)[0]
	// One of them may have next to no weight for a while, on a CPU that its process has just come to.
	for end := time.Now().Add(10 * time.Second); got.Waiting == 0 && time.Now().Before(end); {
		got = during(t, p, 300*ms, first)[0]
	}
	if !near(got.Running+got.Waiting, got.At, 0.02) || got.Behind == 0 {
		t.Errorf("wanted %v of %v: %+v", got.Running+got.Waiting, got.At, got)
	}
	if list, err := p.Pairs(); err != nil || len(list) > 0 {
		t.Errorf("names though Nameless: %+v, %v", list, err)
	}
}
