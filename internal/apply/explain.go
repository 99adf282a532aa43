package apply

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// minQuota is the smallest quota and period that the kernel accepts (kernel/sched/core.c, min_cfs_quota_period).
const minQuota = time.Millisecond

// explain adds the probable reason to an error of the kernel, from the values of the files.
func (w *Writer) explain(c plan.Change, err error) error {
	if why := w.why(c, err); why != "" {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

func (w *Writer) why(c plan.Change, err error) string {
	switch {
	case errors.Is(err, errNoFile):
		return noFile(c.Knob)
	case c.Knob == plan.CPUs && w.whyCPUs(err) != "":
		return w.whyCPUs(err)
	case c.Knob == plan.Cookie && errors.Is(err, syscall.EPERM):
		return "a cookie for tasks of another user takes CAP_SYS_PTRACE"
	case c.Knob.OfTasks() && errors.Is(err, syscall.EPERM):
		return "to set tasks of another user takes CAP_SYS_NICE"
	case c.Knob == plan.IdentitySysctl && errors.Is(err, syscall.EROFS):
		return "/proc/sys is read-only here (ProtectKernelTunables= of the unit, or a container)"
	case errors.Is(err, syscall.EROFS):
		return "control groups cannot be written here: in a container, mount them writable"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "this control group cannot be written: run as root; " +
			"where another user owns it, as one of a rootless container, that takes CAP_DAC_OVERRIDE"
	case !errors.Is(err, syscall.EINVAL):
		return ""
	}
	switch c.Knob {
	case plan.Quota:
		return w.whyQuota(c)
	case plan.Burst:
		return w.whyBurst(c)
	}
	return ""
}

func noFile(knob plan.Knob) string {
	switch knob {
	case plan.Burst:
		return "this kernel cannot burst (Linux 5.14 can)"
	case plan.Idle:
		return "this kernel has no cpu.idle (Linux 5.15 has)"
	case plan.Exclusive, plan.Partition:
		return "this kernel has no such partitions (Linux 6.7 has)"
	case plan.CPUs:
		return "the cpuset controller is not enabled for it"
	}
	return "the cpu controller is not enabled for it"
}

func (w *Writer) whyBurst(c plan.Change) string {
	b, err := w.tree.Bandwidth(c.Cgroup.Path)
	burst, _ := c.To.Time()
	if err == nil && burst > b.Quota {
		return fmt.Sprintf("burst %s above quota %s", c.To, plan.Time(b.Quota))
	}
	return ""
}

func (w *Writer) whyQuota(c plan.Change) string {
	b, err := w.tree.Bandwidth(c.Cgroup.Path)
	if err != nil {
		return ""
	}
	b.Quota, _ = c.To.Time()
	switch {
	case b.Quota < minQuota:
		return fmt.Sprintf("quota %s below the least, %s", c.To, plan.Time(minQuota))
	case b.Burst > b.Quota:
		return fmt.Sprintf("burst %s above quota %s", plan.Time(b.Burst), c.To)
	case w.tree.Version() == cgroup.V1 && b.Limited():
		if why := w.whyHierarchy(c.Cgroup.Path, b); why != "" {
			return why
		}
		return dyingChild
	}
	return ""
}

// dyingChild is the reason that remains if no existing group conflicts: on v1 a removed group counts in the hierarchy
// until the kernel has released it (kernel/sched/core.c, cpu_cgroup_css_released), 15 to 20 ms after rmdir on an idle
// machine.
const dyingChild = "a child that was removed a moment ago may still count: try again"

// whyHierarchy finds the ancestor or child with which a quota conflicts. On v1 a group's quota may not exceed that of
// its nearest limited ancestor, as a share of the period (kernel/sched/core.c, tg_cfs_schedulable_down).
func (w *Writer) whyHierarchy(group string, want cpu.Bandwidth) string {
	for parent := range workload.Above(group) {
		b, err := w.tree.Bandwidth(parent)
		if err != nil || !b.Limited() {
			continue
		}
		if want.CPUs() > b.CPUs() {
			return fmt.Sprintf("above the quota of the parent %s, %s each %s", parent, b.Quota, b.Period)
		}
		break
	}
	children, err := w.tree.Children(group)
	if err != nil {
		return ""
	}
	for _, child := range children {
		b, err := w.tree.Bandwidth(child)
		if err == nil && b.Limited() && b.CPUs() > want.CPUs() {
			return fmt.Sprintf("below the quota of the child %s, %s each %s", child, b.Quota, b.Period)
		}
	}
	return ""
}
