package runq

import (
	"fmt"
	"math"

	"plimsoll/internal/cpu"
)

// Class tells groups apart of which waits are counted by length, and the time beside which is. 0 is none.
type Class uint32

const (
	Classes = 4  // 0 and three more
	Buckets = 24 // of Lengths
)

// Group is a control group that is told apart from others.
type Group struct {
	Inode   uint64  // of its directory in the cpu hierarchy (v1) or on v2
	CPUs    cpu.Set // that it may use; empty: all
	Request float64 // CPUs that it has reserved; 0: not known, one is assumed for it as a neighbour
	Watched bool    // what its threads wait for is wanted
	Class   Class
}

// Set numbers a group, or changes what is known of one that has a number. A number is never used again.
func (p *Probe) Set(g Group) (Slot, error) {
	slot, there := p.slots[g.Inode]
	if !there {
		if int(p.next) >= p.rows {
			return Others, fmt.Errorf("runq: group %d: there is room for %d", g.Inode, p.rows-int(First))
		}
		slot = p.next
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
	p.next++
	p.revision++ // the programs look their tasks' groups up again
	if err := p.objects.Generation.Set(p.revision); err != nil {
		return Others, fmt.Errorf("runq: announce group %d: %w", g.Inode, err)
	}
	return slot, nil
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
