package receipt

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Kept is what is kept of an experiment over a restart of the agent. All that an estimate depends on is in it, so that
// the figures go on as if the agent had not ended.
//
// A spell that is on when the agent ends is not in it, but as an aborted one, in both arms alike.
type Kept struct {
	KeptFigures
	Next      uint64  `json:"next_spell"`
	Withdrawn Verdict `json:"withdrawn,omitempty"` // what refills ended for
}

// KeptFigures are Figures.
type KeptFigures struct {
	Since    time.Time    `json:"since"`
	Aborted  int64        `json:"aborted"`
	Saved    KeptEstimate `json:"saved"`
	Taken    KeptEstimate `json:"taken"`
	Requests KeptEstimate `json:"requests"`
	Both     float64      `json:"lost_times_requests"`
	Squares  float64      `json:"requests_squared"`
}

// KeptEstimate is an Estimate.
type KeptEstimate struct {
	Treated  KeptArm `json:"treated"`
	Withheld KeptArm `json:"withheld"`
	Mean     float64 `json:"mean"`
	Squares  float64 `json:"squared_deviations"`
	Null     float64 `json:"variances_without_effect"`
	Part     float64 `json:"probabilities"`
}

// KeptArm is the spells of an arm: their number, and the sum of what they came to.
type KeptArm struct {
	Spells int64   `json:"spells"`
	Sum    float64 `json:"sum"`
}

// Kept is what is to be kept of the experiment.
func (e *Experiment) Kept() Kept {
	k := Kept{KeptFigures: e.Figures.Kept(), Next: e.number, Withdrawn: e.harm}
	if e.on != nil {
		k.Aborted++
	}
	return k
}

// Resume goes on with an experiment that was kept.
//
// The seed may be another one. The estimate needs no more of the coin than that it is independent of all that came
// before it. After a crash the number of the next spell may be one that was tossed already, and the same seed would
// toss the same again: the arm of a spell would be known before it begins.
//
// No spell begins at once: the container may be in the midst of the spell that was on, and have a backlog of it.
func Resume(k Kept, part float64, seed uint64, container string, now time.Time) (*Experiment, error) {
	f, err := k.Figures()
	if err != nil {
		return nil, err
	}
	treated, withheld := f.Saved.Arms()
	switch spells := float64(treated + withheld); {
	case k.Withdrawn != "" && !k.Withdrawn.Harm():
		return nil, fmt.Errorf("%q is no reason to withdraw refills", k.Withdrawn)
	case float64(k.Next) < spells:
		return nil, fmt.Errorf("spell %d is the next one after %v", k.Next, spells)
	case math.Abs(f.Saved.part-spells*part) > 1e-6*spells:
		return nil, fmt.Errorf("the probabilities of %v spells add up to %v, and each is %v", spells, f.Saved.part,
			part)
	}
	return &Experiment{Figures: f, part: part, seed: seed, container: container, number: k.Next, cut: now,
		resting: now.Add(rest), harm: k.Withdrawn}, nil
}

// Kept is what is to be kept of the figures.
func (f *Figures) Kept() KeptFigures {
	return KeptFigures{Since: f.Since, Aborted: f.Aborted, Saved: f.Saved.kept(), Taken: f.Taken.kept(),
		Requests: f.Requests.kept(), Both: f.both, Squares: f.squares}
}

// Figures are the figures that were kept.
func (k KeptFigures) Figures() (f Figures, err error) {
	f = Figures{Since: k.Since, Aborted: k.Aborted, both: k.Both, squares: k.Squares}
	var bad [3]error
	f.Saved, bad[0] = k.Saved.estimate(true)
	// two meters are read one after the other: their difference may be negative
	f.Taken, bad[1] = k.Taken.estimate(false)
	f.Requests, bad[2] = k.Requests.estimate(true)
	err = errors.Join(bad[:]...)
	switch {
	case err != nil:
	case k.Aborted < 0:
		err = fmt.Errorf("%d spells aborted", k.Aborted)
	case !size(k.Both, k.Squares):
		err = fmt.Errorf("sums of squares %v, %v", k.Both, k.Squares)
	case f.Taken.n > f.Saved.n || f.Requests.n > f.Saved.n:
		err = fmt.Errorf("%v and %v spells of %v", f.Taken.n, f.Requests.n, f.Saved.n)
	case f.Requests.n > 0:
		f.weigh()
	}
	return f, err
}

func (e *Estimate) kept() KeptEstimate {
	treated, withheld := e.arms[0], e.arms[1]
	return KeptEstimate{Treated: KeptArm{int64(treated.n), treated.sum},
		Withheld: KeptArm{int64(withheld.n), withheld.sum},
		Mean:     e.mean, Squares: e.ssd, Null: e.null, Part: e.part}
}

// estimate is the estimate that was kept. Sizes says that no spell came to less than 0.
func (k KeptEstimate) estimate(sizes bool) (e Estimate, err error) {
	const most = 1 << 53 // float64 counts up to it
	treated, withheld := k.Treated, k.Withheld
	n := float64(treated.Spells) + float64(withheld.Spells)
	switch {
	case treated.Spells < 0 || withheld.Spells < 0 || n >= most:
		err = fmt.Errorf("%d and %d spells", treated.Spells, withheld.Spells)
	case !finite(k.Mean, treated.Sum, withheld.Sum) || sizes && !size(treated.Sum, withheld.Sum):
		err = fmt.Errorf("a mean of %v from sums of %v and %v", k.Mean, treated.Sum, withheld.Sum)
	case !size(k.Squares, k.Null):
		err = fmt.Errorf("variances of %v and %v", k.Squares, k.Null)
	case n == 0 && k != KeptEstimate{}:
		err = errors.New("figures without a spell")
	case !size(k.Part) || k.Part >= n && n > 0 || k.Part == 0 && n > 0:
		err = fmt.Errorf("the probabilities of %v spells add up to %v", n, k.Part)
	}
	return Estimate{arms: [2]arm{{float64(treated.Spells), treated.Sum}, {float64(withheld.Spells), withheld.Sum}},
		n:    n,
		mean: k.Mean, ssd: k.Squares, null: k.Null, part: k.Part}, err
}

func finite(all ...float64) bool {
	for _, x := range all {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// size says whether all are finite, and none is negative.
func size(all ...float64) bool {
	for _, x := range all {
		if x < 0 {
			return false
		}
	}
	return finite(all...)
}
