package task

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Since 6.12 an ordinary task can have a custom slice: sched_runtime of sched_setattr, clamped to 0.1 to 100 ms, and 0
// for the kernel's default (kernel/sched/fair.c, __setparam_fair). Among the eligible tasks, which have not used more
// than their share, EEVDF runs the one with the earliest deadline, so a task with a short slice runs soon and often. A
// group has the shortest slice of its tasks (cfs_rq_min_slice), so the slice also matters between groups.

// Slice reads the slice of a task. It is 0 on kernels that have none (before 6.12).
func (*Kernel) Slice(tid int) (time.Duration, error) {
	attr, err := fair(tid)
	if err != nil {
		return 0, wrap("slice", tid, err)
	}
	return time.Duration(attr.Runtime), nil
}

// SetSlice sets the slice; 0 restores the kernel's default. Policy, nice value and flags stay. No call sets the
// slice alone, so a change of the others by another program in the same microsecond is lost.
func (*Kernel) SetSlice(tid int, slice time.Duration) error {
	attr, err := fair(tid)
	if err != nil {
		return wrap("slice", tid, err)
	}
	attr.Size, attr.Runtime = unix.SizeofSchedAttr, uint64(slice)
	return wrap("set the slice", tid, unix.SchedSetAttr(tid, attr, 0))
}

// fair reads the attributes of a task that the fair class runs.
func fair(tid int) (*unix.SchedAttr, error) {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return nil, err
	}
	if attr.Policy != unix.SCHED_NORMAL && attr.Policy != unix.SCHED_BATCH {
		return nil, ErrClass
	}
	return attr, nil
}

// BaseSlice is the slice of a task without a custom one. It changes with the number of CPUs that are online. It is read
// from a thread of ours. While that has real-time priority (probe/lend.go) it has no slice, and BaseSlice is the last
// one that was read. The priority is not taken from the thread meanwhile: it is lent to all threads or to none.
func (k *Kernel) BaseSlice() (base time.Duration, err error) {
	err = onOneThread(func(tid int) error {
		if err := k.SetSlice(tid, 0); err != nil {
			return err
		}
		base, err = k.Slice(tid)
		return err
	})
	switch last := time.Duration(k.base.Load()); {
	case err == nil:
		k.base.Store(int64(base))
	case errors.Is(err, ErrClass) && last > 0:
		return last, nil
	}
	return base, err
}

// HasSlices says whether the kernel has them: one is set on a thread of our own and read back. It is called before any
// priority is lent, and so reads the first BaseSlice.
func (k *Kernel) HasSlices() (has bool, why string) {
	const tried = 7 * time.Millisecond // no kernel's own
	err := onOneThread(func(tid int) error {
		if err := k.SetSlice(tid, tried); err != nil {
			return err
		}
		slice, err := k.Slice(tid)
		if err == nil && slice != tried {
			err = fmt.Errorf("a slice of %v is not kept (6.12)", tried)
		}
		return errors.Join(err, k.SetSlice(tid, 0))
	})
	if err == nil {
		_, err = k.BaseSlice()
	}
	if err != nil {
		return false, err.Error()
	}
	if why := sliceWhy(); why != "" {
		return false, why
	}
	return true, "slices of tasks: one was set and read back"
}
