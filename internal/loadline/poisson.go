package loadline

import (
	"fmt"
	"math"
)

// poisson is a law on the multiples of a job: a Poisson number of jobs in a period.
type poisson struct {
	mean, job float64
}

// Poisson is the law of a Poisson number of equal jobs with a mean demand. The published tables have jobs of a tenth of
// the quota.
func Poisson(mean, job float64) (Law, error) {
	switch {
	case !positive(mean):
		return nil, refuse("a mean above 0", "Poisson demand of mean %v", mean)
	case !positive(job):
		return nil, refuse("a job above 0", "Poisson demand in jobs of %v", job)
	case mean/job > mostJobs:
		return nil, refuse("larger jobs: so many at a time are as good as a constant",
			"Poisson demand of %.6g jobs a period", mean/job)
	}
	return poisson{mean, job}, nil
}

// mostJobs bounds the mean number of jobs in a period.
const mostJobs = 500

func (l poisson) Mean() float64     { return l.mean }
func (l poisson) Variance() float64 { return l.mean * l.job }
func (l poisson) step() float64     { return l.job }

func (l poisson) String() string {
	return fmt.Sprintf("Poisson demand of mean %.6g in jobs of %.6g", l.mean, l.job)
}

// masses are the probabilities of 0, 1, 2... jobs, until nothing is left that a float64 could add.
func (l poisson) masses() []float64 {
	rate := l.mean / l.job
	var p []float64
	for k := 0; ; k++ {
		lg, _ := math.Lgamma(float64(k + 1))
		mass := math.Exp(float64(k)*math.Log(rate) - rate - lg)
		if float64(k) > rate && mass < 1e-18 {
			return p
		}
		p = append(p, mass)
	}
}

func (l poisson) excess(x float64) float64 {
	sum := 0.0
	for k, p := range l.masses() {
		sum += p * max(0, float64(k)*l.job-x)
	}
	return sum
}

func (l poisson) quantile(s float64) float64 {
	masses := l.masses()
	left := 1.0
	for k, p := range masses {
		if left -= p; left < s {
			return float64(k) * l.job
		}
	}
	return float64(len(masses)) * l.job
}
