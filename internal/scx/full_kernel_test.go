package scx

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// known counts the control groups in the scheduler's map.
func known(t *testing.T, s *Scheduler) int {
	t.Helper()
	n := 0
	var id uint64
	var raw kernelGroup
	entries := s.parts.Groups.Iterate()
	for entries.Next(&id, &raw) {
		n++
	}
	if err := entries.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// When the map is full, mkdir makes another control group all the same: the scheduler ends, says why, and the tasks
// run on.
func TestMoreGroupsThanFit(t *testing.T) {
	need(t)
	first, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := known(t, first)
	if _, err := first.Close(); err != nil {
		t.Fatal(err)
	}
	const room, more = 5, 20
	s, err := Open(Options{Groups: n + room})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var g *cgrouptest.Group
	for i := range more {
		g = cgrouptest.New(t) // or it fails
		if alive, err := s.Alive(); i < room && (!alive || err != nil) {
			exit, _ := s.Exit()
			t.Fatalf("ended with group %d, with room for %d: %+v, %v", i+1, room, exit, err)
		}
	}
	within(t, 10*time.Second, "the scheduler ends",
		func() bool { alive, err := s.Alive(); return !alive && err == nil })
	gone(t)
	exit, err := s.Exit()
	if err != nil || !strings.Contains(exit.Message, "no room for another control group (-7)") { // E2BIG
		t.Errorf("it ended for %+v, %v", exit, err)
	}
	g.Spin(1)
	if got := used(t, 500*ms, g); got[0] < 0.2 {
		t.Errorf("tasks do not run: %.3f CPUs", got)
	}
}

// When the map is too small for the existing groups, the scheduler is not put in force, and says why.
func TestNoRoomFromTheStart(t *testing.T) {
	need(t)
	cgrouptest.New(t)
	s, err := Open(Options{Groups: 1})
	if err == nil {
		s.Close()
		t.Fatal("put in force")
	}
	if !strings.Contains(err.Error(), "no room for another control group") {
		t.Error(err)
	}
	gone(t)
}
