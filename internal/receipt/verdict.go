package receipt

import (
	"math"
	"time"
)

// Verdict is what the experiment shows.
type Verdict string

// The verdicts.
const (
	TooFew    Verdict = "too few spells"       // no interval yet
	Unclear   Verdict = "no difference shown"  // the interval holds 0
	Saves     Verdict = "saves time"           // withheld spells were throttled for longer
	HarmsSelf Verdict = "harms the container"  // withheld spells were throttled for less
	HarmsRest Verdict = "harms the neighbours" // they lose more CPU time than the container is throttled less
	Invalid   Verdict = "not valid"            // the arms do not have the sizes that chance gives
)

// Harm says whether refills are to end because of the verdict.
func (v Verdict) Harm() bool { return v == HarmsSelf || v == HarmsRest }

const (
	// Alpha is how often an interval that is shown may miss.
	Alpha = 0.05
	// acts is the same for what refills end for. There are two ways to harm, each at one end of an interval: together
	// they are mistaken in 1 % of the experiments at most.
	acts = 0.01
	// mismatched is how often arms that are fine may be taken for mismatched.
	mismatched = 0.001
	// crowded is how many times more requests may wait in a long spell that was not seen than in those that were, of
	// which the crowded ones count most (TestCoverage).
	crowded = 2
	// prior is how many spells of each probability the mixture of the test of sizes begins with, in the smaller arm.
	prior = 10
)

// Figures are the results of an experiment, or of several.
type Figures struct {
	Since time.Time
	Saved Estimate // wall time throttled in a spell, in seconds
	Taken Estimate // CPU time that the others used in the time After its begin, in seconds
	// throttled time of the requests answered in a spell, in seconds; of the spells in which they were measured
	Requests Estimate
	Aborted  int64 // spells without an outcome

	both, squares float64 // sums of lost times requests, and of requests squared, over the spells of Requests
}

// Add adds a spell.
func (f *Figures) Add(o Outcome) {
	f.Saved.Add(o.Withheld, o.Part, o.Lost.Seconds())
	if o.Measured {
		f.Taken.Add(o.Withheld, o.Part, o.Others)
	}
	if o.RequestsKnown {
		f.Requests.Add(o.Withheld, o.Part, o.Requests.Seconds())
		lost, requests := o.Lost.Seconds(), o.Requests.Seconds()
		f.both, f.squares = f.both+lost*requests, f.squares+requests*requests
		f.weigh()
	}
}

// weigh widens the interval of the requests by how many of them wait at once.
func (f *Figures) weigh() { f.Requests.weight = crowded * f.squares / max(f.both, 1e-6) }

// Verdict says what the figures show.
func (f *Figures) Verdict() Verdict {
	if f.Mismatch() {
		return Invalid
	}
	_, high, ok := f.Saved.Interval(acts)
	if !ok {
		return TooFew
	}
	if high < 0 {
		return HarmsSelf
	}
	if taken, _, ok := f.Taken.Interval(acts); ok && taken > math.Max(0, high) {
		return HarmsRest
	}
	if low, _, _ := f.Saved.Interval(Alpha); low > 0 {
		return Saves
	}
	return Unclear
}

// Mismatch says whether the arms do not have the sizes that the coin gives them: spells of one of them were lost.
//
// Under the coin the ratio of likelihoods, with a Beta mixture of all other probabilities above, is a martingale of
// mean 1, so that it reaches 1/mismatched at any time in at most that part of all experiments (Ville).
func (f *Figures) Mismatch() bool {
	treated, held := f.Saved.arms[0].n, f.Saved.arms[1].n
	n := treated + held
	if n == 0 {
		return false
	}
	p := f.Saved.part / n
	a, b := float64(prior), prior*(1-p)/p
	log := logBeta(a+held, b+treated) - logBeta(a, b) - held*math.Log(p) - treated*math.Log1p(-p)
	return log >= -math.Log(mismatched)
}

func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	z, _ := math.Lgamma(a + b)
	return x + y - z
}
