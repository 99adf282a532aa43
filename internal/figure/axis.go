package figure

import (
	"math"
	"strconv"
	"strings"
)

// Axis maps figures to places. Values outside of [Min,Max] stand at its ends.
type Axis struct {
	Label    string
	Min, Max float64
	Log      bool
	Reversed bool      // the smallest figure is on top (or to the right)
	Ticks    []float64 // nil: round ones
	Percent  bool      // ratios are spelled in percent
}

// place is where on the axis a figure stands, in [0,1] from the smallest to the largest, or reversed.
func (a Axis) place(v float64) float64 {
	v = min(max(v, a.Min), a.Max)
	lo, hi := a.Min, a.Max
	if a.Log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	at := 0.0
	if hi > lo {
		at = (v - lo) / (hi - lo)
	}
	if a.Reversed {
		return 1 - at
	}
	return at
}

// holds says whether a figure is on the axis.
func (a Axis) holds(v float64) bool {
	const slack = 1e-9 // last bits
	return v >= a.Min-slack*math.Abs(a.Min) && v <= a.Max+slack*math.Abs(a.Max)
}

// part is how far on the way from one figure to another a third one stands, as the axis measures.
func (a Axis) part(from, to, at float64) float64 {
	if a.Log {
		// From or to nothing at all the way is endless: it is cut where the axis has another of its length.
		least := a.Min * a.Min / a.Max
		from, to, at = math.Log(max(from, least)), math.Log(max(to, least)), math.Log(at)
	}
	return (at - from) / (to - from)
}

// ticks are the figures that are written beside the axis.
func (a Axis) ticks() []float64 {
	if a.Ticks != nil {
		return a.Ticks
	}
	var list []float64
	if a.Log {
		for decade := math.Pow(10, math.Floor(math.Log10(a.Min)+1e-9)); decade <= a.Max*(1+1e-9); decade *= 10 {
			if decade >= a.Min*(1-1e-9) {
				list = append(list, decade)
			}
		}
		return list
	}
	step := round((a.Max - a.Min) / 5)
	for i := math.Ceil(a.Min/step - 1e-9); i*step <= a.Max+step*1e-9; i++ {
		list = append(list, i*step+0) // + 0: Ceil gives -0
	}
	return list
}

// round is the nearest of 1, 2, 2.5 and 5 times a power of ten that is not below.
func round(step float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(step)))
	for _, part := range []float64{1, 2, 2.5, 5} {
		if step <= part*decade*(1+1e-9) {
			return part * decade
		}
	}
	return 10 * decade
}

// spell writes a tick.
func (a Axis) spell(v float64) string {
	if a.Percent {
		v *= 100
	}
	digits := 4 - int(math.Ceil(math.Log10(math.Abs(v)+1e-12))) // no last bits, as in 0.30000000000000004
	s := strconv.FormatFloat(v, 'f', max(digits, 0), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return minus(s)
}

func minus(s string) string { return strings.Replace(s, "-", "\u2212", 1) }
