package agent

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestRestartsShareAStartBudget: a container that is started anew every 20 s has one start, of startupSeconds in all,
// and the cap of other times after it: in a pod, whose containers have new names and groups, and as a plain group,
// whose path is the same each time. So has what starts beside it in the pod.
func TestRestartsShareAStartBudget(t *testing.T) {
	const cap, startCap = 1.5, 3.0 // CPUs: three and six times the limit
	for name, c := range map[string]struct {
		pod  string
		path func(i int) string
	}{
		"a pod":         {"/pod", func(i int) string { return fmt.Sprint("/pod/", i) }},
		"a plain group": {"", func(int) string { return "/job" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, 4)
			w.subscribes(true)
			pod := workload.Pod{}
			if c.pod != "" {
				pod.ID = w.group(c.pod, 50*ms)
			}
			w.run(time.Second)
			for i := range 6 { // 120 s
				container := w.container(c.path(i), 50*ms, sim.Spin(4))
				container.Strategy.Policy, container.Strategy.StartupBurstPercent = strategy.CFSQuotaBurstOnly, 600
				pod.Containers = []workload.Container{container}
				w.place.pods = []workload.Pod{pod}
				w.run(20 * time.Second)
				got := w.kernel.Used(container.Path).Seconds() / 20
				if i < 3 && got < startCap-0.3 || i >= 3 && got > cap+0.1 {
					t.Errorf("start %d: %.2f CPUs; want about %v in the first minute, then %v at most", i, got,
						startCap, cap)
				}
				w.kernel.RemoveGroup(container.Path)
				w.place.pods = nil
				w.run(time.Second)
			}
		})
	}
}
