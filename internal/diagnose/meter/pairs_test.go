package meter

import (
	"testing"
	"time"

	"plimsoll/internal/probe/runq"
)

// TestPairsOfReusedNumbers: a group is not blamed for what the owner of its number before it has done,
// nor has it waited for it.
func TestPairsOfReusedNumbers(t *testing.T) {
	var p pairs
	list := func(ab, ac, ba time.Duration) []runq.Pair {
		return []runq.Pair{{Waiter: 3, Runner: 4, Behind: ab, Phantom: ab / 2}, {Waiter: 3, Runner: 5, Behind: ac},
			{Waiter: 4, Runner: 3, Behind: ba}}
	}
	check := func(what string, got map[runq.Slot]map[runq.Slot]runq.Pair, ab, ac, ba time.Duration) {
		t.Helper()
		if got[3][4].Behind != ab || got[3][4].Phantom != ab/2 || got[3][5].Behind != ac || got[4][3].Behind != ba {
			t.Errorf("%s: %+v", what, got)
		}
	}
	check("at first", p.since(list(10, 20, 30)), 10, 20, 30)
	p.reuse(4)
	check("once 4 is another group", p.since(list(12, 22, 32)), 0, 22, 0)
	check("and later", p.since(list(20, 23, 39)), 8, 23, 7)
}
