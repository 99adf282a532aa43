package main

import (
	"bytes"
	"context"
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
	// tablePeriod is that of the neighbour's limit: the longest that the kernel takes. The formula holds for any, but
	// the kernel hands quota out in slices of 5 ms to each CPU (sched_cfs_bandwidth_slice_us) and counts at ticks, so
	// that the thread that shares its CPU, and uses a slice up slowly, runs on a while after the others stand still. In
	// a period of 100 ms that is 4 points of what the target gets on two CPUs.
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

func (s *settings) measureTable(ctx context.Context, p parties) *tableResult {
	b := &table{settings: s, parties: p, cpus: runtime.NumCPU()}
	frame.Check(frame.Confine(tableNode(b.cpus)))
	frame.Check(b.MaximizeWeight())
	// With the first limit and without the last one the kernel patches its own code (kernel/sched/fair.c,
	// cfs_bandwidth_used), which CPUs that are emulated at once do not always survive: an empty group keeps one.
	frame.Check(b.Limit(frame.Must(b.Add("anchor")), experiment.Limited(1)))
	b.keeper = startKeeper(p, tableNode(b.cpus))
	r := &tableResult{Schema: tableSchema, Machine: b.Machine(), Seconds: s.slot.Seconds()}
	for _, c := range tableCases(b.cpus) {
		if c.Reserved && !s.reserve {
			continue
		}
		frame.In(c.name(), func() { c.Got = b.measure(ctx, c) })
		b.Say("%-28s %5.1f %%, expected %5.1f %%", c.name(), 100*c.Got, 100*c.Expected)
		r.Cases = append(r.Cases, c)
	}
	return r
}

// measure has the threads run where the table has them, and takes what the target gets, of what it has reserved.
func (b *table) measure(ctx context.Context, c tableCase) (got float64) {
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: tablePeriod}
	if c.Capped {
		limit.Quota = time.Duration((float64(b.cpus) - targetRequest) * float64(tablePeriod))
	}
	frame.Check(b.LimitEvery(b.neighbour, limit))
	b.keeper.keep(ctx, false) // a thread cannot be bound to a CPU that its group does not have
	b.Scope(ctx, func(f *frame.Bench) {
		spin(f, b.target, 0)
		for id := range b.cpus {
			spin(f, b.neighbour, id)
		}
		b.keeper.keep(ctx, c.Reserved)
		frame.Check(experiment.Pause(ctx, afterChange))
		start := time.Now()
		used := frame.Must(b.Spent(b.target, func() error { return experiment.Pause(ctx, b.slot) }))
		got = used.Seconds() / time.Since(start).Seconds() / targetRequest
	})
	return got
}

// spin starts a thread of a group on a CPU.
func spin(f *frame.Bench, group string, id int) {
	f.Launch(experiment.Spin(), group, func(pid int) error { return experiment.Bind(pid, id) })
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
	fmt.Fprintf(page, "%d CPUs; the target has one thread and reserved 1, its neighbour has %d threads, one on each "+
		"CPU, and reserved %d.\n", r.CPUs, r.CPUs, r.CPUs-1)
	fmt.Fprintf(page, "%g s a row, kernel %s, cgroup %s. What the target received, of what it had reserved:\n",
		r.Seconds, r.Kernel, r.Cgroup)
	experiment.WriteFigures(page, r.Aims())
}
