package cgroup

import (
	"path"
	"strings"
	"testing"
	"time"
)

// poolFS is a kernel whose scratch group has a pool of runtime, and the process that uses it up. A write of quota or
// burst adds one quota to the pool (tg_set_cfs_bandwidth), unless a peculiarity of the kernel prevents it.
type poolFS struct {
	*probeFS
	clamps  bool // a burst above the quota reads back, and counts for one quota at the refill
	ignores bool // an unchanged value does nothing
	only    string
	left    time.Duration
	used    time.Duration
	calls   int
	ends    int // at this reading a period ends, which refills the pool
	waits   int // from this reading on, and for 45 of them, it waits for a CPU
	still   int // readings since the pool is empty; a period ends after 60
	stopped bool
}

func (k *poolFS) WriteFile(name string, data []byte) error {
	before := k.memFS[name]
	if err := k.probeFS.WriteFile(name, data); err != nil {
		return err
	}
	switch file := path.Base(name); {
	case !strings.HasPrefix(file, "cpu.cfs_") && file != "cpu.max" && file != "cpu.max.burst":
	case k.ignores && before == k.memFS[name]:
	case k.only != "" && file != k.only && k.used > 0:
	default:
		k.refill(path.Dir(name))
	}
	return nil
}

func (k *poolFS) refill(group string) {
	quota, _ := parseQuotaV1(strings.TrimSpace(k.memFS[group+"/cpu.cfs_quota_us"]))
	burst, _ := parseMicros(strings.TrimSpace(k.memFS[group+"/cpu.cfs_burst_us"]))
	if k.clamps {
		burst = min(burst, quota)
	}
	if quota > 0 && quota < time.Hour {
		k.left = min(k.left+quota, quota+burst)
	}
}

func (k *poolFS) PID() int { return 4 }
func (k *poolFS) Go()      {}
func (k *poolFS) Stop()    { k.stopped = true }

func (k *poolFS) Runtime() (time.Duration, error) {
	if k.calls++; k.calls == k.ends {
		group := "cpu/plimsoll-probe-77"
		k.memFS[group+"/cpu.stat"] = "nr_periods 1\nnr_throttled 1\nthrottled_time 5\n"
		k.refill(group)
	}
	if k.still++; k.left > 0 {
		k.still = 0
	}
	if k.still == 60 {
		group := "cpu/plimsoll-probe-77"
		k.memFS[group+"/cpu.stat"] = "nr_periods 2\nnr_throttled 2\nthrottled_time 900000000\n"
		k.refill(group)
	}
	ran := min(k.left, 4*time.Millisecond)
	if k.waits > 0 && k.calls >= k.waits && k.calls < k.waits+45 {
		ran = 0
	}
	k.used, k.left = k.used+ran, k.left-ran
	return k.used, nil
}

// TestProbeByEffect: what reads back is no proof, and neither is what the end of a period refills.
func TestProbeByEffect(t *testing.T) {
	for name, c := range map[string]struct {
		kernel  poolFS
		more    bool // a burst above the quota is written and read back
		noBurst bool
		above   State
		refill  State
	}{
		"mainline":                              {above: No, refill: Yes},
		"a vendor's burst":                      {more: true, above: Yes, refill: Yes},
		"a burst that is clamped at the refill": {kernel: poolFS{clamps: true}, more: true, above: No, refill: Yes},
		"an unchanged write does nothing":       {kernel: poolFS{ignores: true}, above: No, refill: No},
		"both": {kernel: poolFS{ignores: true, clamps: true}, more: true, above: No,
			refill: No},
		"only a quota refills": {kernel: poolFS{only: "cpu.cfs_quota_us"}, above: No, refill: No},
		"no burst":             {noBurst: true, above: No, refill: Yes},
		"no burst, and an unchanged write fails": {kernel: poolFS{ignores: true}, noBurst: true, above: No,
			refill: No},
		"a period ends beside an unchanged write": {kernel: poolFS{ignores: true, ends: 18}, above: No, refill: No},
		"a process that waits for a CPU":          {kernel: poolFS{waits: 5}, above: No, refill: Unknown},
		"a period ends beside a clamped burst": {kernel: poolFS{clamps: true, ends: 6}, more: true, above: No,
			refill: Yes},
	} {
		t.Run(name, func(t *testing.T) {
			k, host := c.kernel, testHost()
			k.probeFS = v1Probe()
			k.takesMore = c.more
			if c.noBurst {
				delete(k.template, "cpu.cfs_burst_us")
			}
			host.Spin = func() (Spinner, error) { return &k, nil }
			found := Probe(&k, host)
			for feature, want := range map[string]State{FeatureAboveQuota: c.above, FeatureRefill: c.refill} {
				if got := found.Get(feature); got.State != want {
					t.Errorf("%+v, want %s", got, want)
				}
			}
			if !k.stopped {
				t.Error("the process goes on")
			}
			host.Quick = true
			if got := Probe(&k, host).Get(FeatureRefill); got.State != Unknown {
				t.Errorf("in a hurry: %+v", got)
			}
		})
	}
}

func TestJudgeEffects(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		after effect
		above State // with nothing before
		again State // of a refill
	}{
		{effect{ran: 0}, Unknown, No},
		{effect{ran: 2 * ms}, Unknown, No},
		{effect{ran: 2 * ms, throttled: ms}, Unknown, Unknown},
		{effect{ran: 6 * ms}, Unknown, Unknown},
		{effect{ran: 10 * ms}, Unknown, Yes},
		{effect{ran: 20 * ms, throttled: ms}, Unknown, Yes},
		{effect{ran: 20 * ms, throttled: ms, periods: 1}, Unknown, Unknown},
		{effect{ran: 30 * ms}, No, Yes},
		{effect{ran: 44 * ms}, No, Yes},
		{effect{ran: 59 * ms}, No, Yes},
		{effect{ran: 60 * ms}, Yes, Yes},
		{effect{ran: 79 * ms, periods: 1}, No, Unknown},
		{effect{ran: 80 * ms}, Yes, Yes},
	} {
		before := effect{ran: 7 * ms}
		after := c.after
		after.ran += before.ran
		above, why := judgeAbove(before, after)
		again, because := judgeRefill(before, after)
		if above != c.above || again != c.again || why == "" || because == "" {
			t.Errorf("%+v: above the quota %s (%s), refilled %s (%s); want %s, %s", c.after, above, why, again, because,
				c.above, c.again)
		}
	}
}
