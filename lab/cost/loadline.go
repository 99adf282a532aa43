package main

import (
	"fmt"
	"math"
	"os"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/loadline/noderisk"
)

// sizing is the cost of sizing the bursts of a node by its load line (loadLinePercent), which the agent does beside its
// turns, once every noderisk.Every.
type sizing struct {
	Containers int           `json:"containers"`
	CPU        time.Duration `json:"cpu_ns"` // of one
	Share      float64       `json:"share"`  // of the bursts asked for
}

// sizingsMeasured is over how many the mean is taken.
const sizingsMeasured = 3

// demands are those of a node of 250 containers that can bear a part of its bursts, so that the part must be searched
// for. One period in ten is busy, and needs more than the limit in half of the cases; as the kernel's programs count it
// in ten minutes.
func demands(containers int) (list []noderisk.Demand, capacity float64) {
	const periods, busy, usual, peak = 6000, 0.1, 0.2, 1.5 // the last two are means, in limits
	for i := range containers {
		quota := 0.25 * float64(1+i%4)
		d := noderisk.Demand{Quota: quota, Asked: 2, Uses: make([]int64, 4*noderisk.UsesPerQuota+1)}
		for class := 1; class < len(d.Uses); class++ {
			from, to := float64(class-1)/noderisk.UsesPerQuota, float64(class)/noderisk.UsesPerQuota
			between := func(mean float64) float64 { return math.Exp(-from/mean) - math.Exp(-to/mean) }
			d.Uses[class] = int64(periods * ((1-busy)*between(usual) + busy*between(peak)))
		}
		list = append(list, d)
		capacity += quota * ((1-busy)*usual + busy*peak)
	}
	return list, capacity * (1 + 2.4/math.Sqrt(float64(containers)))
}

// sizeBursts measures on this process.
func sizeBursts(containers int) (sizing, error) {
	list, capacity := demands(containers)
	s := sizing{Containers: containers}
	before, after, err := experiment.Around(func() (time.Duration, error) { return experiment.CPUTime(os.Getpid()) }, func() error {
		for range sizingsMeasured {
			risk, err := noderisk.LoadLine(capacity, list, 99.9)
			if err != nil {
				return err
			}
			s.Share = risk.Share
		}
		return nil
	})
	s.CPU = (after - before) / sizingsMeasured
	return s, err
}

// cpus is its mean, with one every noderisk.Every.
func (s sizing) cpus() float64 { return s.CPU.Seconds() / noderisk.Every.Seconds() }

// text compares that with the agent's cost when nothing throttles.
func (s sizing) text(idle float64) string {
	text := fmt.Sprintf("\nthe load line (loadLinePercent), sized once a minute\n  of %d          %v of CPU time each, %.2f %% of a CPU",
		s.Containers, s.CPU.Round(time.Millisecond), 100*s.cpus())
	if idle > 0 {
		text += fmt.Sprintf(", %.1f x the idle agent", s.cpus()/idle)
	}
	return text + "\n"
}
