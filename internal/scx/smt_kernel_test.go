package scx

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// cores are the first threads of the cores that have more than one.
func cores(t *testing.T) []int {
	t.Helper()
	next, err := siblings("/sys")
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	for cpu, other := range next {
		if cpu < other {
			first = append(first, cpu)
		}
	}
	slices.Sort(first)
	return first
}

// With an online task on each core, no offline task runs beside one but by the floor; when they go, all threads are
// the offline ones' again.
func TestExpel(t *testing.T) {
	need(t)
	first := cores(t)
	if len(first) == 0 {
		t.Skip("the cores have one thread each: test/vm/scx.sh has some with two")
	}
	s := open(t, Options{Expel: true})
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	offline.Spin(2 * len(first))
	list := online.Spin(len(first))
	for i, p := range list {
		var one unix.CPUSet
		one.Set(first[i])
		if err := unix.SchedSetaffinity(p.PID(), &one); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(500 * ms)
	before, err := s.Totals()
	if err != nil {
		t.Fatal(err)
	}
	got := used(t, 3*time.Second, online, offline)
	after, err := s.Totals()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("online %.3f, offline %.4f CPUs; %v beside online ones, %v by the floor", got[0], got[1], after.Beside-before.Beside, after.Floor-before.Floor)
	if got[0] < 0.5*float64(len(first)) || got[1] > got[0]*0.3 || after.Floor == before.Floor {
		t.Errorf("online %.3f, offline %.4f CPUs: %+v", got[0], got[1], after)
	}
	for _, p := range list {
		p.Stop()
	}
	if got := used(t, time.Second, offline); got[0] < 0.5*float64(2*len(first)) {
		t.Errorf("alone, offline got %.3f CPUs", got[0])
	}
}
