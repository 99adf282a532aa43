package scx

import (
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Where another scheduler is loaded, nothing is, and the other one stays.
func TestSecondScheduler(t *testing.T) {
	s := open(t, Options{})
	second, err := Open(Options{})
	var found Obstacle
	if !errors.As(err, &found) || !strings.Contains(err.Error(), "plimsoll is enabled") {
		t.Fatalf("a second scheduler: %v, %v", second, err)
	}
	object, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := object.Load()
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	begin := time.Now()
	if a, err := loaded.Attach(); err == nil || time.Since(begin) < (tries-1)*between ||
		!strings.Contains(err.Error(), "try 5") {
		t.Errorf("attached beside another one: %v, %v after %v", a, err, time.Since(begin))
	}
	if alive, err := s.Alive(); !alive || err != nil {
		t.Errorf("the first one is gone: %v", err)
	}
}

// When the process that attached the scheduler is killed, all tasks return to the fair class, and nothing is left.
func TestLoaderKilled(t *testing.T) {
	need(t)
	g := cgrouptest.New(t)
	g.Spin(3)
	cmd := helper(t)
	if state, err := ReadState(); err != nil || state.State != enabled || state.Ops != "plimsoll" || !state.All {
		t.Fatalf("with the scheduler: %+v, %v", state, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	within(t, 10*time.Second, "the scheduler is gone", func() bool {
		state, err := ReadState()
		return err == nil && state.State == disabled
	})
	t.Logf("gone after %v", time.Since(begin))
	if got := used(t, 500*ms, g); got[0] < 1 {
		t.Errorf("tasks do not run: %.3f CPUs", got[0])
	}
}
