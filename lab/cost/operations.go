package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"plimsoll/lab/frame"
)

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
