package agent

import (
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// starts is a world in which a container appears that wants more than its limit for good.
func starts(t *testing.T, change func(*workload.Container)) *world {
	w, _ := subscribed(t, true)
	w.run(time.Second)
	c := w.container("/new", 50*ms, sim.Spin(2))
	c.Strategy.Policy, c.Strategy.StartupBurstPercent = strategy.CFSQuotaBurstOnly, 1000
	change(&c)
	w.alone(c)
	return w
}

// TestAStartIsNotRaised: what a new container wants beyond its limit it gets by refills,
// and its quota stays for a minute.
func TestAStartIsNotRaised(t *testing.T) {
	w := starts(t, func(*workload.Container) {})
	for range 118 {
		w.run(500 * ms)
		w.want("/new", 50*ms, 0)
	}
	s := w.status("/new")
	if want := 110 * time.Second; s.Totals.Usage < want {
		t.Errorf("%v of CPU time used in a minute, want more than %v: its limit is 30 s, it wants 120 s",
			s.Totals.Usage, want)
	}
	if s.Totals.Raises != 0 || s.TooLow {
		t.Errorf("%d raises, limit too low: %v", s.Totals.Raises, s.TooLow)
	}
	w.run(3 * time.Second)
	w.wantRaised("/new", 50*ms)
}

// TestAStartOnASmallMachine: a start gets what it wants up to its cap,
// and of the node what others leave below the threshold.
func TestAStartOnASmallMachine(t *testing.T) {
	for name, c := range map[string]struct {
		others     int
		threshold  int64
		percent    int64
		least      float64 // CPUs that it gets
		most, node float64 // and at most, and that are used in all
	}{
		"alone":                {0, 100, 1000, 1.65, 2, 2},
		"alone, with its cap":  {0, 100, 300, 1.45, 1.51, 1.51},
		"alone, cap not said":  {0, 100, 0, 1.45, 1.51, 1.51}, // that of other times (cfsQuotaBurstPercent)
		"beside another's CPU": {1, 90, 1000, 0.9, 1.2, 1.81},
		"on a full machine":    {2, 100, 1000, 0.45, 0.51, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, 2)
			w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: c.threshold}}, nil)
			w.subscribes(true)
			w.kernel.AddGroup("/others")
			w.kernel.SetLoad("/others", sim.Spin(c.others))
			w.run(time.Second)
			container := w.container("/new", 50*ms, sim.Spin(2))
			container.Strategy.Policy, container.Strategy.StartupBurstPercent = strategy.CFSQuotaBurstOnly, c.percent
			w.alone(container)
			before := w.kernel.Busy()
			w.run(10 * time.Second)
			got, node := w.kernel.Used("/new").Seconds()/10, (w.kernel.Busy()-before).Seconds()/10
			if got < c.least || got > c.most || node > c.node {
				t.Errorf("%.2f CPUs used, want %.2f to %.2f; %.2f in all, want %.2f at most", got, c.least, c.most,
					node, c.node)
			}
		})
	}
}

// TestAStartCostsNoRaise: a start brings the node up to the threshold, and a raised group beside it stays raised.
func TestAStartCostsNoRaise(t *testing.T) {
	w := worldOf(t, 4)
	w.agent.Configure(strategy.Node{Strategy: strategy.Strategy{SharePoolThresholdPercent: 75}}, nil)
	w.subscribes(true)
	w.run(time.Second)
	old := w.container("/old", 50*ms, sim.Spin(2))
	old.Strategy.Policy, old.Strategy.StartupSeconds = strategy.CFSQuotaBurstOnly, 0
	w.alone(old)
	w.run(5 * time.Second)
	start := w.container("/new", 50*ms, sim.Spin(3))
	start.Strategy.Policy = strategy.CFSQuotaBurstOnly
	w.place.pods = []workload.Pod{{Containers: []workload.Container{old}}, {Containers: []workload.Container{start}}}
	before := w.kernel.Busy()
	for range 40 {
		w.run(250 * ms)
		w.wantRaised("/old", 50*ms)
	}
	if node := (w.kernel.Busy() - before).Seconds() / 10; node < 2.75 {
		t.Errorf("%.2f CPUs used of a threshold of 3", node)
	}
}

// TestTheBurstComesAtOnce: the first turn that finds a limit and a task sets the burst, and none before it: with a
// burst in its place the runtime's own write of the limit fails. What wakes the loop is the kernel's word of a limit or
// a task that was written, and the turn is taken after gather.
func TestTheBurstComesAtOnce(t *testing.T) {
	for name, limitFirst := range map[string]bool{"limit first": true, "task first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(time.Second)
			w.kernel.AddGroup("/new")
			c := workload.Container{ID: w.id("/new"), Name: "/new", Runtime: "cgroup", Strategy: strategy.Default()}
			c.Strategy.Policy = strategy.CPUBurstOnly
			w.alone(c)
			for step := range 3 {
				switch {
				case step == 0:
				case (step == 1) == limitFirst:
					w.limit("/new", 50*ms)
				default:
					w.kernel.SetTasks("/new", 1)
				}
				if b := w.kernel.Bandwidth("/new"); b.Burst != 0 {
					t.Fatalf("step %d: %v", step, b)
				}
				w.place.touched = append(w.place.touched, "/new")
				w.kernel.Advance(gather)
				w.agent.Tick(w.kernel.Now())
			}
			w.want("/new", 50*ms, 50*ms)
		})
	}
}

// TestAStartEnds when its owner says so, and where the strategy wants none.
func TestAStartEnds(t *testing.T) {
	for name, change := range map[string]func(*workload.Container){
		"ready": func(c *workload.Container) { c.Started = true },
		"0 s":   func(c *workload.Container) { c.Strategy.StartupSeconds = 0 },
		"2 s":   func(c *workload.Container) { c.Strategy.StartupSeconds = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			w := starts(t, change)
			w.run(5 * time.Second)
			w.wantRaised("/new", 50*ms)
		})
	}
}

// TestWhoWasThereIsNotNew: of containers that were there before the agent nobody knows how old they are.
func TestWhoWasThereIsNotNew(t *testing.T) {
	w, _ := subscribed(t, true)
	w.hog("/a")
	w.run(5 * time.Second)
	w.wantRaised("/a", 50*ms)
}

// TestAStartWithoutEvents is as any other time.
func TestAStartWithoutEvents(t *testing.T) {
	w := newWorld(t)
	w.run(time.Second)
	w.hog("/a")
	w.run(5 * time.Second)
	w.wantRaised("/a", 50*ms)
}
