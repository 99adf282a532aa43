package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// The published table has three CPUs, of which one is reserved for the target's one thread and two for the neighbour's
// three. On a machine of n CPUs it is one, and n-1 for a neighbour of n threads. One of those has to share a CPU with
// the target's.
const (
	publishedCPUs = 3
	targetRequest = 1.0
	tolerance     = 0.05
	// tablePeriod is that of the neighbour's limit: the longest that the kernel takes. The formula holds for any, but the
	// kernel hands quota out in slices of 5 ms to each CPU (sched_cfs_bandwidth_slice_us) and counts at ticks, so that the
	// thread that shares its CPU, and uses a slice up slowly, runs on a while after the others stand still. In a period of
	// 100 ms that is 4 points of what the target gets on two CPUs.
	tablePeriod = time.Second
)

// tableNode are the CPUs of this program and the agent: they are not to be on the target's.
func tableNode(cpus int) (node cpu.Set) {
	for id := 1; id < cpus; id++ {
		node = append(node, id)
	}
	return node
}

// tableCase is a row of the table.
type tableCase struct {
	Capped   bool    `json:"capped"`   // the neighbour has a limit of what it has reserved
	Reserved bool    `json:"reserved"` // the target has its CPU for itself
	Expected float64 `json:"expected"` // of what it has reserved
	Got      float64 `json:"got"`
}

func (c tableCase) name() string {
	name := "burstable neighbour"
	if c.Capped {
		name = "capped neighbour"
	}
	if c.Reserved {
		name += ", reserve"
	}
	return name
}

// tableCases are all rows of a machine's table.
func tableCases(cpus int) []tableCase {
	request := float64(cpus) - targetRequest
	share := shareOf(targetRequest, request, cpus)
	return []tableCase{
		{Expected: share}, {Capped: true, Expected: cappedShare(share, request, cpus)},
		{Reserved: true, Expected: 1}, {Reserved: true, Capped: true, Expected: 1},
	}
}

// shareOf is what a thread with a CPU's weight for itself gets of a CPU that it shares with one of a neighbour's: the
// kernel spreads a group's weight over its threads' CPUs (kernel/sched/fair.c, calc_group_shares).
func shareOf(target, neighbour float64, threads int) float64 {
	return target / (target + neighbour/float64(threads))
}

// cappedShare is the same where the neighbour may use quota CPUs. Its threads burn the quota of a period together, all
// but one at full speed and the one that shares at what the target leaves it, and then stand still:
// t = quota / ((threads-1) + (1-share)) of the period. Until then the target has its share, and after it the whole CPU.
func cappedShare(share, quota float64, threads int) float64 {
	t := quota / (float64(threads-1) + 1 - share)
	if t >= 1 {
		return share
	}
	return share*t + 1 - t
}

// table measures the rows on this machine.
type table struct {
	*settings
	parties
	cpus   int
	keeper *keeper
}

func (s *settings) measureTable(ctx context.Context, p parties) (r *tableResult, err error) {
	b := &table{settings: s, parties: p, cpus: runtime.NumCPU()}
	if err := frame.Confine(tableNode(b.cpus)); err != nil {
		return nil, err
	}
	if err := errors.Join(b.MaximizeWeight(), b.anchor()); err != nil {
		return nil, err
	}
	if b.keeper, err = startKeeper(p, tableNode(b.cpus)); err != nil {
		return nil, err
	}
	r = &tableResult{Schema: tableSchema, Machine: b.Machine(), Seconds: s.slot.Seconds()}
	for _, c := range tableCases(b.cpus) {
		if c.Reserved && !s.reserve {
			continue
		}
		if c.Got, err = b.measure(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		b.Say("%-28s %5.1f %%, expected %5.1f %%", c.name(), 100*c.Got, 100*c.Expected)
		r.Cases = append(r.Cases, c)
	}
	return r, nil
}

// anchor keeps a limit on an empty group. With the first limit and without the last one the kernel patches its own code
// (kernel/sched/fair.c, cfs_bandwidth_used), which CPUs that are emulated at once do not always survive.
func (b *table) anchor() error {
	group, err := b.Add("anchor")
	if err != nil {
		return err
	}
	return b.Limit(group, experiment.Limited(1))
}

// measure has the threads run where the table has them, and takes what the target gets.
func (b *table) measure(ctx context.Context, c tableCase) (got float64, err error) {
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: tablePeriod}
	if c.Capped {
		limit.Quota = time.Duration((float64(b.cpus) - targetRequest) * float64(tablePeriod))
	}
	if err := b.LimitEvery(b.neighbour, limit); err != nil {
		return 0, err
	}
	if err := b.keeper.keep(ctx, false); err != nil { // a thread cannot be bound to a CPU that its group does not have
		return 0, err
	}
	err = b.Scope(ctx, func(f *frame.Bench) error {
		if err := spin(f, b.target, 0); err != nil {
			return err
		}
		for id := range b.cpus {
			if err := spin(f, b.neighbour, id); err != nil {
				return err
			}
		}
		if err := b.keeper.keep(ctx, c.Reserved); err != nil {
			return err
		}
		if err := experiment.Pause(ctx, afterChange); err != nil {
			return err
		}
		got, err = b.received(ctx)
		return err
	})
	return got, err
}

// received is what the target gets in a while, of what it has reserved.
func (b *table) received(ctx context.Context) (float64, error) {
	start := time.Now()
	used, err := b.Spent(b.target, func() error { return experiment.Pause(ctx, b.slot) })
	return used.Seconds() / time.Since(start).Seconds() / targetRequest, err
}

// spin starts a thread of a group on a CPU.
func spin(f *frame.Bench, group string, id int) error {
	_, err := f.Launch(experiment.Spin(), group, func(pid int) error { return experiment.Bind(pid, id) })
	return err
}

const tableSchema = "plimsoll.lab.reservation.table/v1"

// tableResult is what the table came to.
type tableResult struct {
	Schema string `json:"schema"`
	frame.Machine
	Seconds float64     `json:"seconds"`
	Cases   []tableCase `json:"cases"`
}

// Aims compare each row with the expected value.
func (r *tableResult) Aims() []experiment.Figure {
	var list []experiment.Figure
	for _, c := range r.Cases {
		list = append(list, experiment.Figure{Name: "target, " + c.name(), Value: c.Got, Measured: true,
			AtLeast: c.Expected - tolerance, AtMost: c.Expected + tolerance})
	}
	return list
}

// WriteText writes the table for people.
func (r *tableResult) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d CPUs; the target has one thread and reserved 1, its neighbour has %d threads, one on each CPU, and reserved %d.\n",
		r.CPUs, r.CPUs, r.CPUs-1)
	fmt.Fprintf(page, "%g s a row, kernel %s, cgroup %s. What the target received, of what it had reserved:\n", r.Seconds, r.Kernel, r.Cgroup)
	experiment.WriteFigures(page, r.Aims())
}
