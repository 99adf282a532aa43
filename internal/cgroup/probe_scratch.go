package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// needScratch is the answer where the scratch group that a question needs is not there.
func (p *prober) needScratch() (State, string) {
	return Unknown, fmt.Sprintf("needs a scratch group: %v", p.why)
}

// burst asks for the burst buffer, for what it accepts, and for its counters.
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

// aboveQuota tries a burst above the quota: mainline refuses it with EINVAL, Alibaba Cloud Linux takes it.
func (p *prober) aboveQuota() (State, string) {
	if p.scratch == "" {
		return p.needScratch()
	}
	if p.found.Get(FeatureBurst).State == No {
		return No, "no burst"
	}
	if err := p.limitScratch(); err != nil {
		return Unknown, err.Error()
	}
	err := p.tree.SetBurst(p.scratch, 2*probeQuota)
	if errors.Is(err, syscall.EINVAL) {
		return No, "a burst above the quota is EINVAL"
	}
	if err != nil {
		return Unknown, err.Error()
	}
	got, err := p.tree.Burst(p.scratch)
	if err != nil {
		return Unknown, err.Error()
	}
	if got <= probeQuota {
		return No, fmt.Sprintf("%v was asked for, %v is in force", 2*probeQuota, got)
	}
	return Yes, "a burst above the quota is taken"
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

// keepsBurst looks for the defect that mendBurst mends.
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

// How long the refill probe waits: for the spinner to use up its quota, for the proof that it stands still, and for
// what a rewrite does.
const (
	throttleWait = probePeriod / 2
	stillFor     = 16 * time.Millisecond
	refillWait   = 50 * time.Millisecond
	pollEvery    = 2 * time.Millisecond
)

// refill writes the burst of a group that has used its quota up once more, unchanged, or the quota where there is no
// burst. A kernel that refills lets the group run on, and then counts the throttle as ended.
func (p *prober) refill() (State, string) {
	if p.scratch == "" {
		return p.needScratch()
	}
	if p.host.Spin == nil {
		return Unknown, "nothing to burn CPU with"
	}
	if err := p.quotaPerSecond(); err != nil {
		return Unknown, err.Error()
	}
	spinner, err := p.host.Spin()
	if err != nil {
		return Unknown, err.Error()
	}
	defer spinner.Stop()
	if err := p.tree.write(p.scratch, "cgroup.procs", strconv.Itoa(spinner.PID())); err != nil {
		return Unknown, err.Error()
	}
	used, err := untilStill(spinner)
	if err != nil {
		return Unknown, err.Error()
	}
	rewritten, rewrite := "burst", p.tree.SetBurst
	if p.found.Get(FeatureBurst).State == No {
		rewritten, rewrite = "quota", func(group string, _ time.Duration) error { return p.tree.SetQuota(group, probeQuota) }
	}
	if err := rewrite(p.scratch, 0); err != nil {
		return Unknown, err.Error()
	}
	for waited := time.Duration(0); waited < refillWait; waited += pollEvery {
		time.Sleep(pollEvery)
		if c, err := p.tree.Counters(p.scratch); err == nil && c.ThrottledTime > 0 {
			return Yes, "writing an unchanged " + rewritten + " refills the runtime and ends a throttle"
		}
	}
	now, err := spinner.Runtime()
	if err != nil || now-used > pollEvery {
		return Unknown, fmt.Sprintf("%v used before the rewrite, %v after it (error %v)", used, now, err)
	}
	return No, "writing an unchanged " + rewritten + " does nothing"
}

// quotaPerSecond limits the scratch group to probeQuota in a period so long that none ends during the probe.
func (p *prober) quotaPerSecond() error {
	if err := p.tree.SetBurst(p.scratch, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	heaviest := map[Version]int64{V1: 1 << 18, V2: 10000}[p.tree.version]
	_ = p.tree.SetWeight(p.scratch, heaviest) // on a machine that is full the quota is not used up in time without it
	if p.tree.version == V2 {
		return p.tree.write(p.scratch, "cpu.max", formatMax(probeQuota, probePeriod))
	}
	if err := p.tree.write(p.scratch, "cpu.cfs_period_us", formatMicros(probePeriod)); err != nil {
		return err
	}
	return p.tree.SetQuota(p.scratch, probeQuota)
}

// untilStill has the spinner go, and waits until it has used its quota and makes no way any more. A part of the quota may
// be left with CPUs that it went away from.
func untilStill(spinner Spinner) (time.Duration, error) {
	first, err := spinner.Runtime()
	if err != nil {
		return 0, err
	}
	spinner.Go()
	last, still := first, time.Duration(0)
	for waited := time.Duration(0); waited < throttleWait; waited += pollEvery {
		time.Sleep(pollEvery)
		now, err := spinner.Runtime()
		if err != nil {
			return 0, err
		}
		if now != last {
			last, still = now, 0
			continue
		}
		still += pollEvery
		if still >= stillFor && last-first >= probeQuota/2 {
			return last, nil
		}
	}
	return 0, fmt.Errorf("no throttle within %v: %v of %v used", throttleWait, last-first, probeQuota)
}

// withinNode compares what the limited groups may use together with what the machine has: as long as the sum fits,
// nobody's limit is worth less because of another's burst.
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
