package loadline

import (
	"fmt"
	"math"
)

// pareto is the law with the survival (least/x)^alpha above its least value, cut off at most.
type pareto struct {
	alpha, least, most float64
}

// Pareto is the Pareto law with a mean. The published tables have alpha 4 and are not truncated, whatever their text
// says of a maximum (docs/MODEL.md). A truncated law is the one under the condition X <= most, and its mean is lower
// than that asked for the law without the cut.
func Pareto(mean, alpha, most float64) (Law, error) {
	if !positive(mean) {
		return nil, refuse("a mean above 0", "Pareto demand of mean %v", mean)
	}
	if !(alpha > 2) || math.IsInf(alpha, 1) {
		return nil, refuse("alpha above 2, such as 4: below it the variance is infinite and no interval holds",
			"Pareto demand of alpha %v", alpha)
	}
	l := pareto{alpha: alpha, least: mean * (alpha - 1) / alpha, most: most}
	if !(most > l.least) {
		return nil, refuse("truncate above the least demand, or at +Inf", "Pareto demand from %.6g truncated at %v",
			l.least, most)
	}
	return l, nil
}

// cut is the probability that the law without the cut exceeds it.
func (l pareto) cut() float64 { return math.Pow(l.least/l.most, l.alpha) }

func (l pareto) Mean() float64 { return l.least + l.excess(l.least) }

func (l pareto) Variance() float64 {
	a, cut, mean := l.alpha, l.cut(), l.Mean()
	square := a / (a - 2) * l.least * l.least
	if cut > 0 {
		square -= a / (a - 2) * cut * l.most * l.most
	}
	return square/(1-cut) - mean*mean
}

func (l pareto) String() string {
	if math.IsInf(l.most, 1) {
		return fmt.Sprintf("Pareto demand of mean %.6g, alpha %g", l.Mean(), l.alpha)
	}
	return fmt.Sprintf("Pareto demand of mean %.6g, alpha %g, truncated at %.6g", l.Mean(), l.alpha, l.most)
}

// excess integrates the survival function ((least/x)^alpha - cut) / (1 - cut).
func (l pareto) excess(x float64) float64 {
	if x >= l.most {
		return 0
	}
	below := max(0, l.least-x)
	x = max(x, l.least)
	cut, tail := l.cut(), func(x float64) float64 { return x * math.Pow(l.least/x, l.alpha) / (l.alpha - 1) }
	area := tail(x)
	if cut > 0 {
		area -= tail(l.most) + cut*(l.most-x)
	}
	return below + area/(1-cut)
}

func (l pareto) quantile(s float64) float64 {
	cut := l.cut()
	return l.least * math.Pow(cut+s*(1-cut), -1/l.alpha)
}

func (l pareto) step() float64 { return 0 }
