package agent

import (
	"testing"
	"time"
)

// TestGroupWithoutCpuacct: a group of the cpu hierarchy alone is raised like others, by what its threads use.
func TestGroupWithoutCpuacct(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"cpu/lab", "cpu/lab/a"} { // which makes none in cpuacct
		if err := w.kernel.Mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	w.hog("/lab/a")
	w.host.threads = func(tids []int) map[int]time.Duration {
		return map[int]time.Duration{tids[0]: w.kernel.Used("/lab/a")}
	}
	w.run(5 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.agent.Tick(w.kernel.Now())
	known, used := w.status("/lab/a").Totals.Usage, w.kernel.Used("/lab/a")
	if missing := used - known; missing < 0 || missing > 400*ms {
		t.Errorf("knows of %v, used were %v", known, used)
	}
}
