package agent

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/strategy"
)

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
