package probe

import (
	"os"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// A CPU that goes offline under a group, and comes back, loses no report: throttles, and the use of all
// periods, whose sum is the kernel's count. The test runs in virtual machines only.
func TestHotplug(t *testing.T) {
	const online = "/sys/devices/system/cpu/cpu1/online"
	if !emulated() {
		cgrouptest.Elsewhere(t, "tier vm", "no CPU of a machine that others may use is taken away")
	}
	p := open(t, Options{Use: true, Ahead: true})
	g := cgrouptest.New(t)
	g.Prevail() // or who reads the reports keeps it from its limit, on the CPU that is left
	limit(t, g, 60*ms, 100*ms)
	watch(t, p, g)
	spinners := g.Spin(2)
	throttled := func(when string) {
		before := totals(t, p, g)
		within(t, 20*time.Second, "throttles, and the use of periods, "+when, func() bool {
			now := totals(t, p, g)
			return now.Begins > before.Begins+10 && now.Ends > before.Ends+10 && now.PeriodEnd > before.PeriodEnd
		})
	}
	sum := func() (reported, used time.Duration) {
		within(t, 20*time.Second, "no task runs", func() bool { return totals(t, p, g).Since != 0 })
		used, err := g.Tree().Usage(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		return totals(t, p, g).Sum, used
	}
	throttled("with both CPUs")
	t.Cleanup(func() { // for the tests that follow a failure
		if err := os.WriteFile(online, []byte("1"), 0o600); err != nil {
			t.Error(err)
		}
	})
	reported, used := sum()
	for _, state := range []string{"0", "1"} {
		if err := os.WriteFile(online, []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		if state == "1" { // it is used again: the kernel may leave both where they are
			cgrouptest.Pin(t, 1, spinners[1])
		}
		throttled("with CPU 1 " + map[string]string{"0": "offline", "1": "online again"}[state])
	}
	reportedAfter, usedAfter := sum()
	// What one period used of the two readings is known at its end only, and at a quota and a tick of each CPU at most.
	if step, err := Tick(); err != nil || (reportedAfter-reported)-(usedAfter-used) > 60*ms+2*step ||
		(usedAfter-used)-(reportedAfter-reported) > 60*ms+2*step {
		t.Errorf("%v reported, %v used (%v)", reportedAfter-reported, usedAfter-used, err)
	}
}
