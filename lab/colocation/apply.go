package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// configuration of the agent for a mechanism. The classes are the same with all.
func (b *bench) configuration(m strategy.Mechanism, slice time.Duration) string {
	return fmt.Sprintf("experimental: true\nstrategy: {policy: none}\ncolocation: {enable: true, mechanism: %s, slice: %v}\noverrides:\n", m, slice) +
		fmt.Sprintf("  - {cgroup: %q, class: LS}\n  - {cgroup: %q, class: BE}\n  - {cgroup: %q, class: BE}\n", b.online, b.offline, b.below)
}

// apply configures the agent for a row.
func (b *bench) apply(r row) error {
	return b.agent.Configure(b.configuration(r.mechanism(), r.slice()))
}

// home is where ffmpeg runs.
func (b *bench) home(r row) string {
	if r == idleBelow {
		return b.below
	}
	return b.offline
}

// mechanisms reads from the agent which mechanisms this machine has.
func (b *bench) mechanisms(ctx context.Context) (list []report.Mechanism, err error) {
	err = b.agent.Follow(ctx, b.configuration(strategy.MechanismAuto, 0), func() error {
		status, err := b.agent.Status(ctx)
		if err == nil && status.Colocation == nil {
			err = errors.New("the agent does not go by its configuration yet")
		}
		if err == nil {
			list = status.Colocation.Mechanisms
		}
		return err
	})
	return list, err
}

// await waits until a row is in force.
func (b *bench) await(ctx context.Context, r row) error {
	err := b.agent.Await(ctx, func() error {
		status, err := b.agent.Status(ctx)
		if err != nil {
			return err
		}
		return missing(r, status.Colocation)
	})
	if err != nil {
		return err
	}
	return experiment.Pause(ctx, afterChange)
}

// missing says what does not match the row yet. A row without co-location requests nothing, and changes nothing.
func missing(r row, c *report.Colocation) error {
	ours := c != nil && c.Scheduler != nil && c.Scheduler.InForce
	switch {
	case ours != (r.mechanism() == strategy.MechanismSchedExt) && c != nil && c.Asked == r.mechanism():
		return fmt.Errorf("a scheduler is loaded: %v", ours)
	case c == nil && r.prefers():
		return errors.New("the agent does not go by its configuration yet")
	case c == nil:
		return nil
	case c.Asked != r.mechanism():
		return fmt.Errorf("the agent still uses %q", c.Asked)
	case !r.prefers() && len(c.Knobs) > 0:
		return fmt.Errorf("%s of %s is not put back yet", c.Knobs[0].Knob, c.Knobs[0].Cgroup)
	case r.prefers() && c.Mechanism != r.mechanism():
		return fmt.Errorf("%s is used instead of %s: %s", c.Mechanism, r.mechanism(), c.Why)
	case r.prefers() && !c.InForce():
		return fmt.Errorf("%s is not in force yet", c.Mechanism)
	}
	return nil
}
