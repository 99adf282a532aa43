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
// CPU for the target itself, and, for the sweep, neighbours of more and more threads. Being alone twice shows what
// chance does, and being alone on a CPU of one's own what the CPU does.
func situations(cpus int, sweep, reserve bool) []situation {
	alone := situation{Neighbour: neighbour{Kind: nobody}}
	list := []situation{alone, {Neighbour: alone.Neighbour, Again: true}}
	add := func(n neighbour, reserved bool) {
		if s := (situation{Neighbour: n, Reserved: reserved}); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	both := func(n neighbour) {
		add(n, false)
		if reserve {
			add(n, true)
		}
	}
	both(alone.Neighbour)
	for _, capped := range []bool{true, false} {
		for _, k := range []kind{onCPU, onMemory} {
			both(neighbour{k, 2 * cpus, capped})
		}
		both(neighbour{sleepers, 32 * cpus, capped})
	}
	for threads := 1; sweep && threads <= 16; threads *= 2 {
		for _, k := range []kind{onCPU, sleepers} {
			add(neighbour{k, threads, false}, false)
		}
	}
	if sweep {
		for _, k := range []kind{onCPU, sleepers} {
			both(neighbour{k, 16, false})
		}
	}
	return list
}
