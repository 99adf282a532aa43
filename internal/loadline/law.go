package loadline

import (
	"fmt"
	"math"
)

// Law is what a container demands in a period: the law of one period, or a Recording of many in a row.
type Law interface {
	Mean() float64
	Variance() float64
	fmt.Stringer

	// excess is E max(0, X-x) for x >= 0. Its second differences are the masses of a lattice with the same mean.
	excess(x float64) float64
	// quantile is the demand that is exceeded with this probability, above 0 and at most 1.
	quantile(survival float64) float64
	// step is the distance of the law's atoms, or 0 if it has none.
	step() float64
}

// exponential is the law of the published tables.
type exponential struct{ mean float64 }

// Exponential is the exponential law with a mean.
func Exponential(mean float64) (Law, error) {
	if !positive(mean) {
		return nil, refuse("a mean above 0", "exponential demand of mean %v", mean)
	}
	return exponential{mean}, nil
}

func (l exponential) Mean() float64              { return l.mean }
func (l exponential) Variance() float64          { return l.mean * l.mean }
func (l exponential) String() string             { return fmt.Sprintf("exponential demand of mean %.6g", l.mean) }
func (l exponential) excess(x float64) float64   { return l.mean * math.Exp(-x/l.mean) }
func (l exponential) quantile(s float64) float64 { return -l.mean * math.Log(s) }
func (l exponential) step() float64              { return 0 }
