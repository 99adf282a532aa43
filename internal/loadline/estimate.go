package loadline

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Estimate is a figure with its interval of 95 %.
type Estimate struct{ Value, Low, High float64 }

// z95 is the half width of the interval in standard errors: Student's t with 63 degrees of freedom, the replicas less
// one.
const z95 = 1.998

// controlled estimates the mean of y, one value a replica, with the help of a control whose mean is known: what the
// control's replicas were off by says what y's were off by.
func controlled(y, control []float64, known float64, events int64) (mean, sigma float64) {
	mean, sigma = stat.MeanStdDev(y, nil)
	sigma /= math.Sqrt(float64(len(y)))
	if math.IsNaN(known) {
		return mean, sigma
	}
	beta := 1.0
	if v := stat.Variance(control, nil); v > 0 && events >= enoughEvents {
		beta = stat.Covariance(y, control, nil) / v
	}
	rest := make([]float64, len(y))
	for i := range y {
		rest[i] = y[i] - beta*(control[i]-known)
	}
	mean, sigma = stat.MeanStdDev(rest, nil)
	return mean, sigma / math.Sqrt(float64(len(y)))
}

// enoughEvents is how many coincidences it takes to estimate the factor of the control variate. With fewer it is 1:
// then what is estimated is the probability of being broken without coinciding.
const enoughEvents = 64

// result turns the counts of the replicas into figures.
func (p *plan) result(list []outcome) Result {
	r := Result{Rule: p.options.Rule, Coincidence: p.control(), Waiting: p.waiting(list)}
	miss, ages, control := make([]float64, replicas), make([]float64, replicas), make([]float64, replicas)
	var events, alone int64
	for i, o := range list {
		t := o.tally
		if p.options.Rule == Published {
			t = o.shared
		}
		n := float64(t.periods)
		miss[i], ages[i], control[i] = float64(t.missed)/n, float64(t.ages)/n, float64(t.coincided)/n
		r.Periods += t.periods
		events += t.coincided
		alone += t.missedOnly
	}
	r.Method = p.method(!math.IsNaN(r.Coincidence))
	j, spread := controlled(control, control, math.NaN(), events)
	r.Coinciding = interval(j, spread, 0, 0)
	value, sigma := controlled(miss, control, r.Coincidence, events)
	least := 0.0
	if p.options.Rule == Strict && !math.IsNaN(r.Coincidence) {
		least = r.Coincidence
	}
	unseen := 0.0
	if alone < 4 {
		unseen = rareEvent / float64(r.Periods)
	}
	r.Miss = interval(max(value, least), sigma, least, unseen)
	value, sigma = controlled(ages, control, r.Coincidence, events)
	age := interval(max(value, least), sigma, least, unseen)
	r.WCET = Estimate{1 + age.Value, 1 + age.Low, 1 + age.High}
	p.bootstrap(&r)
	r.Containers = p.outcomes(list)
	return r
}

// rareEvent: where nothing was seen in n periods, 3/n is not excluded (95 %), nor is about as much more where hardly
// anything was.
const rareEvent = 3

func interval(value, sigma, least, unseen float64) Estimate {
	value = max(0, value)
	return Estimate{value, max(least, value-z95*sigma), value + max(z95*sigma, unseen)}
}

// control is the known mean of the control variate, or NaN.
func (p *plan) control() float64 {
	o := p.options
	if o.Plain || o.Rho > 0 || o.Replay == Blocks {
		return math.NaN()
	}
	for _, c := range p.node.Containers {
		if _, ok := c.Demand.(*Recording); ok && o.Replay == Offsets && o.full() || c.Clock != 0 && o.Replay == IID {
			return math.NaN()
		}
	}
	j, err := Coincidence(p.node, o.Replay)
	if err != nil {
		return math.NaN()
	}
	return j
}

func (p *plan) waiting(list []outcome) float64 {
	sum, n := 0.0, 0.0
	for _, o := range list {
		sum += o.waiting
		n += float64(o.periods)
	}
	return p.scale.float(sum / n)
}
