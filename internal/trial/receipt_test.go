package trial

import (
	"testing"
	"time"

	"plimsoll/internal/receipt"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// sampled is a service of which this part of the spells is withheld.
func sampled(path string, part float64, load sim.Load) Group {
	s := with(strategy.CFSQuotaBurstOnly)
	s.Receipts = part
	return Group{Path: path, Quota: 50 * ms, Period: 100 * ms, Strategy: s, Load: load}
}

func bursts() sim.Load { return sim.Poisson(1.5, sim.Exponential(80*ms), 4) }

// run is one world and what it lost.
func receiptWorld(t *testing.T, seed uint64, threshold int64, d time.Duration, groups ...Group) *World {
	t.Helper()
	w := mustNew(t, Scenario{Kernel: mainline(4, seed), Threshold: threshold, Events: true, Counts: true, Ahead: seed%2 == 1, Groups: groups})
	w.Run(d, nil)
	return w
}

func receiptOf(t *testing.T, w *World, path string) report.Receipt {
	t.Helper()
	for _, c := range w.Agent.Status().Containers {
		if c.Cgroup == path && c.Receipt != nil {
			return *c.Receipt
		}
	}
	t.Fatalf("%s has no receipt", path)
	return report.Receipt{}
}

// TestReceiptCoversTheEffect: what the experiment finds is what two runs of the same load differ by, one in which all is
// refilled and one in which nothing is.
func TestReceiptCoversTheEffect(t *testing.T) {
	const hour = time.Hour
	missed := 0
	for seed := range uint64(4) {
		w := receiptWorld(t, seed, 80, hour, sampled("/lab/web", 0.2, bursts()))
		r := receiptOf(t, w, "/lab/web")
		none := receiptWorld(t, seed, 80, hour, Group{Path: "/lab/web", Quota: 50 * ms, Period: 100 * ms, Strategy: with(strategy.None), Load: bursts()})
		all := receiptWorld(t, seed, 80, hour, sampled("/lab/web", 0, bursts()))
		truth := 24 * (none.Kernel.ThrottledWall("/lab/web") - all.Kernel.ThrottledWall("/lab/web")).Seconds()
		t.Logf("seed %d: %d of %d spells withheld; treated %.4f s, withheld %.4f s; a day %+v, in truth %.1f s; %s",
			seed, r.Withheld, r.Treated+r.Withheld, r.TreatedLost, r.WithheldLost, r.SavedPerDay, truth, r.Verdict)
		if !r.SavedPerDay.Known || r.Verdict != string(receipt.Saves) {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		if truth < r.SavedPerDay.Low || truth > r.SavedPerDay.High {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%d intervals do not cover the effect", missed)
	}
}
