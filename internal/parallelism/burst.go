package parallelism

import (
	"fmt"
	"math"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/strategy"
)

// Burst is the most CPU time that a container can have in one period, in CPUs.
type Burst struct {
	Most     float64
	From     string
	Proposed bool // nothing lets the container burst now
}

// Most is what a strategy lets a container with this limit have. inForce is the kernel's burst that stands in its file,
// whoever wrote it. Where neither bursts it is what policy auto would give, with the percentages of the strategy.
//
// A burst buffer is at most the limit on mainline kernels. What Alibaba Cloud Linux admits above that counts once it is
// in force.
func Most(limit cpu.Bandwidth, s strategy.Strategy, inForce time.Duration) Burst {
	own := limit.CPUs()
	buffer := own + float64(inForce)/float64(limit.Period)
	best := Burst{Most: buffer, From: "the burst in its file"}
	if inForce <= 0 && s.Policy == strategy.None {
		s.Policy, best.Proposed = strategy.Auto, true
	}
	if with := own + own*min(1, float64(s.CPUBurstPercent)/100); s.Policy.Burst() && with > best.Most {
		best.Most, best.From = with, fmt.Sprintf("cpuBurstPercent: %d %% of its limit, at most as much again",
			s.CPUBurstPercent)
	}
	if by := own * float64(s.CFSQuotaBurstPercent) / 100; s.Policy.Quota() && by > best.Most {
		best.Most, best.From = by, fmt.Sprintf("cfsQuotaBurstPercent: %d %% of its limit", s.CFSQuotaBurstPercent)
	}
	return best
}

// On bounds a burst by the CPUs that the container may use.
func (b Burst) On(cpus int) Burst {
	if most := float64(cpus); cpus > 0 && most < b.Most {
		b.Most, b.From = most, fmt.Sprintf("%s; it may use %d CPUs", b.From, cpus)
	}
	return b
}

// threads is how many threads use all of it.
func (b Burst) threads() int { return int(math.Ceil(min(b.Most, math.MaxInt32))) }
