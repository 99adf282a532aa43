package apply

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// Read returns the value of a knob of a group.
func Read(tree *cgroup.Tree, group string, knob plan.Knob) (plan.Value, error) {
	switch knob {
	case plan.Quota:
		b, err := tree.Bandwidth(group)
		return plan.Time(b.Quota), err
	case plan.Burst:
		return spellTime(tree.Burst(group))
	case plan.Weight:
		return spellNumber(tree.Weight(group))
	case plan.Identity:
		return spellNumber(tree.Identity(group))
	case plan.Idle:
		return spellFlag(tree.Idle(group))
	case plan.SubtreeControl:
		return spellFlag(tree.CPUSetsEnabled(group))
	case plan.IdentitySysctl:
		return spellFlag(tree.IdentityEnabled())
	case plan.CPUs:
		return spellSet(tree.CPUs(group))
	case plan.Exclusive:
		return spellSet(tree.ExclusiveCPUs(group))
	case plan.Partition:
		kind, _, err := tree.Partition(group)
		return plan.Value(kind), err
	}
	return "", fmt.Errorf("unknown knob %q", knob)
}

func spellTime(d time.Duration, err error) (plan.Value, error) { return plan.Time(d), err }

func spellNumber(n int64, err error) (plan.Value, error) { return plan.Number(n), err }

func spellSet(cpus cpu.Set, err error) (plan.Value, error) { return plan.Set(cpus), err }

func spellFlag(on bool, err error) (plan.Value, error) {
	if on {
		return "1", err
	}
	return "0", err
}

// set writes a value in canonical form to a knob of a group.
func set(tree *cgroup.Tree, group string, knob plan.Knob, v plan.Value) error {
	switch knob {
	case plan.Quota:
		return setParsed(group, tree.SetQuota, v.Time)
	case plan.Burst:
		return setParsed(group, tree.SetBurst, v.Time)
	case plan.Weight:
		return setParsed(group, tree.SetWeight, v.Number)
	case plan.Identity:
		return setParsed(group, tree.SetIdentity, v.Number)
	case plan.Idle:
		return tree.SetIdle(group, v == "1")
	case plan.SubtreeControl:
		return tree.EnableCPUSets(group, v == "1")
	case plan.IdentitySysctl:
		return tree.EnableIdentity(v == "1")
	case plan.CPUs:
		return setParsed(group, tree.SetCPUs, v.Set)
	case plan.Exclusive:
		return setParsed(group, tree.SetExclusiveCPUs, v.Set)
	case plan.Partition:
		return setPartition(tree, group, v)
	}
	return fmt.Errorf("unknown knob %q", knob)
}

// setParsed parses a value and writes it to what is named by of, a group or a task.
func setParsed[K, T any](of K, write func(K, T) error, parse func() (T, error)) error {
	v, err := parse()
	if err != nil {
		return err
	}
	return write(of, v)
}

// canonical is the canonical form of a value: times in whole microseconds, as the kernel holds them. Only canonical
// values can be compared.
func canonical(knob plan.Knob, v plan.Value) (plan.Value, error) {
	switch knob {
	case plan.Quota, plan.Burst:
		d, err := v.Time()
		switch {
		case err != nil:
			return "", err
		case d < 0:
			return "", fmt.Errorf("%s %s is negative", knob, v)
		case d == cpu.Unlimited && knob == plan.Burst:
			return "", fmt.Errorf("a burst cannot be %s", v)
		case d == cpu.Unlimited:
			return plan.Time(d), nil
		}
		return plan.Time(d.Truncate(time.Microsecond)), nil
	case plan.Idle, plan.SubtreeControl, plan.IdentitySysctl:
		if v != "0" && v != "1" {
			return "", fmt.Errorf("%s is 0 or 1, not %q", knob, string(v))
		}
		return v, nil
	case plan.Partition:
		return v, nil
	case plan.Weight, plan.Identity, plan.Cookie:
		return spellNumber(v.Number())
	case plan.Slice:
		return spellTime(v.Time())
	case plan.CPUs, plan.Exclusive:
		return spellSet(v.Set())
	}
	return "", fmt.Errorf("unknown knob %q", knob)
}

// order compares two values of a knob; ok is false for knobs whose values have no order.
func order(knob plan.Knob, a, b plan.Value) (sign int, ok bool) {
	switch knob {
	case plan.Quota, plan.Burst:
		return compare(a, b, plan.Value.Time)
	case plan.Weight, plan.Idle, plan.Identity:
		return compare(a, b, plan.Value.Number)
	}
	return 0, false
}

func compare[T cmp.Ordered](a, b plan.Value, parse func(plan.Value) (T, error)) (sign int, ok bool) {
	x, err1 := parse(a)
	y, err2 := parse(b)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return cmp.Compare(x, y), true
}

// within says whether v lies in [lo, hi]. A knob without order has no range, and everything is within.
func within(knob plan.Knob, v, lo, hi plan.Value) bool {
	below, ok1 := order(knob, v, lo)
	above, ok2 := order(knob, v, hi)
	return !ok1 && !ok2 || ok1 && ok2 && below >= 0 && above <= 0
}

// clamps says whether the kernel may have clamped the change to this value. It clamps only weights (cpu.shares;
// kernel/sched/fair.c, __sched_group_set_shares); a quota or burst that differs from the written one is another
// program's.
func clamps(c plan.Change, held plan.Value) bool {
	if c.Knob != plan.Weight {
		return false
	}
	wanted, _ := order(c.Knob, c.To, c.From)
	moved, _ := order(c.Knob, held, c.From)
	left, _ := order(c.Knob, c.To, held)
	return moved == wanted && left == wanted
}

// took is how many writes the kernel took, of one that ended so.
func took(err error) int {
	if err == nil || errors.Is(err, cgroup.ErrBurst) {
		return 1
	}
	return 0
}
