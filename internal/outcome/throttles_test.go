package outcome

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
		h.add(report.Throttles{Begun: c.begun, Wall: c.wall}, c.watched, 0, &totals)
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
	g := &Account{Group: &observe.Group{}, throttles: throttles{guessed: 30 * ms}}
	c := g.counted(time.Time{}, report.Throttles{Begun: 1, Wall: 5 * ms}, true, report.Throttles{Begun: 1, Wall: ms})
	if got := c.Totals; got.ThrottledWall != 36*ms || got.Events.Wall != 6*ms {
		t.Errorf("lost %v, of which %v counted", got.ThrottledWall, got.Events.Wall)
	}
}

// TestSchedulerIsNotGuessed: what a scheduler counts is in the estimate too, and is not counted again once the programs
// count. It may be ahead of the last reading.
func TestSchedulerIsNotGuessed(t *testing.T) {
	g := &Account{Group: &observe.Group{}}
	for _, c := range []struct {
		estimate, scheduled time.Duration
		watched             bool
		want                time.Duration
	}{
		{10 * ms, 15 * ms, false, 10 * ms}, {15 * ms, 15 * ms, false, 15 * ms}, {19 * ms, 15 * ms, false, 19 * ms},
		{20 * ms, 16 * ms, true, 22 * ms}, {30 * ms, 26 * ms, true, 32 * ms},
	} {
		g.totals.ThrottledWall = c.estimate
		programs := report.Throttles{Begun: 1, Wall: 2 * ms}
		if got := g.counted(time.Time{}, programs, c.watched, report.Throttles{Begun: 1, Wall: c.scheduled}); c.want !=
			got.Totals.ThrottledWall {
			t.Errorf("%+v: lost %v", c, got.Totals.ThrottledWall)
		}
	}
}
