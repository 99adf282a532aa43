package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/loadline/noderisk"
	"plimsoll/lab/frame"
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
	before, after, err := experiment.Around(func() (time.Duration, error) { return experiment.CPUTime(os.Getpid()) },
		func() error {
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
	text := fmt.Sprintf("\nthe load line (loadLinePercent), sized once a minute\n  of %d          %v of CPU time "+
		"each, %.2f %% of a CPU", s.Containers, s.CPU.Round(time.Millisecond), 100*s.cpus())
	if idle > 0 {
		text += fmt.Sprintf(", %.1f x the idle agent", s.cpus()/idle)
	}
	return text + "\n"
}

// manyGroups is how many groups a full node may have, those of its services and of containers long gone included.
const manyGroups = 2000

// refillsMeasured is how many writes the quantiles are taken over.
const refillsMeasured = 500

// refill is what the write costs that ends a throttle: it rewrites an unchanged burst. It walks all groups
// (kernel/sched/core.c, __cfs_schedulable).
type refill struct {
	Groups int           `json:"groups"` // of the bench
	P50    time.Duration `json:"p50_ns"`
	P99    time.Duration `json:"p99_ns"`
}

// refills measures among the fleet alone, and among so many groups more. No burst, no refills.
func (b *bench) refills(ctx context.Context) []refill {
	groups := len(b.fleet.units)
	last := b.fleet.units[groups-1].group
	if _, err := b.Tree().Burst(last); err != nil {
		return nil
	}
	b.Say("refills: among %d groups, then among %d", groups, groups+b.others)
	few := b.refill(last, groups)
	for i := range b.others {
		frame.Check(context.Cause(ctx))
		frame.Must(b.Add(fmt.Sprintf("other%d", i)))
	}
	return []refill{few, b.refill(last, groups+b.others)}
}

func (b *bench) refill(group string, groups int) refill {
	var took []time.Duration
	for range refillsMeasured {
		begin := time.Now()
		frame.Check(b.Tree().SetBurst(group, 0))
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return refill{groups, took[len(took)/2], took[len(took)*99/100]}
}

func refillText(list []refill) string {
	if len(list) == 0 {
		return ""
	}
	text := "\na refill (an unchanged burst, written again)\n"
	for _, r := range list {
		text += fmt.Sprintf("  among %-8d p50 %v, p99 %v\n", r.Groups, r.P50.Round(100*time.Nanosecond),
			r.P99.Round(100*time.Nanosecond))
	}
	return text
}
