package loadline

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// sigma is the root in (0, 1) of sigma = exp(-(1-sigma)/u): for exponential demand of mean u quotas, the container is
// throttled in sigma^(1+b) of the periods with a burst of b quotas, and its mean backlog is sigma^(1+b) u/(1-sigma)
// quotas (V is the waiting time of a D/M/1 queue).
func sigma(u float64) float64 {
	low, high := 0.0, 1-1e-15
	// Below the root exp(-(1-s)/u) is above s, between the root and 1 it is below.
	for range 200 {
		if mid := (low + high) / 2; math.Exp(-(1-mid)/u) > mid {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// The exact law against the closed form: sigma^(1+b), and its backlog.
func TestQueueClosedForm(t *testing.T) {
	for _, u := range []float64{0.1, 0.3, 0.5, 0.7, 0.9, 0.97} {
		for _, quota := range []float64{1, 0.05} {
			q := must[*Queue](t)(NewQueue(exp(t, u*quota), quota))
			s := sigma(u)
			for _, b := range []float64{0, 0.25, 1 / 3.0, 1, 2, 5} {
				name := fmt.Sprintf("u=%v quota %v b=%v", u, quota, b)
				p := math.Pow(s, 1+b)
				near(t, name+": throttled", q.Throttled(b*quota), p, 1e-6)
				near(t, name+": backlog", q.Backlog(b*quota)/quota, p*u/(1-s), 1e-6)
				near(t, name+": delay", q.Delay(b*quota), p/(1-s), 1e-5)
			}
			near(t, "without bound", q.Throttled(inf), 0, 0)
		}
	}
	// The published figures: 20.3 % without burst, 4.13 % with it.
	s := sigma(0.5)
	near(t, "sigma", s, 0.2032, 5e-5)
	near(t, "sigma^2", s*s, 0.0413, 5e-5)
}

// The laws that have no closed form, against a long walk.
func TestQueueAgainstWalk(t *testing.T) {
	for _, l := range []Law{pareto4(t, 0.8), must[Law](t)(Poisson(0.7, 0.1)), must[Law](t)(Poisson(0.8, 0.3)),
		must[Law](t)(Pareto(0.6, 3, 4))} {
		q := must[*Queue](t)(NewQueue(l, 1))
		const n = 1 << 20
		demand, r := make([]float64, n), stream(3)
		x, s := make([]int64, n), scale{1}
		newSampler(l, s).fill(x, &r)
		for i := range x {
			demand[i] = s.float(float64(x[i]))
		}
		h := must[*History](t)(NewHistory(must[*Recording](t)(NewRecording(demand)), 1))
		for _, b := range []float64{0, 0.5, 1, 2} {
			// The walk remembers some periods: its spread is several times that of independent ones.
			p := q.Throttled(b)
			near(t, fmt.Sprintf("%v: throttled with %v", l, b), h.Throttled(b), p, 10*math.Sqrt(p/n))
			near(t, fmt.Sprintf("%v: backlog with %v", l, b), h.Backlog(b), q.Backlog(b), 0.05*q.Backlog(b)+1e-4)
		}
	}
}

// Five jobs of a tenth at a quota of half a unit use it up exactly: that is no throttling.
func TestQueueTie(t *testing.T) {
	steady := must[*Recording](t)(NewRecording([]float64{0.5, 0.5, 0.5, 0.4}))
	h := must[*History](t)(NewHistory(steady, 0.5))
	near(t, "at the quota", h.Throttled(0), 0, 0)
	l := must[Law](t)(Poisson(0.1, 0.5)) // 0, 1, 2... jobs of a whole quota
	q := must[*Queue](t)(NewQueue(l, 0.5))
	// Throttled at once only by two jobs or more, or by one that meets a backlog: far below P(X >= 1) = 18 %.
	if p := q.Throttled(0); p < 0.017 || p > 0.03 {
		t.Errorf("throttled %v", p)
	}
}

func TestHistoryByHand(t *testing.T) {
	// Quota 1. V: 2, 1, 0.5, 0.
	h := must[*History](t)(NewHistory(must[*Recording](t)(NewRecording([]float64{3, 0, 0.5, 0})), 1))
	near(t, "throttled without", h.Throttled(0), 0.75, 0)
	near(t, "throttled with 1", h.Throttled(1), 0.25, 0)
	near(t, "throttled with 2", h.Throttled(2), 0, 0)
	near(t, "backlog without", h.Backlog(0), 3.5/4, 1e-12)
	near(t, "backlog with 1", h.Backlog(1), 1.0/4, 1e-12)
	near(t, "delay", h.Delay(0), 1, 1e-12)
	near(t, "enough for a quarter", h.Enough(0.25), 1, 0)
	near(t, "enough for none", h.Enough(0), 2, 0)
	near(t, "enough for all", h.Enough(1), 0, 0)
	// The turn begins with what the last one left: 3 at the end is still there at the beginning.
	h = must[*History](t)(NewHistory(must[*Recording](t)(NewRecording([]float64{0, 0.5, 0, 3})), 1))
	near(t, "throttled in a circle", h.Throttled(0), 0.75, 0)
}

func TestRefusesQueues(t *testing.T) {
	l := exp(t, 1)
	for name, c := range map[string]struct {
		quota float64
		want  error
	}{
		"quota 0": {0, ErrInput}, "quota NaN": {math.NaN(), ErrInput}, "no quota": {inf, ErrInput},
		"u = 1": {1, ErrUnstable}, "u > 1": {0.5, ErrUnstable}, "u = 1 - 1e-9": {1 + 1e-9, ErrUnstable},
	} {
		if _, err := NewQueue(l, c.quota); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewQueue(nil, 1); !errors.Is(err, ErrInput) {
		t.Errorf("no law: %v", err)
	}
	r := record(t, l, 100, 1)
	for quota, want := range map[float64]error{0: ErrInput, r.Mean(): ErrUnstable} {
		if _, err := NewHistory(r, quota); !errors.Is(err, want) {
			t.Errorf("history at %v: %v", quota, err)
		}
	}
}
