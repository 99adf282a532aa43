package meter

import (
	"time"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/probe/runq"
)

// Who was in the way of whom, while the agent runs.
//
// Problem: the programs count each wait for the pair of groups that it was of. A status has the longest of them for
// each container; there may be 65,536, and reading one takes about a microsecond.
//
// Approach: the pairs are read where a status is asked for, and not more often than every five seconds.

const (
	pairEvery      = 5 * time.Second
	mostNeighbours = 3 // of a container
)

// byWaiter sorts pairs by the group that waits.
func byWaiter(list []runq.Pair) map[runq.Slot]map[runq.Slot]runq.Pair {
	by := map[runq.Slot]map[runq.Slot]runq.Pair{}
	for _, one := range list {
		if by[one.Waiter] == nil {
			by[one.Waiter] = map[runq.Slot]runq.Pair{}
		}
		by[one.Waiter][one.Runner] = one
	}
	return by
}

// less is what a pair has counted since. One that was deleted meanwhile has begun anew.
func less(p, before runq.Pair) runq.Pair {
	if p.Behind < before.Behind {
		return p
	}
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
