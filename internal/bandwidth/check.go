package bandwidth

import (
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/cpu"
)

// The kernel's bounds (kernel/sched/core.c).
const (
	MinQuota  = time.Millisecond               // min_cfs_quota_period
	MinPeriod = time.Millisecond               // min_cfs_quota_period
	MaxPeriod = time.Second                    // max_cfs_quota_period
	MaxQuota  = (1<<44 - 1) * time.Microsecond // max_cfs_runtime
)

// Rules are what kernels differ in.
type Rules struct {
	Version int // of cgroup: on 1, a child's limit may not exceed its parent's
	// BurstAboveQuota is Alibaba Cloud Linux 4.19: burst is bounded by max_cfs_runtime alone.
	BurstAboveQuota bool
}

// ErrRefused is what the kernel answers with EINVAL.
var ErrRefused = errors.New("the kernel refuses it (EINVAL)")

func refuse(rule, format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s", fmt.Sprintf(format, args...), ErrRefused, rule)
}

// Check says which rule of tg_set_cfs_bandwidth a group's own values break. A quota below the burst that stands is
// the same error as a burst above the quota, so lowering a quota needs its burst lowered first.
func Check(b cpu.Bandwidth, rules Rules) error {
	switch {
	case b.Quota < MinQuota:
		return refuse("quota >= min_cfs_quota_period", "quota %v is below %v", b.Quota, MinQuota)
	case b.Period < MinPeriod:
		return refuse("period >= min_cfs_quota_period", "period %v is below %v", b.Period, MinPeriod)
	case b.Period > MaxPeriod:
		return refuse("period <= max_cfs_quota_period", "period %v is above %v", b.Period, MaxPeriod)
	case b.Burst < 0:
		return refuse("burst is unsigned", "burst %v is negative", b.Burst)
	case !b.Limited():
		return nil
	case b.Quota > MaxQuota:
		return refuse("quota <= max_cfs_runtime", "quota %v is above %v", b.Quota, MaxQuota)
	case b.Burst > b.Quota && !rules.BurstAboveQuota:
		return refuse("burst <= quota", "burst %v is above the quota %v", b.Burst, b.Quota)
	case b.Burst > MaxQuota-b.Quota:
		return refuse("burst + quota <= max_cfs_runtime", "burst %v and quota %v are above %v together",
			b.Burst, b.Quota, MaxQuota)
	}
	return nil
}

// Fits says whether a group may have this bandwidth below an ancestor, the nearest that has a limit. cgroup v1
// refuses a child above its parent, and a parent below its child alike (tg_cfs_schedulable_down). On v2 everything
// fits, and the lower of the two is in force.
func Fits(child, ancestor cpu.Bandwidth, rules Rules) error {
	if rules.Version != 1 || !child.Limited() || !ancestor.Limited() || ratio(child) <= ratio(ancestor) {
		return nil
	}
	return refuse("max(child_quota) <= parent_quota", "%v per %v below a parent with %v per %v",
		child.Quota, child.Period, ancestor.Quota, ancestor.Period)
}

// ratio is the kernel's to_ratio: CPUs in units of 2^-20, rounded down, from microseconds.
func ratio(b cpu.Bandwidth) uint64 {
	return uint64(b.Quota/time.Microsecond) << 20 / uint64(b.Period/time.Microsecond)
}
