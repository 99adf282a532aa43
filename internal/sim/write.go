package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
)

// The kernel's bounds and defaults of weights (kernel/sched/sched.h, include/linux/cgroup.h).
const (
	minShares, maxShares, idleShares, defaultShares = 2, 1 << 18, 3, 1024
	minWeight, maxWeight, defaultWeight             = 1, 10000, 100
)

// WriteFile writes a file, as the agent.
func (k *Kernel) WriteFile(name string, data []byte) error {
	var err error
	if k.Fault != nil {
		err = k.Fault("write", name, data)
	}
	return k.write(name, data, false, err)
}

// ForeignWrite writes a file as somebody else: a kubelet, an operator. No fault is injected.
func (k *Kernel) ForeignWrite(name, text string) error { return k.write(name, []byte(text), true, nil) }

// write does and notes a write, unless it failed before it came here.
func (k *Kernel) write(name string, data []byte, foreign bool, failed error) error {
	note := Write{At: k.Now(), Name: name, Data: string(data), Foreign: foreign, Err: failed}
	if failed == nil {
		var g *group
		var file string
		var in hierarchy
		if g, in, file, note.Err = k.locate(name); note.Err == nil && file == "" {
			note.Err = syscall.EISDIR
		} else if note.Err == nil && in == cpusetV1 && file == "tasks" {
			note.Err = k.moveCPUSet(g, string(data))
		} else if note.Err == nil {
			note.Group = g.id
			before := g.pool.Runtime()
			note.Err = k.set(g, file, string(data))
			if g.pool.Bandwidth().Limited() && before != cpu.Unlimited {
				note.Granted = g.pool.Runtime() - before
			}
		}
	}
	k.writes = append(k.writes, note)
	switch {
	case failed != nil:
		return pathError("write", name, failed)
	case note.Err != nil:
		return pathError("write", name, errno(note.Err))
	}
	return nil
}

// set parses and applies a write.
func (k *Kernel) set(g *group, file, text string) error {
	if text == "" {
		return nil // write(2) of nothing reaches no file
	}
	b := g.pool.Bandwidth()
	var err error
	switch file {
	case "cpu.max":
		b.Quota, b.Period, err = parseMax(text, b.Period)
		if k.config.DividesBurst {
			b.Burst = b.Burst.Truncate(time.Microsecond) / 1000
		}
	case "cpu.cfs_quota_us":
		b.Quota, err = parseQuota(text)
	case "cpu.cfs_period_us":
		b.Period, err = parseMicros(text)
	case "cpu.cfs_burst_us", "cpu.max.burst":
		b.Burst, err = parseMicros(text)
	case "cpu.shares", "cpu.weight":
		return k.setWeight(g, file, text)
	case "cpu.idle":
		return k.setIdle(g, text)
	case "cpuset.cpus":
		return k.setCPUs(g, text)
	case "cpuset.mems":
		return nil
	default:
		return syscall.EACCES // read-only here
	}
	if err != nil {
		return err
	}
	return k.setBandwidth(g, b)
}

// setBandwidth is tg_set_cfs_bandwidth: it checks, refills, and unthrottles every CPU.
func (k *Kernel) setBandwidth(g *group, b cpu.Bandwidth) error {
	if g == k.root {
		return fmt.Errorf("the root group has no limit: %w", syscall.EINVAL)
	}
	if err := bandwidth.Check(b, k.rules()); err != nil {
		return err
	}
	up := g.parent
	for up != nil && !up.pool.Bandwidth().Limited() {
		up = up.parent
	}
	if up != nil {
		if err := bandwidth.Fits(b, up.pool.Bandwidth(), k.rules()); err != nil {
			return err
		}
	}
	if err := k.fits(b, g.children); err != nil {
		return err
	}
	if k.Ignores && b == g.pool.Bandwidth() {
		return nil
	}
	k.wake(g, func() { g.pool.Set(b) })
	if !b.Limited() {
		g.spent = 0
	}
	g.unthrottle()
	return nil
}

// fits checks a limit against the nearest limits below it.
func (k *Kernel) fits(b cpu.Bandwidth, below []*group) error {
	for _, c := range below {
		var err error
		if own := c.pool.Bandwidth(); own.Limited() {
			err = bandwidth.Fits(own, b, k.rules())
		} else {
			err = k.fits(b, c.children)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setWeight is sched_group_set_shares and cpu_weight_write_u64: an idle group's weight is locked.
func (k *Kernel) setWeight(g *group, file, text string) error {
	n, err := parseInt(text)
	switch {
	case err != nil:
		return err
	case g == k.root || g.idle || n < 0:
		return syscall.EINVAL
	case file == "cpu.shares":
		g.weight = min(max(n, minShares), maxShares)
		return nil
	case n < minWeight || n > maxWeight:
		return syscall.ERANGE
	}
	g.weight = n
	return nil
}

// setIdle is sched_group_set_idle. The former weight is lost: clearing it leaves the default.
func (k *Kernel) setIdle(g *group, text string) error {
	n, err := parseInt(text)
	if err != nil {
		return err
	}
	if g == k.root || n < 0 || n > 1 {
		return syscall.EINVAL
	}
	if g.idle != (n == 1) {
		g.idle, g.weight = n == 1, k.defaultWeight()
	}
	return nil
}

func (k *Kernel) defaultWeight() int64 {
	if k.config.Version == 1 {
		return defaultShares
	}
	return defaultWeight
}

// shownWeight is what the file says: an idle group shows 3 shares on v1, and no weight on v2.
func (k *Kernel) shownWeight(g *group) int64 {
	switch {
	case !g.idle:
		return g.weight
	case k.config.Version == 1:
		return idleShares
	}
	return 0
}

// parseInt is kstrtoll: one newline at the end is allowed, spaces are not.
func parseInt(text string) (int64, error) {
	text = strings.TrimSuffix(text, "\n")
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return n, nil
	case strings.Trim(text, "0123456789") == "":
		return 0, syscall.ERANGE
	}
	return 0, syscall.EINVAL
}

func parseMicros(text string) (time.Duration, error) {
	n, err := parseInt(text)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt64/1000-1 {
		return 0, syscall.EINVAL
	}
	return time.Duration(n) * time.Microsecond, nil
}

// parseQuota is cpu_quota_write_s64: any negative number removes the limit.
func parseQuota(text string) (time.Duration, error) {
	if n, err := parseInt(text); err == nil && n < 0 {
		return cpu.Unlimited, nil
	}
	return parseMicros(text)
}

// parseMax is cpu_period_quota_parse: "QUOTA|max [PERIOD]"; the period stays when it is not given.
func parseMax(text string, period time.Duration) (quota, newPeriod time.Duration, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return 0, 0, syscall.EINVAL
	}
	if words[0] == "max" {
		quota = cpu.Unlimited
	} else if quota, err = parseMicros(words[0]); err != nil {
		return 0, 0, syscall.EINVAL
	}
	if len(words) > 1 {
		if period, err = parseMicros(words[1]); err != nil {
			return 0, 0, syscall.EINVAL
		}
	}
	return quota, period, nil
}
