package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"time"
)

// Features that are judged by what the scratch group can run.
//
// Problem: what reads back is no proof. A kernel may take a burst above the quota and clamp it at the refill, or take
// an unchanged value and do nothing (both were posted upstream as patches).
//
// Approach: the scratch group gets a quota in a period so long that none ends during the probe, and a process that
// burns CPU. Only a write can then give it runtime, so the CPU time that it uses shows what the write gave.
//
// Known limits: on a machine that is so busy that the process does not get its CPU time, the answer is unknown. What a
// CPU runs beyond its slice, up to a tick, is used too, so all margins are half a quota.

// How long the probes wait: for the process to use up its runtime, for the proof that the group is throttled, and for
// the effect of a write.
const (
	throttleWait = probePeriod / 2
	stillFor     = 16 * time.Millisecond
	refillWait   = 60 * time.Millisecond
	pollEvery    = 2 * time.Millisecond
)

// aboveFactor is the burst that is tried, in quotas.
const aboveFactor = 3

// aboveQuota tries a burst above the quota: mainline refuses it with EINVAL, Alibaba Cloud Linux accepts it. Each write
// of another burst adds one quota to the pool, up to quota + burst. So a group whose burst is in force can then use the
// whole sum.
func (p *prober) aboveQuota() (State, string) {
	if p.scratch == "" {
		return p.needScratch()
	}
	if p.found.Get(FeatureBurst).State == No {
		return No, "no burst"
	}
	if err := p.quotaPerSecond(); err != nil {
		return Unknown, err.Error()
	}
	for n := time.Duration(1); n <= aboveFactor; n++ {
		err := p.tree.SetBurst(p.scratch, n*probeQuota)
		if n > 1 && errors.Is(err, syscall.EINVAL) {
			return No, "a burst above the quota is EINVAL"
		}
		if err != nil {
			return Unknown, err.Error()
		}
	}
	got, err := p.tree.Burst(p.scratch)
	if err != nil {
		return Unknown, err.Error()
	}
	if got <= probeQuota {
		return No, fmt.Sprintf("%v was written, %v is in force", aboveFactor*probeQuota, got)
	}
	if p.host.Spin == nil {
		return Unknown, "a burst above the quota is taken; nothing to burn CPU with shows whether it is in force"
	}
	spinner, err := p.spin()
	if err != nil {
		return Unknown, err.Error()
	}
	defer spinner.Stop()
	before, err := p.seen(spinner)
	if err != nil {
		return Unknown, err.Error()
	}
	if err := untilStill(spinner, probeQuota/2); err != nil {
		return Unknown, err.Error()
	}
	after, err := p.seen(spinner)
	if err != nil {
		return Unknown, err.Error()
	}
	return judgeAbove(before, after)
}

// judgeAbove judges by what a group with a burst of aboveFactor quotas ran until it was throttled. Runtime that the end
// of a period may have added does not count.
func judgeAbove(before, after effect) (State, string) {
	used := after.ran - before.ran - time.Duration(after.periods-before.periods)*probeQuota
	most, clamped := (1+aboveFactor)*probeQuota, 2*probeQuota
	switch detail := fmt.Sprintf("with a quota of %v and a burst of %v it used %v", probeQuota, aboveFactor*probeQuota,
		used.Round(time.Millisecond)); {
	case used >= most-probeQuota:
		return Yes, "a burst above the quota is in force: " + detail
	case used >= clamped-probeQuota/2:
		return No, "a burst above the quota is taken, and clamped at the refill: " + detail
	default:
		return Unknown, "the writes filled no burst: " + detail
	}
}

// refill rewrites the unchanged burst of a group that has used up its quota, or the quota where there is no burst. A
// kernel that refills lets the group run on.
func (p *prober) refill() (State, string) {
	if p.scratch == "" {
		return p.needScratch()
	}
	if p.host.Spin == nil || p.host.Quick {
		return Unknown, "nothing to burn CPU with"
	}
	if err := p.quotaPerSecond(); err != nil {
		return Unknown, err.Error()
	}
	spinner, err := p.spin()
	if err != nil {
		return Unknown, err.Error()
	}
	defer spinner.Stop()
	rewritten, rewrite := "burst", p.tree.SetBurst
	if p.found.Get(FeatureBurst).State == No {
		rewritten, rewrite = "quota", func(group string, _ time.Duration) error {
			return p.tree.SetQuota(group, probeQuota)
		}
	}
	var before, after effect
	// The next period ends a second after the one that ended meanwhile.
	for _, least := range []time.Duration{probeQuota / 2, 0} {
		if err := untilStill(spinner, least); err != nil {
			return Unknown, err.Error()
		}
		if before, after, err = p.rewritten(spinner, rewrite); err != nil {
			return Unknown, err.Error()
		}
		if before.periods == after.periods {
			break
		}
	}
	state, detail := judgeRefill(before, after)
	if state == No {
		state, detail = p.confirm(spinner, before, detail)
	}
	return state, "writing an unchanged " + rewritten + " " + detail
}

// rewritten holds the readings before and after a write to the scratch group while it is throttled.
func (p *prober) rewritten(spinner Spinner,
	rewrite func(string, time.Duration) error) (before, after effect, err error) {
	if before, err = p.seen(spinner); err != nil {
		return before, after, err
	}
	if err := rewrite(p.scratch, 0); err != nil {
		return before, after, err
	}
	after = before
	for waited := time.Duration(0); waited < refillWait && after.ran-before.ran < probeQuota/2; waited += pollEvery {
		time.Sleep(pollEvery)
		if after, err = p.seen(spinner); err != nil {
			return before, after, err
		}
	}
	return before, after, nil
}

// confirm has the answer No stand only if the group was throttled at the write. On a machine that is full a process may
// make no way because it waits for a CPU. The kernel counts a throttle when it ends, at the latest with the period.
func (p *prober) confirm(spinner Spinner, before effect, detail string) (State, string) {
	for waited := time.Duration(0); waited < probePeriod+throttleWait; waited += pollEvery {
		time.Sleep(pollEvery)
		now, err := p.seen(spinner)
		switch {
		case err != nil:
			return Unknown, err.Error()
		case now.throttled-before.throttled >= refillWait:
			return No, detail
		case now.ran-before.ran > pollEvery:
			return Unknown, "could not be judged: the group waited for a CPU, the machine is too busy"
		}
	}
	return Unknown, "could not be judged: no throttle ended"
}

// effect is what is seen of a group before and after a write.
type effect struct {
	ran       time.Duration // CPU time of its process
	throttled time.Duration // time of throttles that have ended
	periods   int64         // that have ended
}

func (p *prober) seen(spinner Spinner) (effect, error) {
	ran, err := spinner.Runtime()
	if err != nil {
		return effect{}, err
	}
	c, err := p.tree.Counters(p.scratch)
	return effect{ran, c.ThrottledTime, c.Periods}, err
}

// judgeRefill judges a write to a throttled group by what the group ran after the write.
func judgeRefill(before, after effect) (State, string) {
	ran, ended := after.ran-before.ran, after.throttled > before.throttled
	switch {
	case after.periods != before.periods:
		return Unknown, "was followed by the end of a period, which refills too"
	case ran >= probeQuota/2:
		return Yes, "refills the runtime: the group ran on for " + ran.Round(time.Millisecond).String()
	case ended:
		return Unknown, fmt.Sprintf("ends a throttle, and the group then got %v of CPU in %v: the machine is too busy",
			ran, refillWait)
	case ran > pollEvery:
		return Unknown, fmt.Sprintf("was followed by %v of CPU, which is neither a refill nor a standstill", ran)
	}
	return No, "does nothing: the group stays throttled"
}

// quotaPerSecond limits the scratch group to probeQuota in a period so long that none ends during the probe. The
// group's former limit does not matter: without a burst, a write leaves one quota of runtime.
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

// spin starts a process in the scratch group that waits to burn CPU.
func (p *prober) spin() (Spinner, error) {
	spinner, err := p.host.Spin()
	if err != nil {
		return nil, err
	}
	if err := p.tree.write(p.scratch, "cgroup.procs", strconv.Itoa(spinner.PID())); err != nil {
		spinner.Stop()
		return nil, err
	}
	return spinner, nil
}

// untilStill has the process go, and waits until it has used the least and makes no way any more. A part of its runtime
// may be left with CPUs that it went away from.
func untilStill(spinner Spinner, least time.Duration) error {
	first, err := spinner.Runtime()
	if err != nil {
		return err
	}
	spinner.Go()
	last, still := first, time.Duration(0)
	for waited := time.Duration(0); waited < throttleWait; waited += pollEvery {
		time.Sleep(pollEvery)
		now, err := spinner.Runtime()
		if err != nil {
			return err
		}
		if now != last {
			last, still = now, 0
			continue
		}
		still += pollEvery
		if still >= stillFor && last-first >= least {
			return nil
		}
	}
	return fmt.Errorf("no throttle within %v: %v used", throttleWait, last-first)
}
