package scx

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// counted is what the scheduler itself has counted.
type counted struct {
	Totals
	groups []time.Duration
	at     time.Time
}

func count(t *testing.T, s *Scheduler, groups ...*cgrouptest.Group) counted {
	t.Helper()
	totals, err := s.Totals()
	if err != nil {
		t.Fatal(err)
	}
	c := counted{Totals: totals, at: time.Now()}
	for _, g := range groups {
		c.groups = append(c.groups, group(t, s, g).Used)
	}
	return c
}

// all is the time of both CPUs.
func (c counted) all(b counted) time.Duration { return 2 * c.at.Sub(b.at) }

// since is what came to it.
func (c counted) since(b counted) counted {
	d := counted{at: c.at, Totals: Totals{Online: c.Online - b.Online, Offline: c.Offline - b.Offline,
		Floor: c.Floor - b.Floor, Floors: c.Floors - b.Floors,
		Beside: c.Beside - b.Beside, Yields: c.Yields - b.Yields, Expels: c.Expels - b.Expels}}
	for i := range c.groups {
		d.groups = append(d.groups, c.groups[i]-b.groups[i])
	}
	return d
}

// Two online tasks on two CPUs leave two offline ones the floor and next to nothing else, whoever was there first; when
// they are gone, the offline ones get everything. A floor that ran too long shortens the next ones: the bound is that
// of the long run.
func TestShares(t *testing.T) {
	s := open(t, Options{})
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	offline.Spin(2)
	time.Sleep(300 * ms)
	list := online.Spin(2)
	time.Sleep(300 * ms)
	before := count(t, s, online, offline)
	var got counted
	within(t, time.Minute, "online work has 99 % of two CPUs", func() bool {
		got = count(t, s, online, offline).since(before)
		return got.Floors >= 12 && got.Online >= 99*got.all(before)/100
	})
	t.Logf("%+v, groups %v", got.Totals, got.groups)
	if other := got.Offline - got.Floor; other > got.Online/500 { // a task that is on its way between two queues
		t.Errorf("offline work ran %v beside what the floor gave it: %+v", other, got)
	}
	if got.Floor < time.Duration(got.Floors)*floorSlice*9/10 || got.groups[1] < got.Floor*9/10 {
		t.Errorf("%d floors of %v have given %v, and the group %v", got.Floors, floorSlice, got.Floor, got.groups[1])
	}
	for _, p := range list {
		p.Stop()
	}
	time.Sleep(300 * ms)
	before = count(t, s, offline)
	time.Sleep(time.Second)
	got = count(t, s, offline).since(before)
	left := got.all(before) - got.Online // the machine's own work is online
	if t.Logf("alone %+v, groups %v", got.Totals, got.groups); got.groups[0] < 9*left/10 || got.Floor != 0 {
		t.Errorf("alone, offline got %+v", got)
	}
}

// Each preemption of an offline task by an online one is counted, whichever task wakes up.
func TestYields(t *testing.T) {
	s := open(t, Options{})
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	offline.Spin(2)
	time.Sleep(300 * ms)
	before := count(t, s, offline)
	online.Start("while :; do sleep 0.01; done")
	var got counted
	within(t, 30*time.Second, "100 offline tasks were preempted",
		func() bool { got = count(t, s, offline).since(before); return got.Yields >= 100 })
	t.Logf("%+v, groups %v", got.Totals, got.groups)
	if got.Expels != 0 || got.Beside != 0 && len(cores(t)) == 0 {
		t.Errorf("no task may be expelled, and no core has two threads: %+v", got)
	}
}
