package agent

import (
	"math"
	"testing"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// using says what the kernel has counted of a group after so many minutes of demands with an exponential law.
func using(minutes int, u float64) []int64 {
	uses := make([]int64, 65)
	for class := 1; class < 64; class++ {
		uses[class] = int64(float64(600*minutes) * (math.Exp(-float64(class-1)/16/u) - math.Exp(-float64(class)/16/u)))
	}
	return uses
}

// afterwards waits until the risk is computed, and lets the agent act on it.
func (w *world) afterwards() {
	w.t.Helper()
	for range 2000 {
		if !w.agent.risk.Working() {
			w.run(200 * ms)
			return
		}
		time.Sleep(ms)
	}
	w.t.Fatal("the risk is not computed")
}

// TestLoadLine: bursts are cut to what the node can bear, and given back when that is no longer asked for.
func TestLoadLine(t *testing.T) {
	w, e := subscribed(t, true)
	e.totals, e.uses = map[uint64]report.Throttles{}, map[uint64][]int64{}
	var inodes []uint64
	for _, path := range []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"} {
		c := w.container(path, 50*ms, sim.Load{})
		w.kernel.SetTasks(path, 1)
		inodes = append(inodes, c.Inode)
		w.alone(c)
	}
	line := w.agent.Strategy
	line.LoadLinePercent = 99
	w.agent.Configure(line, nil)
	tell := func(minutes int) {
		for _, inode := range inodes {
			e.uses[inode], e.totals[inode] = using(minutes, 0.75), report.Throttles{Counted: true}
		}
	}
	tell(0)
	w.run(time.Second)
	if got := w.status("/a").Burst.InForce; got != 50*ms || e.limits[inodes[0]] != 50*ms {
		t.Fatalf("before anything is known the burst is %v, uses are counted by %v", got, e.limits[inodes[0]])
	}
	tell(1)
	w.run(61 * time.Second)
	w.afterwards()
	r := w.agent.Status().Node.Risk
	if r == nil || !r.Met || r.Share <= 0 || r.Share >= 1 || r.Now > 0.01 || r.Asked <= 0.01 || r.Containers != 8 {
		t.Fatalf("%+v, problems %v", r, w.agent.Status().Problems)
	}
	want := time.Duration(math.Floor(2*r.Share*100) / 100 * float64(50*ms))
	if got := w.kernel.Bandwidth("/a").Burst; got != want.Truncate(time.Microsecond) {
		t.Errorf("burst %v in force, the load line allows %v", got, want)
	}
	line.LoadLinePercent = 0
	w.agent.Configure(line, nil)
	w.run(time.Second)
	if got := w.kernel.Bandwidth("/a").Burst; got != 50*ms || w.agent.Status().Node.Risk != nil {
		t.Errorf("burst %v without a load line", got)
	}
}

// TestLoadLineLater: containers that are known already count from the reading after it was asked for, with the periods
// of that minute; and one that has lost its limit counts with what it uses from then on.
func TestLoadLineLater(t *testing.T) {
	w, e := subscribed(t, true)
	e.totals, e.uses = map[uint64]report.Throttles{}, map[uint64][]int64{}
	var inodes []uint64
	for _, path := range []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"} {
		c := w.container(path, 50*ms, sim.Load{})
		w.kernel.SetTasks(path, 1)
		inodes = append(inodes, c.Inode)
		w.alone(c)
	}
	tell := func(minutes int) {
		for _, inode := range inodes {
			e.uses[inode] = using(minutes, 0.95)
			e.totals[inode] = report.Throttles{Counted: true,
				Usage: 2*time.Hour + time.Duration(minutes)*time.Second}
		}
	}
	tell(60) // of which nothing is to count
	w.run(time.Second)
	line := w.agent.Strategy
	line.LoadLinePercent = 99.9
	w.agent.Configure(line, nil)
	risk := func(minutes, containers int) {
		t.Helper()
		tell(60 + minutes)
		w.run(61 * time.Second)
		w.afterwards()
		r := w.agent.Status().Node.Risk
		if r == nil || r.Containers != containers || r.Asked <= 0 || r.Capacity < 3 || r.Capacity > 4 {
			t.Fatalf("after %d minutes: %+v, problems %v", minutes, r, w.agent.Status().Problems)
		}
	}
	w.run(time.Second)
	risk(1, 8)
	w.file("/h", "cpu.cfs_quota_us", "-1")
	w.place.touched = []string{"/h"}
	risk(2, 7)
	risk(3, 7)
}

// TestLoadLineBesideSuppressedWork: offline work without a limit has no burst, also while suppression bounds it, and
// what it uses is not there for the others.
func TestLoadLineBesideSuppressedWork(t *testing.T) {
	w := colocated(t, strategy.MechanismIdle, "/web", "/batch")
	e := w.subscribes(true)
	w.kernel.SetLoad("/web", sim.Load{})
	w.kernel.SetLoad("/batch", sim.Spin(4))
	w.file("/batch", "cpu.cfs_quota_us", "-1")
	w.suppress()
	run := func(d time.Duration) {
		for range d / (100 * ms) {
			e.totals = map[uint64]report.Throttles{w.id("/batch").Inode: {Usage: w.kernel.Used("/batch")}}
			w.run(100 * ms)
		}
	}
	run(5 * time.Second)
	line := w.agent.Strategy
	line.LoadLinePercent = 99.9
	w.agent.Configure(line, nil)
	before := w.kernel.Used("/batch")
	run(61 * time.Second)
	want := 4 - (w.kernel.Used("/batch")-before).Seconds()/61
	w.afterwards()
	if !w.kernel.Bandwidth("/batch").Limited() || want > 3 {
		t.Fatalf("%v leaves %.2f CPUs: it proves nothing", w.kernel.Bandwidth("/batch"), want)
	}
	if r := w.agent.Status().Node.Risk; r == nil || math.Abs(r.Capacity-want) > 0.1 {
		t.Errorf("%+v, want a capacity of %.2f CPUs", r, want)
	}
}

// TestLoadLineNeedsTheKernel: who cannot count says so, and cuts nothing.
func TestLoadLineNeedsTheKernel(t *testing.T) {
	w := newWorld(t)
	w.alone(w.container("/a", 50*ms, sim.Load{}))
	w.agent.Strategy.LoadLinePercent = 99
	w.run(time.Second)
	w.wantProblem("loadLinePercent")
	w, _ = subscribed(t, true)
	w.agent.Uncounted = "not counted here"
	w.alone(w.container("/a", 50*ms, sim.Load{}))
	w.agent.Strategy.LoadLinePercent = 99
	w.run(time.Second)
	w.wantProblem("periods: not counted here")
}
