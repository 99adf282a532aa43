package outcome

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/receipt"
	"plimsoll/internal/report"
)

// Receipts adds to a status what refills and raises cause, where that is measured.
func (r *Recorder) Receipts(s *report.Status, state *policy.State, seed uint64, yield func()) {
	of := map[string]*receipt.Experiment{}
	withdrawn := 0
	for _, g := range slices.Clone(r.order) {
		yield()
		e := state.Receipt(g.ID)
		if e == nil {
			continue
		}
		of[g.Path] = e
		if e.Withdrawn() != "" {
			withdrawn++
			s.Problems = append(s.Problems, fmt.Sprintf(report.ProblemWithdrawn, r.called(g.ID), e.Withdrawn(),
				report.ReceiptHint))
		}
	}
	all := state.Receipts()
	if len(of) == 0 && all.Since.IsZero() {
		return
	}
	s.Receipts = &report.Receipts{Seed: seed, Withdrawn: withdrawn, Receipt: receiptOf(&all, s.Now)}
	for i := range s.Containers {
		if e := of[s.Containers[i].Cgroup]; e != nil {
			one := receiptOf(&e.Figures, s.Now)
			if one.Harm = e.Withdrawn() != ""; one.Harm {
				one.Verdict = string(e.Withdrawn())
			}
			s.Containers[i].Receipt = &one
		}
	}
}

// receiptOf makes figures ready to be shown.
func receiptOf(f *receipt.Figures, now time.Time) report.Receipt {
	x := report.Receipt{Since: f.Since, Aborted: f.Aborted, Verdict: string(f.Verdict()), Saved: caused(&f.Saved, 1),
		Neighbours: caused(&f.Taken, 1), Requests: caused(&f.Requests, 1)}
	x.Treated, x.Withheld = f.Saved.Arms()
	x.TreatedLost, x.WithheldLost = f.Saved.Means()
	if elapsed := now.Sub(f.Since); elapsed > 0 && !f.Since.IsZero() {
		days := float64(elapsed) / float64(24*time.Hour)
		x.SavedPerDay = caused(&f.Saved, float64(x.Treated+x.Withheld)/days)
		treated, withheld := f.Requests.Arms()
		x.RequestsPerDay = caused(&f.Requests, float64(treated+withheld)/days)
	}
	return x
}

// caused is an estimate of so many spells.
func caused(e *receipt.Estimate, times float64) report.Caused {
	c := report.Caused{Mean: e.Mean() * times}
	low, high, ok := e.Interval(receipt.Alpha)
	c.Low, c.High, c.Known = low*times, high*times, ok
	return c
}
