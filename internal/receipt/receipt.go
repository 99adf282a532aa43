// Package receipt measures what refills and raises cause, by an experiment: for a random part of a container's busy
// spells nothing is handed out, and the difference is the receipt. It is pure: observations go in, figures come out.
//
// Problem: how long a container would have been throttled without Plimsoll cannot be seen while Plimsoll acts, and two
// weeks with and without it differ by more than Plimsoll. Loads change by the hour, their spells are few long ones
// among many short ones, and whoever looks at the figures each day finds a difference
// sooner or later where there is none.
//
// Approach: an experiment with the rules of good A/B tests.
//   - The unit is a spell (Experiment): from the first moment in which a refill or a raise would be made to the next
//     idle stretch of two periods, which holds a whole period wherever periods begin. Until that moment both arms are
//     treated alike, so spells without one need not be counted (Deng and Hu, Diluted Treatment Effect Estimation for
//     Trigger Analysis, 2015). A backlog that a withheld refill leaves is over when the container is idle, and is
//     counted.
//   - Whether a spell is withheld is a hash of seed, container, begin of the experiment and number of the spell
//     (Withhold). Its probability is known, and the coins of two experiments differ.
//   - The metric is set in advance: wall time throttled in a spell, of its first 2 s (Longest). So it is bounded. A
//     second one guards the neighbours: how much CPU time all others used in the 100 ms after the spell began. A third
//     one is only shown: throttled time of the requests that were answered in the spell, where these are measured.
//   - The estimate (Estimate) weights each spell by the inverse of its probability, after subtraction of what earlier
//     spells of the same arm came to (AIPW). The coin is the only chance that it needs.
//   - The interval is an asymptotic confidence sequence: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform
//     central limit theory and asymptotic confidence sequences, Annals of Statistics 2024, arXiv 2103.06476. It covers
//     at all times at once, so that it may be looked at whenever somebody likes, and acted on.
//   - Whether the arms have the sizes that the coin gives is tested too (Mismatch), by a test that may be looked at at
//     any time: Lindon and Malek, Anytime-valid inference for multinomial count data, 2022. Where they do not, spells
//     of one arm were lost, and no figure counts.
//   - Harm withdraws (Verdict): at 1 %, and no more refills are made until a person says otherwise.
//   - An experiment outlives the agent (Kept, Resume), and ends with the container, the boot and the settings that are
//     measured. A spell that is on when the agent ends is left out.
//
// Assumptions. Spells of one container resemble each other, for its load comes and goes by the hour. The interval does
// not assume that they are independent or alike: what each spell would have come to in either arm is taken as given,
// and only the coin is random, so that an estimate is a sum of martingale differences whatever the load does. What is
// assumed is that a spell does not depend on the arm of the one before. The idle stretch sees to that: the kernel's
// pool is full again, no work is left over, and a raise ends with its spell. A treated spell that was cut leaves no
// backlog, and the next may begin at once: a load without idle stretches would be counted for 2 s in 7. After a
// withheld one that was cut the time until the next idle stretch is left out, 5 s at most. What remains are the
// container's budget above its limit and the time that it saved, which a treated spell uses up and a withheld one does
// not; and clients who come back later, or less often, because they waited.
//
// Why asymptotic: bounds without a limit theorem for bounded figures exist (Howard, Ramdas, McAuliffe and Sekhon,
// Annals of Statistics 2021, section 4.2; Waudby-Smith and Ramdas, JRSS B 2024), and are wider for spells of which one
// in a hundred is withheld, since they allow for the one spell of 2 s not seen yet: their width has a term of 2 s /
// probability / spells. The price is that the interval covers only where the variance is known well enough. Long spells
// are rare and withheld ones rarer. So no interval is given before Least spells of the smaller arm; the variance is the
// larger of two estimates, that of the weighted figures, and the one that would hold if refills did nothing, to which
// all spells of both arms contribute; and one long spell that was not seen is added to it (unseen). TestCoverage holds
// this to the aim with spells that follow Pareto's law and loads that change.
//
// Known limits: a crash of the agent loses the spells since the experiment was last kept, up to a minute, and with them
// a withdrawal. A pod whose own limit binds before its containers' is left out. Time throttled beyond 2 s of a spell is
// not counted, in either arm.
package receipt

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"
)

const (
	// Longest is how long a spell lasts at most: then it is cut, and refills are made again.
	Longest = 2 * time.Second
	// rest is what is left out at most after a withheld spell that was cut: until the container is idle, if sooner.
	rest = 5 * time.Second
	// idlePeriods of nearly no use in a row hold a whole idle period.
	idlePeriods = 2
	// idlePart of the quota is nearly no use: a health check, a collector's timer.
	idlePart = 1.0 / 16
	// After is how long after a spell's begin the neighbours' use is measured.
	After = 100 * time.Millisecond
	// soonest is how soon after the begin a reading may tell of that; it is scaled up.
	soonest = 80 * time.Millisecond
)

// Withhold says whether a spell of the experiment that was begun then is withheld: true with this probability, over all
// numbers. Each experiment counts from 0: without its begin a tenant who has another one begin would know the coins.
func Withhold(seed uint64, container string, begun time.Time, number uint64, part float64) bool {
	key := make([]byte, 0, 24+len(container))
	key = binary.LittleEndian.AppendUint64(key, seed)
	key = binary.LittleEndian.AppendUint64(key, uint64(begun.UnixNano()))
	key = binary.LittleEndian.AppendUint64(key, number)
	sum := sha256.Sum256(append(key, container...))
	return float64(binary.LittleEndian.Uint64(sum[:])>>11)/(1<<53) < part
}

// Meter is the CPU time used so far by the whole node and by the container.
type Meter struct {
	At        time.Time
	Node, Own time.Duration
	Known     bool
}

// others is what all others used from a to b, in CPUs.
func (a Meter) others(b Meter) float64 {
	return float64((b.Node-a.Node)-(b.Own-a.Own)) / float64(b.At.Sub(a.At))
}

// Window is what was observed of a container between two readings.
type Window struct {
	From, To      time.Time
	Used          time.Duration // CPU time
	Lost          time.Duration // wall time of throttles that ended in it
	Throttled     bool          // a period ended throttled in it
	Requests      time.Duration // throttled time of the requests that were answered in it, where RequestsKnown
	RequestsKnown bool
	Quota         time.Duration // its limit
	Period        time.Duration
	Meter         Meter // at To
}

// quiet says whether the container used nearly nothing, and was not throttled.
func (w Window) quiet() bool {
	allowed := float64(w.Quota) * float64(w.To.Sub(w.From)) / float64(w.Period)
	return w.Lost == 0 && !w.Throttled && float64(w.Used) <= idlePart*allowed
}

// Outcome is a spell that is over.
type Outcome struct {
	Withheld      bool
	Part          float64       // the probability of that
	Lost          time.Duration // wall time throttled
	Others        float64       // CPU time that all others used in the time After its begin, in seconds
	Measured      bool          // Others is known
	Requests      time.Duration // throttled time of the requests that were answered in it, where RequestsKnown
	RequestsKnown bool
	Length        time.Duration
}

// spell is the one that is on.
type spell struct {
	withheld bool
	begun    time.Time
	lost     time.Duration
	before   Meter
	others   float64
	measured bool
	requests time.Duration
	unknown  bool // of some window, requests
}

// Experiment is that of one container.
type Experiment struct {
	Figures
	seed      uint64
	container string
	part      float64
	number    uint64 // of the next spell
	on        *spell
	cut       time.Time     // the last spell was, then; zero: it was not
	resting   time.Time     // no spell begins before, unless the container is idle
	quiet     time.Duration // without a break, up to now
	harm      Verdict       // what it was withdrawn for; "": it was not
}

// New begins an experiment in which this part of a container's spells is withheld.
func New(part float64, seed uint64, container string, now time.Time) *Experiment {
	return &Experiment{part: part, seed: seed, container: container, Figures: Figures{Since: now}}
}

// Part is the probability with which a spell is withheld.
func (e *Experiment) Part() float64 { return e.part }

// Begin begins a spell, where none is on and no backlog of the last may be left.
func (e *Experiment) Begin(now time.Time, m Meter) {
	if e.on != nil || now.Before(e.resting) || e.harm != "" {
		return
	}
	e.on = &spell{withheld: Withhold(e.seed, e.container, e.Since, e.number, e.part), begun: now, before: m}
	e.number, e.quiet = e.number+1, 0
}

// Running says whether a spell is on, or was cut a moment ago: what was raised for it may stay.
func (e *Experiment) Running(now time.Time) bool {
	return e.on != nil || !e.cut.IsZero() && now.Before(e.cut.Add(rest))
}

// Watched says whether the spell that is on has to be observed.
func (e *Experiment) Watched() bool { return e.on != nil }

// Withheld says whether nothing is handed out now: the spell that is on is a withheld one.
func (e *Experiment) Withheld() bool { return e.on != nil && e.on.withheld }

// Withdrawn says why nothing is handed out any more; "": it is.
func (e *Experiment) Withdrawn() Verdict { return e.harm }

// Abort forgets the spell that is on: its limit was changed, or a person has stopped all writes.
func (e *Experiment) Abort(now time.Time) {
	if e.on != nil {
		e.Aborted++
		e.end(now, true)
	}
}

// Observe takes the next window of the container, and returns the spell that is over with it.
func (e *Experiment) Observe(w Window) (Outcome, bool) {
	if w.Period <= 0 || !w.To.After(w.From) {
		return Outcome{}, false
	}
	if e.quiet += w.To.Sub(w.From); !w.quiet() {
		e.quiet = 0
	}
	idle := e.quiet >= idlePeriods*w.Period
	if idle {
		e.cut, e.resting = time.Time{}, time.Time{}
	}
	s := e.on
	if s == nil {
		return Outcome{}, false
	}
	s.lost += w.Lost
	s.requests += w.Requests
	s.unknown = s.unknown || !w.RequestsKnown
	s.measure(w.Meter)
	length := w.To.Sub(s.begun)
	if !idle && length < Longest {
		return Outcome{}, false
	}
	e.end(w.To, !idle)
	o := Outcome{Withheld: s.withheld, Part: e.part, Lost: min(s.lost, Longest), Others: s.others, Measured: s.measured,
		Requests: s.requests, RequestsKnown: !s.unknown, Length: length}
	e.Add(o)
	if v := e.Verdict(); v.Harm() {
		e.harm = v
	}
	return o, true
}

// end ends the spell that is on. One that is cut leaves a backlog where it was withheld.
func (e *Experiment) end(now time.Time, cut bool) {
	e.cut = time.Time{}
	if cut {
		e.cut = now
		if e.on.withheld {
			e.resting = now.Add(rest)
		}
	}
	e.on = nil
}

// measure finds what the others used just after the begin.
func (s *spell) measure(m Meter) {
	if s.measured || !s.before.Known || !m.Known || m.At.Sub(s.begun) < soonest {
		return
	}
	if used := s.before.others(m); !math.IsNaN(used) && !math.IsInf(used, 0) {
		s.others, s.measured = used*After.Seconds(), true
	}
}
