package scx

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/scx/scxtest"
)

// Forks, moves between groups of both classes and with limits, groups that come and go with tasks in them, and a CPU
// that goes and comes: the scheduler stays, and no task is lost. At the end open checks the state of all.
func TestStress(t *testing.T) {
	s := open(t, Options{})
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	limited := cgrouptest.New(t)
	limited.Limit(20 * ms)
	forks := offline.Start("i=0; while [ $i -lt 1000 ]; do ( : ) & i=$((i+1)); [ $((i%20)) -eq 0 ] && wait; done; " +
		"wait; exec sleep 600")
	mover := online.Spin(1)[0]
	offline.Spin(1)
	for i := range 30 {
		[]*cgrouptest.Group{offline, limited, online}[i%3].Move(mover.PID())
		g := cgrouptest.New(t)
		g.Limit(5 * ms)
		g.Spin(1)
		if i%10 == 5 {
			hotplug(t)
		}
		if i%3 == 0 {
			set(t, s, g, Setting{Class: Offline})
		}
		time.Sleep(5 * ms)
		g.Remove()
	}
	within(t, 120*time.Second, "1000 forks", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", forks.PID()))
		return err == nil && strings.TrimSpace(string(name)) == "sleep"
	})
	if got := used(t, 500*ms, online); got[0] < 0.2 { // the mover is in it
		t.Errorf("online uses %.3f CPUs", got[0])
	}
	online.Spin(1)
	time.Sleep(300 * ms)
	if got := used(t, time.Second, online, offline, limited); got[0] < 1.5 || got[1] > 0.2 || got[2] > 0.1 {
		t.Errorf("online with a task for each CPU, offline, left: %.3f CPUs", got)
	}
}

// hotplug takes CPU 1 offline and brings it back online.
func hotplug(t *testing.T) {
	t.Helper()
	for _, to := range []string{"0", "1"} {
		if err := os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte(to), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A scheduler is loaded and removed fifty times under load, and each time all tasks go on. Every fifth is our own: the
// check of its programs takes long on an emulated CPU.
func TestCycles(t *testing.T) {
	need(t)
	g := cgrouptest.New(t)
	g.Limit(150 * ms)
	own, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	load := g.Spin(2)
	for i := range 50 {
		o := object(t, scxtest.Fifo())
		if i%5 == 0 {
			o = own
		}
		loaded, err := o.Load()
		if err != nil {
			t.Fatal(err)
		}
		a, err := loaded.Attach()
		if err != nil {
			t.Fatal(err)
		}
		if alive, err := a.Alive(); !alive || err != nil {
			t.Errorf("%s ended at once: %v", a.Name, err)
		}
		p, err := a.Close()
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, a.Stall.Longest, p.Longest)
	}
	gone(t)
	t.Logf("longest stall of 100 changes: %v", longest)
	for _, p := range load {
		p.Stop() // they may have used up what a test's process may
	}
	g.Spin(2)
	if got := used(t, time.Second, g); got[0] < 0.2 {
		t.Errorf("tasks do not run: %.3f CPUs", got)
	}
}
