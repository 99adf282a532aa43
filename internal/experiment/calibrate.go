package experiment

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"plimsoll/internal/load"
)

// Calibrating under the load itself.
//
// Problem: requests one after the other cost less CPU time than the same ones as they come: between two of the load the
// caches go cold, and two at once share a core. A load that was sized by the former used 53 % of a limit where 45 %
// were asked for, and everything that hangs on the use (throttles, writes, time lost) was that of another load.
//
// Approach: what a request costs is counted over a span of the very load that is to be measured, without a limit. Where
// a cost was asked for, the size of a request is corrected by it, and counted again.

const (
	loadedSpan  = 6 * time.Second // over which a request's cost is measured
	loadedTries = 3
)

// calibrateUnderLoad corrects size and cost of a request that were found on an idle machine.
func (r *run) calibrateUnderLoad(ctx context.Context) error {
	for try := 1; ; try++ {
		cost, err := r.loadedCost(ctx)
		if err != nil {
			return fmt.Errorf("calibrate under load: %w", err)
		}
		r.cost = cost
		switch {
		case r.Work == 0 || (cost-r.Work).Abs() <= r.Work/workTolerance:
			return nil
		case try == loadedTries:
			r.say("careful: a request costs %.1f ms under load, not %.1f; going on with that", Milliseconds(cost),
				Milliseconds(r.Work))
			return nil
		}
		r.size, r.cost = corrected(r.size, r.Work, cost), r.Work
	}
}

// corrected is the size of a request that costs want, where one of this size costs cost: a few percent more or less,
// and never more than half as large or twice as large.
func corrected(size int, want, cost time.Duration) int {
	factor := min(2, max(0.5, float64(want)/float64(cost)))
	return max(1, int(float64(size)*factor))
}

// loadedCost is the mean CPU time of a request while the load runs that is to be measured.
func (r *run) loadedCost(ctx context.Context) (time.Duration, error) {
	due := load.Poisson(r.Seed, 0, r.rate(), min(loadedSpan, r.PerMode))
	var out *load.Outcome
	spent, err := r.groups.Spent(r.group, func() error {
		out = load.Run(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce}, r.send)
		return cmp.Or(context.Cause(ctx), out.Cause)
	})
	if err != nil || out.Requests() == 0 || spent <= 0 { // no request came by chance: the idle machine's figures stay
		return r.cost, err
	}
	return spent / time.Duration(out.Requests()), nil
}
