package main

import "slices"

// situation is the neighbour of the target, and whether the target has a CPU for itself.
type situation struct {
	Neighbour neighbour `json:"neighbour"`
	Reserved  bool      `json:"reserved"`
	Again     bool      `json:"again,omitempty"` // the same as without it: what differs is chance
}

func (s situation) name() string {
	name := s.Neighbour.name()
	if s.Reserved {
		name += ", reserve"
	}
	if s.Again {
		name += " again"
	}
	return name
}

// String implements fmt.Stringer.
func (s situation) String() string { return s.name() }

// situations are alone, the four published configurations and those who sleep and wake, each without and with a
// CPU for the target itself, and, for the sweep, neighbours of more and more threads: in the order of the table. Being
// alone twice shows what chance does, and being alone on a CPU of one's own what the CPU does.
func situations(cpus int, sweep, reserve bool) (list []situation) {
	add := func(n neighbour, both bool) {
		list = append(list, situation{Neighbour: n})
		if n.Kind == nobody {
			list = append(list, situation{Neighbour: n, Again: true})
		}
		if both && reserve {
			list = append(list, situation{Neighbour: n, Reserved: true})
		}
	}
	add(neighbour{Kind: nobody}, true)
	for _, k := range []kind{onCPU, onMemory, sleepers} {
		usual := 2 * cpus
		if k == sleepers {
			usual = 32 * cpus
		}
		threads := []int{usual}
		if sweep && k != onMemory {
			threads = append(threads, 1, 2, 4, 8, mostSwept)
		}
		slices.Sort(threads)
		for _, n := range slices.Compact(threads) {
			add(neighbour{k, n, false}, n == usual || n == mostSwept)
		}
		add(neighbour{k, usual, true}, true)
	}
	return list
}

// mostSwept are the most threads of a neighbour in the sweep.
const mostSwept = 16
