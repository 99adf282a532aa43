package outcome

import (
	"fmt"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/report"
)

// refills counts refills by effect.
type refills struct {
	effective, unneeded, ineffective int64
	off                              *time.Time // nothing is refilled on this node until then; nil: refills have effect
	delays                           ring       // from the begin of a throttle to its end by a refill
}

// Throttled records the begin of a throttle, which ends the saving of the last refill.
func (g *Account) Throttled(at time.Time) { g.totals.WallSaved += g.saving.end(at) }

// Effect records the effect of a refill.
func (r *Recorder) Effect(g *Account, refill *policy.Refill, e policy.Effect) {
	switch e {
	case policy.Effective:
		r.refills.effective++
		g.totals.Refills++
		from := refill.At
		if refill.For.Ahead && refill.For.Dry.After(from) {
			from = refill.For.Dry // when the throttle would have begun
		}
		g.totals.WallSaved += g.saving.begin(from, refill.For.Expires)
		if !refill.For.Ahead {
			r.refills.delays.add(refill.At.Sub(refill.For.At))
		}
	case policy.Unneeded:
		r.refills.unneeded++
		g.totals.Unneeded++
	case policy.Ineffective:
		r.refills.ineffective++
		g.totals.Ineffective++
	}
}

// Trust records whether throttles of a group, or of the node if g is nil, are now answered by raises, or by refills
// again.
func (r *Recorder) Trust(g *Account, t policy.Trust) {
	if !t.News {
		return
	}
	until := t.Until.UTC().Format(time.RFC3339)
	key, problem, off, log := "refills", fmt.Sprintf(report.ProblemRefillsOffNode, until), &r.refills.off, r.log
	if g != nil {
		key, problem = g.Path+" refill", fmt.Sprintf(report.ProblemRefillsOff, r.called(g.ID), until)
		off, log = &g.refillsOff, r.log.With("cgroup", g.Path)
	}
	if !t.Lost {
		*off = nil
		r.Problem(key, "")
		log.Info("refills have effect again")
		return
	}
	*off = &t.Until
	r.Problem(key, problem)
	log.Warn("refills have no effect: throttles are answered by raises of the quota", "until", t.Until, "hint",
		"see refill-on-rewrite in `plimsoll doctor`")
}

// Events adds the numbers of refills.
func (r *Recorder) Events(e report.Events) report.Events {
	x := &r.refills
	e.Refills, e.Unneeded, e.Ineffective, e.RefillsOff = x.effective, x.unneeded, x.ineffective, x.off
	e.DelayP50, e.DelayP99 = x.delays.quantile(0.5), x.delays.quantile(0.99)
	return e
}
