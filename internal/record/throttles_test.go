package record

import (
	"testing"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/report"
)

// TestThrottleBook: what a container has lost is what the kernel's programs count, and the estimate while they do not;
// neither runs backwards when they forget the group and begin anew.
func TestThrottleBook(t *testing.T) {
	var h throttles
	for i, c := range []struct {
		watched     bool
		begun       int64
		wall, guess time.Duration
		want        time.Duration
		events      int64 // -1: none
	}{
		{guess: 30 * ms, want: 30 * ms, events: -1}, // before anybody listened
		{watched: true, begun: 1, wall: 5 * ms, guess: 50 * ms, want: 35 * ms, events: 1},
		{watched: true, begun: 3, wall: 9 * ms, guess: 90 * ms, want: 39 * ms, events: 3},
		{guess: 100 * ms, want: 49 * ms, events: 3},
		{watched: true, begun: 1, wall: 2 * ms, guess: 120 * ms, want: 51 * ms, events: 4},
		{watched: true, begun: 1, wall: 2 * ms, guess: 120 * ms, want: 51 * ms, events: 4},
	} {
		totals := report.Totals{ThrottledWall: c.guess}
		h.add(report.Throttles{Begun: c.begun, Wall: c.wall}, c.watched, &totals)
		events := int64(-1)
		if totals.Events != nil {
			events = totals.Events.Begun
		}
		if totals.ThrottledWall != c.want || events != c.events {
			t.Errorf("step %d: %v and %d events, want %v and %d", i, totals.ThrottledWall, events, c.want, c.events)
		}
	}
}

// TestSchedulerAddsToTheBook: the time that a scheduler counts comes on top of what was estimated and what eBPF counts.
func TestSchedulerAddsToTheBook(t *testing.T) {
	g := &Group{Group: &observe.Group{}, throttles: throttles{guessed: 30 * ms}}
	c := g.counted(time.Time{}, report.Throttles{Begun: 1, Wall: 5 * ms}, true, report.Throttles{Begun: 1, Wall: ms})
	if got := c.Totals; got.ThrottledWall != 36*ms || got.Events.Wall != 6*ms {
		t.Errorf("lost %v, of which %v counted", got.ThrottledWall, got.Events.Wall)
	}
}
