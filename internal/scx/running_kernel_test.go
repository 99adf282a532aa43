package scx

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/scx/scxtest"
)

func object(t *testing.T, raw []byte) *Object {
	t.Helper()
	o, err := Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// state is the name of the scheduler in force.
func ops(t *testing.T) string {
	t.Helper()
	s, err := ReadState()
	if err != nil {
		t.Fatal(err)
	}
	if s.State != enabled {
		return s.State
	}
	return s.Ops
}

// Any scheduler is swapped for any other under load. One that does not begin leaves the old one in force.
func TestSwap(t *testing.T) {
	need(t)
	g := cgrouptest.New(t)
	g.Spin(1)
	h, err := Run(object(t, scxtest.Fifo()), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer gone(t)
	defer h.Close()
	if got := ops(t); got != "fifo" {
		t.Fatalf("%s is in force", got)
	}
	own, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Swap(own, 0)
	if err != nil || ops(t) != "plimsoll" {
		t.Fatalf("%s is in force: %v", ops(t), err)
	}
	t.Logf("swap %v: longest stall %v, %v as a baseline", s.Stall.Took, s.Stall.Longest, s.Stall.Baseline)
	if _, err := h.Swap(object(t, scxtest.Refuse()), 0); err == nil ||
		!strings.Contains(err.Error(), "plimsoll is back in force") || ops(t) != "plimsoll" {
		t.Errorf("%s is in force: %v", ops(t), err)
	}
	if got := used(t, 500*ms, g); got[0] < 0.2 {
		t.Errorf("tasks do not run: %.3f CPUs", got[0])
	}
	if why, err := h.Ended(); why != "" || err != nil {
		t.Errorf("%s, %v", why, err)
	}
}

// A scheduler that does not run a CPU's tasks is taken out by the guard, and where there is none by the kernel.
func TestStall(t *testing.T) {
	need(t)
	for _, c := range []struct {
		name     string
		most     time.Duration
		watchdog time.Duration
	}{{"guard", 500 * ms, maxWatchdog}, {"kernel", 0, 2 * time.Second}} {
		o := object(t, scxtest.Stall())
		if err := o.setWatchdog(c.watchdog); err != nil {
			t.Fatal(err)
		}
		why, err := stalls(t, o, c.most)
		t.Logf("%s: %s", c.name, why)
		if err != nil || why == "" || strings.Contains(why, "did not run") != (c.name == "guard") {
			t.Errorf("%s: %q, %v", c.name, why, err)
		}
		gone(t)
	}
}

// stalls runs a scheduler until it has ended, and says why.
func stalls(t *testing.T, o *Object, most time.Duration) (why string, err error) {
	t.Helper()
	h, err := Run(o, most)
	if err != nil { // a slow machine: the scheduler ended before the load was done
		return err.Error(), nil
	}
	within(t, 25*time.Second, "the stalled scheduler is gone", func() bool {
		why, err = h.Ended()
		return err != nil || why != ""
	})
	_, closing := h.Close()
	return why, errors.Join(err, closing)
}
