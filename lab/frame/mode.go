package frame

import (
	"runtime"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
)

// Machine is where something was measured. A result embeds it.
type Machine struct {
	Kernel string `json:"kernel"`
	Cgroup string `json:"cgroup"`
	CPUs   int    `json:"cpus"`
}

// Machine is this one, with the control groups of the bench.
func (b *Bench) Machine() Machine {
	return Machine{Kernel: experiment.Kernel(), Cgroup: b.Tree().Version().String(), CPUs: runtime.NumCPU()}
}

// Of are the slots of one mode, row or situation.
func Of[S any, M comparable](slots []S, mode M, of func(S) M) []S {
	var mine []S
	for _, s := range slots {
		if of(s) == mode {
			mine = append(mine, s)
		}
	}
	return mine
}

// Pool is what became of the loads of slots.
func Pool[S any](slots []S, of func(S) *load.Outcome) *load.Outcome {
	var list []*load.Outcome
	for _, s := range slots {
		list = append(list, of(s))
	}
	return load.Pool(list...)
}

// Median is the function that gives the median over slots.
func Median[S any](slots []S) func(of func(S) float64) float64 {
	return func(of func(S) float64) float64 { return experiment.MedianOf(slots, of) }
}
