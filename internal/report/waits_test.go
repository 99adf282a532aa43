package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
