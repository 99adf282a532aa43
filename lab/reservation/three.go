package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/lab/experiment"
)

// The published table: three CPUs, of which one is reserved for the target's one thread and two for the neighbour's
// three. One of those has to share a CPU with the target's.
const (
	threeCPUs        = 3
	neighbourThreads = 3
	neighbourRequest = 2.0
	targetRequest    = 1.0
	tolerance        = 0.05
	// threePeriod is that of the neighbour's limit: the longest that the kernel takes. The emulated CPUs take turns of
	// 100 ms (QEMU, TCG_KICK_PERIOD), in which no timer of another one fires; the formula holds for any period.
	threePeriod = time.Second
)

// threeNode are the CPUs of this program and the agent: they are not to be on the target's.
func threeNode() cpu.Set { return cpu.Set{1, 2} }

// threeCase is a row of the table.
type threeCase struct {
	Capped   bool    `json:"capped"`   // the neighbour has a limit of what it has reserved
	Reserved bool    `json:"reserved"` // the target has its CPU for itself
	Expected float64 `json:"expected"` // of what it has reserved
	Got      float64 `json:"got"`
}

func (c threeCase) name() string {
	name := "burstable neighbour"
	if c.Capped {
		name = "capped neighbour"
	}
	if c.Reserved {
		name += ", reserve"
	}
	return name
}

// threeCases are all rows.
func threeCases() []threeCase {
	share := shareOf(targetRequest, neighbourRequest, neighbourThreads)
	return []threeCase{
		{Expected: share}, {Capped: true, Expected: cappedShare(share, neighbourRequest, neighbourThreads)},
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

// three measures the table on this machine, which has three CPUs.
type three struct {
	settings
	groups            *experiment.Groups
	keeper            *keeper
	target, neighbour string
	children          []*experiment.Child
}

func measureThree(ctx context.Context, s settings, say func(string, ...any)) (r *threeResult, err error) {
	if n := runtime.NumCPU(); n != threeCPUs {
		return nil, fmt.Errorf("the table is for a machine of %d CPUs, and this one has %d", threeCPUs, n)
	}
	groups, err := experiment.NewPinnableGroups(s.cgroupRoot, "reservation")
	if err != nil {
		return nil, err
	}
	b := &three{settings: s, groups: groups}
	if err := experiment.Confine(threeNode()); err != nil {
		return nil, errors.Join(err, groups.Close())
	}
	defer func() { err = errors.Join(err, b.stop(), b.keeper.stop(), groups.Close()) }()
	if err := b.prepare(); err != nil {
		return nil, err
	}
	r = &threeResult{Schema: threeSchema, Kernel: experiment.Kernel(), Cgroup: groups.Tree().Version().String(), Seconds: s.slot.Seconds()}
	for _, c := range threeCases() {
		if c.Reserved && !s.reserve {
			continue
		}
		if c.Got, err = b.measure(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		say("%-28s %5.1f %%, expected %5.1f %%", c.name(), 100*c.Got, 100*c.Expected)
		r.Cases = append(r.Cases, c)
	}
	return r, nil
}

// prepare makes the groups.
func (b *three) prepare() (err error) {
	if b.target, err = b.groups.Add("target"); err != nil {
		return err
	}
	if b.neighbour, err = b.groups.Add("neighbour"); err != nil {
		return err
	}
	if err := weigh(b.groups, b.target, b.neighbour, neighbourRequest); err != nil {
		return err
	}
	b.keeper, err = startKeeper(b.plimsoll, b.cgroupRoot, b.groups, b.target, b.neighbour, threeNode())
	return err
}

// measure has the threads run where the table has them, and takes what the target gets.
func (b *three) measure(ctx context.Context, c threeCase) (got float64, err error) {
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: threePeriod}
	if c.Capped {
		limit.Quota = neighbourRequest * threePeriod
	}
	if err := b.groups.LimitEvery(b.neighbour, limit); err != nil {
		return 0, err
	}
	if err := b.keeper.keep(ctx, false); err != nil { // a thread cannot be bound to a CPU that its group does not have
		return 0, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.spin(b.target, 0); err != nil {
		return 0, err
	}
	for id := range neighbourThreads {
		if err := b.spin(b.neighbour, id); err != nil {
			return 0, err
		}
	}
	if err := b.keeper.keep(ctx, c.Reserved); err != nil {
		return 0, err
	}
	if err := experiment.Pause(ctx, settle); err != nil {
		return 0, err
	}
	return b.received(ctx)
}

// received is what the target gets in a while, of what it has reserved.
func (b *three) received(ctx context.Context) (float64, error) {
	start := time.Now()
	before, err := b.groups.Used(b.target)
	if err != nil {
		return 0, err
	}
	if err := experiment.Pause(ctx, b.slot); err != nil {
		return 0, err
	}
	after, err := b.groups.Used(b.target)
	return (after - before).Seconds() / time.Since(start).Seconds() / targetRequest, err
}

// spin starts a thread of a group on a CPU.
func (b *three) spin(group string, id int) error {
	c, err := experiment.Launch(experiment.Spin(), func(pid int) error {
		return errors.Join(b.groups.Enter(group, pid), experiment.Bind(pid, id))
	})
	if err == nil {
		b.children = append(b.children, c)
	}
	return err
}

func (b *three) stop() error {
	var errs []error
	for _, c := range b.children {
		errs = append(errs, c.Stop(0))
	}
	b.children = nil
	return errors.Join(errs...)
}
