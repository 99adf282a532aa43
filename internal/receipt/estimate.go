package receipt

import "math"

// Least is how many spells each arm needs before there is an interval.
const Least = 30

// shrink is by how many spells of 0 the mean of earlier spells is held back: a mean of two long spells predicts badly.
const shrink = 5

// tuned is at how many spells of the withheld arm the interval is narrowest.
const tuned = 100

// unseen is the length, in seconds, of one withheld spell that the variance has besides those that were seen: of the
// rare long ones that make up a good part of a mean by Pareto's law, a few dozen spells may have none.
const unseen = 0.5

// Estimate is the mean difference between withheld and treated spells, from what was added so far. The zero value is
// empty.
type Estimate struct {
	arms [2]arm // treated, withheld
	n    float64
	mean float64 // of the weighted differences
	ssd  float64 // sum of their squared deviations
	null float64 // sum of what their variances would be, were there no difference
	part float64 // sum of the probabilities
	// weight is what a second of a spell comes to, where that is more than a second; see unseen.
	weight float64
}

type arm struct{ n, sum float64 }

// predict is what the next spell of the arm is expected to come to, from earlier ones only.
func (a arm) predict() float64 { return a.sum / (a.n + shrink) }

// Add adds a spell that was withheld with probability part, and came to y.
func (e *Estimate) Add(withheld bool, part, y float64) {
	treated, held := e.arms[0].predict(), e.arms[1].predict()
	psi, of, expected := held-treated, &e.arms[0], treated
	if withheld {
		of, expected = &e.arms[1], held
		psi += (y - held) / part
	} else {
		psi -= (y - treated) / (1 - part)
	}
	of.n++
	of.sum += y
	e.n++
	e.part += part
	e.null += (y - expected) * (y - expected) / (part * (1 - part))
	step := psi - e.mean
	e.mean += step / e.n
	e.ssd += step * (psi - e.mean)
}

// Arms are the numbers of spells of each arm.
func (e *Estimate) Arms() (treated, withheld int64) { return int64(e.arms[0].n), int64(e.arms[1].n) }

// Means are the plain means of each arm, 0 for an empty one.
func (e *Estimate) Means() (treated, withheld float64) {
	mean := func(a arm) float64 { return a.sum / math.Max(1, a.n) }
	return mean(e.arms[0]), mean(e.arms[1])
}

// Mean is the estimate: withheld less treated, for a mean spell.
func (e *Estimate) Mean() float64 { return e.mean }

// Known says whether each arm has enough spells for an interval.
func (e *Estimate) Known() bool { return math.Min(e.arms[0].n, e.arms[1].n) >= Least }

// Interval covers the mean effect on the spells so far, at all times together with probability 1-alpha (theorem 2.2 of
// the paper). ok is false while too little is known.
func (e *Estimate) Interval(alpha float64) (low, high float64, ok bool) {
	if !e.Known() {
		return 0, 0, false
	}
	radius := e.radius(alpha)
	return e.mean - radius, e.mean + radius, true
}

func (e *Estimate) radius(alpha float64) float64 {
	long := unseen * math.Max(1, e.weight)
	variance := (math.Max(e.ssd, e.null) + long*long*e.n*e.n/(e.part*e.part)) / e.n
	at := tuned * e.n / e.part // the number of spells at which it is narrowest
	rho2 := (-2*math.Log(alpha) + math.Log(-2*math.Log(alpha)) + 1) / at
	t := e.n*rho2 + 1
	return math.Sqrt(variance * 2 * t / (e.n * e.n * rho2) * math.Log(math.Sqrt(t)/alpha))
}
