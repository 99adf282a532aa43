package cgroup

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// needScratch is the answer where the scratch group that a question needs is not there.
func (p *prober) needScratch() (State, string) {
	return Unknown, fmt.Sprintf("needs a scratch group: %v", p.why)
}

// burst finds out whether the kernel has the burst buffer, which values it accepts, and whether it counts bursts.
func (p *prober) burst() {
	p.add(FeatureBurst, p.burstFile)
	p.add(FeatureAboveQuota, p.aboveQuota)
	p.add(FeatureCounters, p.burstCounters)
	p.add(FeatureKeepsBurst, p.keepsBurst)
}

func (p *prober) burstFile() (State, string) {
	state, detail := p.file(p.tree.burstFile())
	// Alibaba Cloud Linux has a switch for the whole machine.
	const knob = "proc/sys/kernel/sched_cfs_bw_burst_enabled"
	if data, err := readHost(p.host, knob); state == Yes && err == nil && strings.TrimSpace(data) == "0" {
		return No, "switched off by the sysctl kernel.sched_cfs_bw_burst_enabled"
	}
	return state, detail
}

const (
	probeQuota  = 20 * time.Millisecond
	probePeriod = time.Second
)

// limitScratch gives the scratch group a quota and a burst of the same size.
func (p *prober) limitScratch() error {
	if err := p.tree.SetBurst(p.scratch, 0); err != nil {
		return err
	}
	if err := p.tree.SetQuota(p.scratch, probeQuota); err != nil {
		return err
	}
	return p.tree.SetBurst(p.scratch, probeQuota)
}

func (p *prober) burstCounters() (State, string) {
	group, err := p.witness()
	if err != nil {
		return Unknown, err.Error()
	}
	c, err := p.tree.Counters(group)
	if err != nil {
		return Unknown, err.Error()
	}
	if c.HasBursts {
		return Yes, "nr_bursts in cpu.stat"
	}
	return No, "no nr_bursts in cpu.stat"
}

// keepsBurst tests for the defect that mendBurst works around.
func (p *prober) keepsBurst() (State, string) {
	if p.found.Get(FeatureBurst).State == No {
		return No, "no burst"
	}
	if p.scratch == "" {
		return p.needScratch()
	}
	if err := p.limitScratch(); err != nil {
		return Unknown, err.Error()
	}
	file, text := "cpu.max", formatMax(2*probeQuota, 100*time.Millisecond)
	if p.tree.version == V1 {
		file, text = "cpu.cfs_quota_us", formatQuotaV1(2*probeQuota)
	}
	if err := p.tree.write(p.scratch, file, text); err != nil {
		return Unknown, err.Error()
	}
	got, err := p.tree.Burst(p.scratch)
	if err != nil {
		return Unknown, err.Error()
	}
	if got != probeQuota {
		return No, fmt.Sprintf("a write of %s turned a burst of %v into %v", file, probeQuota, got)
	}
	return Yes, "a write of " + file + " leaves the burst alone"
}

// withinNode compares the sum of the limits and bursts with the CPUs of the machine. While the sum fits, the burst of
// one group takes nothing from the limit of another.
func (p *prober) withinNode() (State, string) {
	online, err := onlineCPUs(p.host)
	if err != nil {
		return Unknown, err.Error()
	}
	cpus, groups := 0.0, 0
	p.walk("/", func(group string) bool {
		b, err := p.tree.Bandwidth(group)
		if err != nil || !b.Limited() {
			return true
		}
		cpus += b.CPUs()
		groups++
		return false
	})
	detail := fmt.Sprintf("%d topmost limited groups may use %.2f of %d CPUs", groups, cpus, online)
	if cpus > float64(online) {
		return No, detail
	}
	return Yes, detail
}

// inotify compares the watches that a user may have with the groups there are.
func (p *prober) inotify() (State, string) {
	watches, err := hostNumber(p.host, "proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return Unknown, err.Error()
	}
	instances, err := hostNumber(p.host, "proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		return Unknown, err.Error()
	}
	groups := int64(0)
	p.walk("/", func(string) bool { groups++; return true })
	detail := fmt.Sprintf("max_user_watches %d, max_user_instances %d, %d groups", watches, instances, groups)
	if watches < 2*groups || instances == 0 {
		return No, detail
	}
	return Yes, detail
}

// walk visits the groups below a group, parents first, and goes down where visit says so. Our own are left out.
func (p *prober) walk(group string, visit func(group string) bool) {
	children, err := p.tree.Children(group)
	if err != nil {
		return // it vanished
	}
	for _, c := range children {
		if !strings.HasPrefix(path.Base(c), scratchPrefix) && visit(c) {
			p.walk(c, visit)
		}
	}
}
