package main

import (
	"math"
	"slices"
)

// situation is who is beside the target, and whether the target has a CPU for itself.
type situation struct {
	Neighbour neighbour `json:"neighbour"`
	Reserved  bool      `json:"reserved"`
}

func (s situation) name() string {
	name := s.Neighbour.name()
	if s.Reserved {
		name += ", reserve"
	}
	return name
}

// situations are alone, the four published configurations and those who sleep and wake, each without and with a
// CPU for the target itself, and, for the sweep, neighbours of more and more threads.
func situations(cpus int, sweep, reserve bool) []situation {
	list := []situation{{Neighbour: neighbour{Kind: nobody}}}
	add := func(n neighbour) {
		if s := (situation{Neighbour: n}); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	for _, capped := range []bool{true, false} {
		for _, k := range []kind{onCPU, onMemory} {
			add(neighbour{k, 2 * cpus, capped})
		}
		add(neighbour{sleepers, 32 * cpus, capped})
	}
	if reserve {
		for _, s := range slices.Clone(list)[1:] {
			s.Reserved = true
			list = append(list, s)
		}
	}
	if sweep {
		for threads := 1; threads <= 16; threads *= 2 {
			add(neighbour{onCPU, threads, false})
			add(neighbour{sleepers, threads, false})
		}
	}
	return list
}

// geometric is the middle on the scale of ratios.
func geometric(a, b float64) float64 { return math.Sqrt(a * b) }
