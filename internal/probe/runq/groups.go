package runq

import (
	"fmt"
	"math"

	"plimsoll/internal/cpu"
)

// Class divides groups: waits are counted by length for each class, and so is the time beside a group of a class. 0 is
// none.
type Class uint32

const (
	Classes = 4  // 0 and three more
	Buckets = 24 // of Lengths
)

// Group is a control group with a number of its own.
type Group struct {
	Inode   uint64  // of its directory in the cpu hierarchy (v1) or on v2
	CPUs    cpu.Set // that it may use; empty: all
	Request float64 // CPUs that it has reserved; 0: not known, one is assumed for it as a neighbour
	Watched bool    // the causes of its threads' waits are measured
	Class   Class
}

// Set numbers a group, or changes a numbered group. The sums of a number start from their present values:
// a group that was forgotten may have had it. Its pairs start from nothing.
func (p *Probe) Set(g Group) (Slot, error) {
	slot, there := p.slots[g.Inode]
	if !there {
		var room bool
		if slot, room = p.vacant(); !room {
			return Others, fmt.Errorf("runq: group %d: the table is full with %d groups", g.Inode, p.rows-int(First))
		}
		if slot != p.next && p.clean == 0 {
			if err := p.sweep(); err != nil {
				return Others, err
			}
		}
	}
	if err := p.objects.Groups.Put(uint32(slot), facts(g)); err != nil {
		return Others, fmt.Errorf("runq: facts of group %d: %w", g.Inode, err)
	}
	if there {
		return slot, nil
	}
	if err := p.objects.Slots.Put(g.Inode, uint32(slot)); err != nil {
		return Others, fmt.Errorf("runq: number group %d: %w", g.Inode, err)
	}
	p.slots[g.Inode] = slot
	if slot == p.next {
		p.next++
	} else {
		p.free, p.clean = p.free[1:], p.clean-1
	}
	return slot, p.announce(g.Inode)
}

// vacant is the next number: an unused one while there are some, and then the one that is free for longest, so
// that no thread of its last group is left.
func (p *Probe) vacant() (Slot, bool) {
	if int(p.next) < p.rows {
		return p.next, true
	}
	if len(p.free) == 0 {
		return Others, false
	}
	return p.free[0], true
}

// announce makes the programs look up their tasks' groups again.
func (p *Probe) announce(inode uint64) error {
	p.revision++
	if err := p.objects.Generation.Set(p.revision); err != nil {
		return fmt.Errorf("runq: announce group %d: %w", inode, err)
	}
	return nil
}

// Forget gives up the number of a group that is gone.
func (p *Probe) Forget(inode uint64) error {
	slot, there := p.slots[inode]
	if !there {
		return nil
	}
	if err := p.objects.Slots.Delete(inode); err != nil {
		return fmt.Errorf("runq: forget group %d: %w", inode, err)
	}
	delete(p.slots, inode)
	p.free, p.unswept = append(p.free, slot), p.unswept+1
	if err := p.announce(inode); err != nil {
		return err
	}
	most := int64(p.objects.Pairs.MaxEntries())
	if count(p.objects.Paired)-p.deleted > most/2 && int64(p.unswept) > most/1024 {
		return p.sweep()
	}
	return nil
}

// sweep deletes the pairs of forgotten groups: where the table of pairs fills, and before a number is given again.
// Until then who waited for such a group knows for how long. Those forgotten last may have a thread whose wait is not
// over, and are not clean after this.
func (p *Probe) sweep() error {
	list, err := p.Pairs()
	if err != nil {
		return err
	}
	gone := make([]bool, p.rows)
	for _, slot := range p.free {
		gone[slot] = true
	}
	for _, one := range list {
		if !gone[one.Waiter] && !gone[one.Runner] {
			continue
		}
		key := kernelPairKey{Waiter: uint32(one.Waiter), Runner: uint32(one.Runner)}
		if err := p.objects.Pairs.Delete(key); err != nil {
			return fmt.Errorf("runq: delete the pairs of forgotten groups: %w", err)
		}
		p.deleted++
	}
	p.clean, p.unswept = max(p.clean, len(p.free)/2, 1), 0
	return nil
}

func facts(g Group) kernelFacts {
	f := kernelFacts{Share: uint32(math.Ceil(g.Request)), Class: uint32(g.Class)}
	if g.Watched {
		f.Watched = 1
	}
	for _, n := range g.CPUs {
		if n >= 0 && n < maxCPUs {
			f.Allowed[n/64] |= 1 << (n % 64)
		}
	}
	if len(g.CPUs) == 0 {
		for i := range f.Allowed {
			f.Allowed[i] = math.MaxUint64
		}
	}
	return f
}
