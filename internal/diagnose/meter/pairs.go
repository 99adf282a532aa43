package meter

import (
	"time"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/probe/runq"
)

// Who was in the way of whom, while the agent runs.
//
// Problem: the programs count each wait for the pair of groups that it was of. A status has the longest of them for
// each container; there may be 65,536, and reading one takes about a microsecond. A number that another group had
// before keeps the counts of its pairs.
//
// Approach: the pairs are read where a status is asked for, and not more often than every five seconds. What a pair had
// counted when a number was given again is not counted for its new owner.
//
// Known limits: what a new owner of a number waits until the next reading counts for nobody.

const (
	pairEvery      = 5 * time.Second
	mostNeighbours = 3 // of a container
)

// pairs knows what of each pair is of the groups that have its numbers now.
type pairs struct {
	reused map[runq.Slot]bool // since the last reading
	base   map[[2]runq.Slot]runq.Pair
}

// reuse says that a number has another owner.
func (p *pairs) reuse(slot runq.Slot) {
	if p.reused == nil {
		p.reused = map[runq.Slot]bool{}
	}
	p.reused[slot] = true
}

// since is what the present owners of the numbers have waited, by the group that waits.
func (p *pairs) since(list []runq.Pair) map[runq.Slot]map[runq.Slot]runq.Pair {
	by := map[runq.Slot]map[runq.Slot]runq.Pair{}
	for _, one := range list {
		key := [2]runq.Slot{one.Waiter, one.Runner}
		if p.reused[one.Waiter] || p.reused[one.Runner] {
			if p.base == nil {
				p.base = map[[2]runq.Slot]runq.Pair{}
			}
			p.base[key] = one
		}
		if by[one.Waiter] == nil {
			by[one.Waiter] = map[runq.Slot]runq.Pair{}
		}
		by[one.Waiter][one.Runner] = less(one, p.base[key])
	}
	clear(p.reused)
	return by
}

// less is what a pair has counted since.
func less(p, before runq.Pair) runq.Pair {
	p.Behind -= before.Behind
	p.Phantom -= before.Phantom
	p.Forced -= before.Forced
	p.Waking -= before.Waking
	return p
}

// pair reads who was in the way of whom. Where that cannot be read, nobody is named.
func (w *Waits) pair() {
	w.behind = map[runq.Slot][]diagnose.Behind{}
	read, err := w.meter.pairs()
	if err != nil {
		w.log.Debug("neighbours", "error", err)
		return
	}
	for slot, list := range read {
		w.behind[slot] = w.meter.behind(list, nil)
	}
}
