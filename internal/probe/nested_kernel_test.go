package probe

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Tasks so far below a group that the programs do not look at it leave its use unknown: what its other tasks use
// is not the whole.
func TestUseOfNestedTasks(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	const looked = 12 // DEPTH in bpf/group.h
	for levels, known := range map[int]bool{looked - 1: true, looked: false} {
		t.Run(fmt.Sprint(levels), func(t *testing.T) {
			p := open(t, Options{Use: true})
			g := cgrouptest.New(t)
			g.Prevail()
			shallow, deep := g.Child("shallow"), g
			for range levels {
				deep = deep.Child("d")
			}
			limit(t, g, 40*ms, 300*ms)
			watch(t, p, g)
			h := subscribe(t, p, nil)
			cgrouptest.Pin(t, 1, deep.Spin(1)[0])
			cgrouptest.Pin(t, 0, shallow.Spin(1)[0])
			id := inode(t, g)
			within(t, 30*time.Second, "throttles begin", func() bool { return len(h.begins(id)) >= 8 })
			for _, e := range h.begins(id)[4:] { // both have begun
				if got := e.Facts.Used != NoUse; got != known {
					t.Errorf("tasks %d levels below: %+v", levels, e.Facts)
				}
			}
			if got := totals(t, p, g); got.Counted != known {
				t.Errorf("tasks %d levels below: %+v", levels, got)
			}
		})
	}
}
