package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

const (
	// hogLimit per 100 ms is so low that two busy CPUs have three times as much.
	hogLimit = 20 * ms
	// raiseWait is how long the guard may refuse raises because other work keeps the node busy.
	raiseWait = time.Minute
)

// newHog is a group with the load of two CPUs.
func newHog(t *testing.T) (*cgrouptest.Group, []*cgrouptest.Process) {
	t.Helper()
	g := cgrouptest.New(t)
	g.Limit(hogLimit)
	g.Idle() // stays when the load ends
	return g, g.Spin(2)
}

func bandwidthNow(t *testing.T, g *cgrouptest.Group) (quota, burst time.Duration) {
	t.Helper()
	b, err := g.Tree().Bandwidth(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return b.Quota, b.Burst
}

// TestRunRaisesAndGivesBack: a hog is raised within its cap, the raise is given back after its end, and the burst stays
// until the agent stops.
func TestRunRaisesAndGivesBack(t *testing.T) {
	s := newShipped(t)
	s.baseline = true
	g, load := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	stop := watch(t, g)
	agent := s.start()
	eventually(t, raiseWait, func() string {
		if quota, _ := bandwidthNow(t, g); quota > hogLimit {
			return ""
		}
		return fmt.Sprintf("not raised; node %+v", s.status().Node)
	})
	time.Sleep(2 * time.Second)
	if readings := stop(); !emulated() {
		checkCap(t, readings, 3*hogLimit)
	}
	for _, p := range load {
		p.Stop()
	}
	eventually(t, patience(5*time.Second), func() string {
		quota, burst := bandwidthNow(t, g)
		if quota != hogLimit || burst == 0 && hasBurst(g) {
			return fmt.Sprintf("quota %v, burst %v after the end of the load", quota, burst)
		}
		return ""
	})
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// watch reads a group every 2 ms or so until stop is called, which returns the readings.
func watch(t *testing.T, g *cgrouptest.Group) (stop func() []reading) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan []reading)
	go func() {
		var readings []reading
		defer func() { done <- readings }()
		for {
			select {
			case <-quit:
				return
			case <-time.After(2 * ms):
				r, err := read(g)
				if err != nil {
					t.Error(err)
					<-quit
					return
				}
				readings = append(readings, r)
			}
		}
	}()
	stop = sync.OnceValue(func() []reading { close(quit); return <-done })
	t.Cleanup(func() { stop() })
	return stop
}

// read repeats the reading until no period begins between two files.
func read(g *cgrouptest.Group) (reading, error) {
	for {
		a, err := g.Tree().Counters(g.Path)
		if err != nil {
			return reading{}, err
		}
		if b, err := g.Tree().Stat(g.Path); err != nil || b.Periods == a.Periods {
			return reading{a.Periods, a.Usage}, err
		}
	}
}

// TestRunKilled: what an agent leaves that was killed is put back by a restore and by the next start.
func TestRunKilled(t *testing.T) {
	for name, recover := range map[string]func(*shipped, *cgrouptest.Group){
		"restore": func(s *shipped, _ *cgrouptest.Group) { s.unlocked("restore") },
		"start": func(s *shipped, g *cgrouptest.Group) {
			s.configure("none", g.Path)
			s.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipped(t)
			g, _ := newHog(t)
			before := files(t, g)
			s.configure("auto", g.Path)
			agent := s.start()
			changed(t, s, before, g)
			agent.stop(syscall.SIGKILL)
			if cmp.Equal(before, files(t, g)) {
				t.Fatal("nothing was left behind: the scenario proves nothing")
			}
			recover(s, g)
			same(t, 0, before, g)
		})
	}
}

// TestRunNoneWritesNothing also sees that a plan writes nothing, and that it names the change.
func TestRunNoneWritesNothing(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("none", g.Path)
	agent := s.start()
	auto := *s
	auto.config += ".auto"
	auto.configure("auto", g.Path)
	var p report.Plan
	if err := json.Unmarshal([]byte(s.must("plan", "--json", "--config", auto.config)), &p); err != nil {
		t.Fatal(err)
	}
	named := slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Cgroup.Path == g.Path && c.Why != "" })
	if hasBurst(g) && !named {
		t.Errorf("the plan does not name %s: %+v", g.Path, p.Changes)
	}
	status := s.status()
	if c, err := report.Find(status.Containers, g.Path); err != nil || c.Totals.Throttled == 0 {
		t.Errorf("not measured: %+v, %v", c, err)
	}
	if len(status.Writes.Results) > 0 {
		t.Errorf("writes under policy none: %v", status.Writes.Results)
	}
	same(t, 0, before, g)
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestRunSeesNewGroups: a burst is in force within 200 ms after a new group's limit is written. The median of five is
// taken, because other work on this machine may delay one of them; where the CPU is emulated 2 s are allowed.
func TestRunSeesNewGroups(t *testing.T) {
	s := newShipped(t)
	parent := cgrouptest.New(t)
	cgrouptest.Need(t, parent.Features().Get(cgroup.FeatureBurst))
	s.configure("auto", parent.Path+"/*")
	s.start()
	var took []time.Duration
	for i := range 5 {
		g := parent.Child(fmt.Sprint("late", i))
		g.Idle()
		begin := time.Now()
		g.Limit(hogLimit)
		eventually(t, patience(5*time.Second), func() string {
			if _, burst := bandwidthNow(t, g); burst == 0 {
				return "no burst in " + g.Path
			}
			return ""
		})
		took = append(took, time.Since(begin))
		g.Remove()
		time.Sleep(300 * ms) // with no group left the agent is idle: only an event wakes it soon
	}
	slices.Sort(took)
	t.Logf("took %v", took)
	if most := patience(200 * ms); took[2] > most {
		t.Errorf("took %v, the median is to be within %v", took, most)
	}
}

// TestRunAlone: another agent on the same groups is refused though its state directory is another one. Restoring beside
// a live agent makes that one restore and hold.
func TestRunAlone(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	agent := s.start()
	changed(t, s, before, g)

	other := *s
	other.state += "2"
	for _, command := range []string{"run", "restore"} {
		if _, err := other.run(command); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("process %d", agent.cmd.Process.Pid)) {
			t.Errorf("%s with another state directory: %v, want the process %d", command, err, agent.cmd.Process.Pid)
		}
	}

	s.must("restore")
	same(t, 0, before, g)
	time.Sleep(time.Second)
	same(t, 0, before, g)
	if mode := s.status().Mode; mode != report.Held {
		t.Errorf("mode %q after a restore, want held", mode)
	}
	s.must("resume")
	changed(t, s, before, g)
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestRunSteered: pause and release through the command line.
func TestRunSteered(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	s.start()
	changed(t, s, before, g)
	s.must("pause", g.Path, "--for", "1m")
	same(t, patience(500*ms), before, g)
	if c, err := report.Find(s.status().Containers, g.Path); err != nil || c.Paused == nil {
		t.Errorf("the status does not show the pause: %+v, %v", c, err)
	}
	s.must("resume", g.Path)
	changed(t, s, before, g)
	s.must("release", g.Path, "--for", "1m")
	same(t, 0, before, g)
	g.Limit(hogLimit / 2) // the kernel refuses that below a burst
	time.Sleep(500 * ms)
	if quota, burst := bandwidthNow(t, g); quota != hogLimit/2 || burst != 0 {
		t.Errorf("quota %v, burst %v while released", quota, burst)
	}
}

// TestRunReloads: a new configuration is followed without a restart, and a broken one is not.
func TestRunReloads(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("none", g.Path)
	s.start()
	s.configure("auto", g.Path)
	changed(t, s, before, g)
	s.write("strategy:\n  policy: sometimes\n")
	eventually(t, patience(2*time.Second), func() string {
		status := s.status()
		if want := s.config + ":2: "; status.ConfigOK || !strings.HasPrefix(status.ConfigMsg, want) {
			return fmt.Sprintf("config ok %v, %q; want %q", status.ConfigOK, status.ConfigMsg, want)
		}
		return ""
	})
	if cmp.Equal(before, files(t, g)) {
		t.Error("a broken configuration put everything back")
	}
	s.configure("none", g.Path)
	same(t, patience(2*time.Second), before, g)
	if !s.status().ConfigOK {
		t.Error("the status still has the error")
	}
}
