package policy

import (
	"fmt"
	"maps"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/receipt"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Withholding what a container would get, for receipts (package receipt).
//
// Problem: a single refill that is not made leaves a backlog, which the next period has to pay. So it is withheld for a
// whole busy spell or not at all. And nothing of one spell may reach into the next.
//
// Approach: a spell begins at the first moment in which a refill would be written, or a raise decided (withhold). All
// reasons against it come first, so that both arms differ in the write alone. In a withheld spell the container is
// neither refilled nor raised; otherwise it is treated as ever. While a spell is on the container is read every period,
// in both arms. With its end the memory of throttles and what was raised for it end, too: without receipts a raise
// outlasts its spell by 3 s.
//
// No spell begins in a start, while the node's use is above its threshold or not known, nor under a raise of the spell
// before, which would have to be lowered first. One that has begun goes on when the use passes the threshold: to end it
// would drop the spells of one arm more than those of the other.
//
// Known limits: what a raise saves in the 5 s after a spell that was cut is not counted. The time that was saved and
// the budget are not what they were before a spell, in either arm. A pod whose own limit binds first has no receipt,
// nor have its containers.

// WhyWithheld is the reason of a group that is left alone in a spell.
const WhyWithheld = "withheld in this spell, for the receipt"

// Receipt is the experiment of one group; nil: there is none.
func (s *State) Receipt(id workload.ID) *receipt.Experiment {
	if m := s.groups[id]; m != nil {
		return m.experiment
	}
	return nil
}

// Receipts are the figures of all groups, those that are gone included.
func (s *State) Receipts() receipt.Figures { return s.receipts }

// enrol begins and ends the experiments of the candidates, and adds up the spells that are over.
func (s *State) enrol(in Input, pods []podCandidates) {
	late := func(_ workload.ID, k KeptReceipt) bool { return in.Now.Sub(k.Unclaimed) > unclaimedFor }
	maps.DeleteFunc(s.unclaimed, late)
	each(pods, func(p *podCandidates, u *candidate) {
		for _, o := range u.spells {
			s.receipts.Add(o)
		}
		u.spells = nil
		part := u.configured.Receipts
		switch e := u.m.experiment; {
		case part == 0 || u.isPod:
			u.m.experiment, u.m.sampled = nil, nil
			if part == 0 && known(u.configured) {
				delete(s.unclaimed, u.ID)
			}
		case !p.counts(u): // the pod's limit binds first, maybe only while the limits are being changed
			s.setAside(in.Now, u)
		case e == nil || e.Part() != part || *u.m.sampled != u.sampled(in):
			s.experiment(in, u)
		case u.Resized, u.Paused != "", in.Held:
			e.Abort(in.Now)
		}
	})
}

// experiment begins the experiment of a candidate, or goes on with the one that was kept for it.
func (s *State) experiment(in Input, u *candidate) {
	name := fmt.Sprintf("%s %d", u.Path, u.Inode)
	if u.m.experiment = s.claim(in, u, name); u.m.experiment == nil {
		u.m.experiment = receipt.New(u.configured.Receipts, s.seed, name, in.Now)
	}
	sampled := u.sampled(in)
	u.m.sampled = &sampled
	if s.receipts.Since.IsZero() {
		s.receipts.Since = in.Now
	}
}

// Sampled is what an experiment measures. When it changes, another experiment begins.
type Sampled struct {
	Strategy strategy.Strategy   `json:"strategy"`
	Extra    strategy.ExtraCores `json:"extra_cores"`
}

// sampled is what an experiment on the candidate measures in this turn. It does not depend on the node's threshold.
func (u *candidate) sampled(in Input) Sampled {
	s := Sampled{u.configured, in.Extra}
	s.Strategy.SharePoolThresholdPercent = 0
	return s
}

// withhold says whether what would be handed out to the candidate now is not to be. It begins a spell.
func (u *candidate) withhold(in Input) bool {
	e := u.m.experiment
	if e == nil || u.Starting || in.Held {
		return false
	}
	if state := in.Node.State(); state != NodeOverload && state != NodeUnknown && !u.raised() {
		e.Begin(in.Now, u.meter(in))
	}
	return e.Withheld()
}

// meter is what the node and the candidate have used by now.
func (u *candidate) meter(in Input) receipt.Meter {
	own := u.m.last.Counters
	return receipt.Meter{At: in.Node.BusyAt, Node: in.Node.Busy, Own: own.Usage,
		Known: u.Looked && own.HasUsage && !in.Node.BusyAt.IsZero()}
}

// bookSpell adds the last window to the spell that is on.
func (u *candidate) bookSpell(in Input, lost time.Duration, meter receipt.Meter) {
	e, w := u.m.experiment, u.window
	if e == nil {
		return
	}
	requests, known := u.requestsThrottled()
	o, over := e.Observe(receipt.Window{From: w.From, To: w.To, Used: w.Used, Lost: lost, Throttled: w.Throttled > 0,
		Requests: requests, RequestsKnown: known, Quota: u.limit.Quota, Period: u.period(), Meter: meter})
	if !over {
		return
	}
	u.spells = append(u.spells, o)
	if !e.Running(in.Now) { // it was not cut
		u.m.everThrottled = false
		u.m.throttledPeriods.recent = [lastingHits]time.Time{}
	}
}

// lost is the wall time of the throttles that ended since the last reading, by the kernel's account of each where there
// is one.
func (u *candidate) lost(w sample.Usage) time.Duration {
	if u.LostKnown {
		more := u.Lost - u.m.lost
		if more < 0 { // the account has begun anew
			more = u.Lost
		}
		u.m.lost = u.Lost
		return more
	}
	if w.ThrottledTime == 0 {
		return 0
	}
	return w.ThrottledWall(u.period())
}

// requestsThrottled is the throttled time of the requests that were answered since the last reading.
func (u *candidate) requestsThrottled() (more time.Duration, known bool) {
	was, is := u.m.requests, u.RequestsThrottled
	u.m.requests = is
	if was == nil || is == nil || *is < *was { // the account has begun anew
		return 0, false
	}
	return *is - *was, true
}

// withdrawn says why nothing is handed out any more because of the receipt, or "".
func (m *memory) withdrawn() string {
	if m.experiment == nil || m.experiment.Withdrawn() == "" {
		return ""
	}
	return fmt.Sprintf("withdrawn: its receipt says that refilling it %s; receipts: 0%% for it undoes this",
		m.experiment.Withdrawn())
}

// inSpell says whether a spell has to be observed.
func (m *memory) inSpell() bool { return m.experiment != nil && m.experiment.Watched() }

// withheld is the decision for a candidate that gets nothing.
func (u *candidate) withheld(why string) {
	u.decision = decision{u.limit.Quota, KindGiveBack, why}
	if u.limit.Quota == cpu.Unlimited {
		u.decision = decision{u.Disk.Quota, "", why}
	}
}
