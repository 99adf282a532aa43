package runq

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// TestPairsOfGroupsThatGo: groups come and go beside one that stays. The table of pairs, which has room for some of
// them, has room for each that comes; and a number that is given again has no pair.
func TestPairsOfGroupsThatGo(t *testing.T) {
	const many, room = 16, 32
	for _, o := range []Options{{pairs: room}, {pairs: room, Groups: 4}} {
		p := open(t, o)
		stays := cgrouptest.New(t)
		set(t, p, stays, 1)
		cgrouptest.Pin(t, 0, stays.Spin(1)[0])
		for range many {
			g := cgrouptest.New(t)
			slot := set(t, p, g, 1)
			if list := pairsOf(t, p, slot); len(list) > 0 {
				t.Errorf("number %d is new, and has pairs: %+v", slot, list)
			}
			cgrouptest.Pin(t, 0, g.Spin(1)[0])
			for end := time.Now().Add(10 * time.Second); len(pairsOf(t, p, slot)) < 2; time.Sleep(10 * ms) {
				if time.Now().After(end) {
					t.Fatalf("%+v: group %d has no pairs", o, slot)
				}
			}
			id, err := g.Tree().Inode(g.Path)
			if err != nil {
				t.Fatal(err)
			}
			g.Remove()
			if err := p.Forget(id); err != nil {
				t.Fatal(err)
			}
		}
		if _, unpaired := p.Lost(); unpaired > 0 {
			t.Errorf("%+v: %d waits have no name", o, unpaired)
		}
	}
}

func pairsOf(t *testing.T, p *Probe, slot Slot) (list []Pair) {
	t.Helper()
	all, err := p.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Waiter == slot || one.Runner == slot {
			list = append(list, one)
		}
	}
	return list
}
