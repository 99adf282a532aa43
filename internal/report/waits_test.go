package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
)

// TestRankAdds: causes are summed up by name, and those with a reservation are counted.
func TestRankAdds(t *testing.T) {
	var r RankWaits
	r.Add(Waited{Waits: []Wait{{CauseNeighbour, time.Second, time.Minute}, {CauseOwnLimit, 2 * time.Second, 0}}}, true)
	r.Add(Waited{Waits: []Wait{{CauseOwnLimit, 3 * time.Second, 5 * time.Second}}}, false)
	want := RankWaits{Reserving: 1, Causes: []Wait{{CauseNeighbour, time.Second, time.Minute},
		{CauseOwnLimit, 5 * time.Second, 5 * time.Second}}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongestWaits: a wait in the open class is longer than the end of the last one that has an end.
func TestLongestWaits(t *testing.T) {
	w := Waits{Ranks: []RankWaits{{Rank: strategy.Online, Waits: 3, Lengths: []Length{{2 * time.Microsecond, 2},
		{8 * time.Second, 0}}}}}
	if got, want := w.line(), "online waited 3 times for a CPU, p50 up to 2µs, p99 more than 8s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
