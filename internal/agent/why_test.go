package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestWhy: the reason in the status names the rule that fired.
func TestWhy(t *testing.T) {
	w := raised(t)
	why := func(path, want string) {
		t.Helper()
		if got := w.status(path).Why; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	why("/lab/a", "throttled within the last 3 s: demand up to ")
	ctx := context.Background()
	if _, err := w.agent.Release(ctx, "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	why("/lab/a", "released: kept at the limit for another writer")
	if c := w.status("/lab/a"); c.Paused == nil || !c.Released {
		t.Errorf("%+v is no release", c)
	}
	if err := w.agent.Pause(ctx, "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	why("/lab/a", "paused: kept at the limit")
	if c := w.status("/lab/a"); c.Released {
		t.Error("a pause is a release")
	}
	if err := w.agent.Pause(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	w.agent.Overruled = func() string { return "scx_rusty" }
	w.run(time.Second)
	why("/lab/a", "kept at the limit: the sched_ext scheduler scx_rusty runs all tasks")

	w = newWorld(t)
	batch := w.container("/batch", 50*ms, sim.Spin(2))
	batch.Class = workload.ClassBE
	w.alone(batch)
	w.run(time.Second)
	why("/batch", "class BE: the limit is left alone")
}

// TestGlanceUsesTheList: a glance is taken each second, and allocates nothing for a group of which nothing has changed.
func TestGlanceUsesTheList(t *testing.T) {
	glance := func(groups int) float64 {
		w, _ := subscribed(t, true)
		for i := range groups {
			w.calm(fmt.Sprintf("/c%03d", i), strategy.Auto)
		}
		w.run(2 * time.Second)
		list := w.agent.Glance(nil).Containers
		return testing.AllocsPerRun(10, func() {
			again := w.agent.Glance(list).Containers
			if len(again) != groups || &again[0] != &list[0] {
				t.Fatalf("%d containers, or another list", len(again))
			}
		})
	}
	if few, many := glance(10), glance(300); many > few+10 { // the order of the paths grows a list of pointers
		t.Errorf("%.0f allocations for 300 groups, %.0f for 10", many, few)
	}
}
