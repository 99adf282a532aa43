package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// row is one way to have the two on the machine. Those with a mechanism bear its name.
type row string

const (
	baseline row = "baseline" // nginx alone
	control  row = "control"  // both, equal shares
	// as a pod in the kubelet's group of them: that at the least weight, and the pod's idle
	idleBelow row = "idleBelow"
	idleSlice row = "idle+slice" // idle, and slices for nginx
)

// onlineSlice is that of nginx in the row idle+slice: longer than a request, so that none is at its slice's end
// (internal/policy/tasks.go).
const onlineSlice = 10 * time.Millisecond

// allRows are all that there may be, in the order of the table.
func allRows() []row {
	rows := []row{baseline, control}
	for _, m := range strategy.Mechanisms() {
		switch m {
		case strategy.MechanismAuto, strategy.MechanismNone:
		case strategy.MechanismIdle:
			rows = append(rows, row(m), idleBelow, idleSlice)
		default:
			rows = append(rows, row(m))
		}
	}
	return rows
}

// beside says whether ffmpeg runs.
func (r row) beside() bool { return r != baseline }

// prefers says whether the online task is put first.
func (r row) prefers() bool { return r != baseline && r != control }

// mechanism is the mechanism that the configuration requests.
func (r row) mechanism() strategy.Mechanism {
	switch r {
	case baseline, control:
		return strategy.MechanismNone
	case idleBelow, idleSlice:
		return strategy.MechanismIdle
	}
	return strategy.Mechanism(r)
}

// slice is the slice that the configuration requests; 0: none.
func (r row) slice() time.Duration {
	if r == idleSlice {
		return onlineSlice
	}
	return 0
}

func parseRows(names []string) ([]row, error) {
	list, err := experiment.ParseNames("row", names, allRows())
	if err == nil && !slices.Contains(list, baseline) {
		err = fmt.Errorf("row %q is missing: all others are compared with it", baseline)
	}
	return list, err
}

// present are the rows that this machine has, as the agent says. Whether a scheduler can be loaded it finds out only
// when it is asked to load one: that is left to the kernel to say.
func present(list []report.Mechanism, schedExt bool) []row {
	has := func(name strategy.Mechanism) bool {
		return slices.ContainsFunc(list, func(m report.Mechanism) bool { return m.Name == name && m.Usable })
	}
	return slices.DeleteFunc(allRows(), func(r row) bool {
		if r.mechanism() == strategy.MechanismSchedExt {
			return !schedExt
		}
		return r.prefers() && !has(r.mechanism()) || r.slice() > 0 && !has(strategy.MechanismSlice)
	})
}

// hasSchedExt says whether the kernel accepts schedulers (kernel/sched/ext.c, 6.12 with CONFIG_SCHED_CLASS_EXT).
func hasSchedExt() bool {
	_, err := os.Stat("/sys/kernel/sched_ext")
	return err == nil
}

// configuration of the agent for a mechanism. The classes are the same with all.
func (b *bench) configuration(m strategy.Mechanism, slice time.Duration) string {
	return fmt.Sprintf("experimental: true\nstrategy: {policy: none}\ncolocation: {enable: true, mechanism: %s, "+
		"slice: %v}\noverrides:\n", m, slice) +
		fmt.Sprintf("  - {cgroup: %q, class: LS}\n  - {cgroup: %q, class: BE}\n  - {cgroup: %q, class: BE}\n", b.online,
			b.offline, b.below)
}

// home is where ffmpeg runs.
func (b *bench) home(r row) string {
	if r == idleBelow {
		return b.below
	}
	return b.offline
}

// mechanisms reads from the agent which mechanisms this machine has.
func (b *bench) mechanisms(ctx context.Context) (list []report.Mechanism) {
	frame.Check(b.agent.Follow(ctx, b.configuration(strategy.MechanismAuto, 0), func() error {
		status, err := b.agent.Status(ctx)
		if err == nil && status.Colocation == nil {
			err = errors.New("the agent does not go by its configuration yet")
		}
		if err == nil {
			list = status.Colocation.Mechanisms
		}
		return err
	}))
	return list
}

// await waits until a row is in force.
func (b *bench) await(ctx context.Context, r row) {
	frame.Check(b.agent.Await(ctx, func() error {
		status, err := b.agent.Status(ctx)
		if err != nil {
			return err
		}
		return missing(r, status.Colocation)
	}))
	frame.Check(experiment.Pause(ctx, afterChange))
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
