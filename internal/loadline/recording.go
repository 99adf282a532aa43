package loadline

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/dsp/fourier"
)

// Recording is a container's demand in one period after the other. It is a Law by its samples, and a history by their
// order. It does not change.
type Recording struct {
	samples  []float64
	sorted   []float64
	above    []float64 // above[i] is the sum of sorted[i:]
	most     float64
	mean     float64
	variance float64
}

// mostSamples bounds a recording: at ten samples a second, 2^31 are seven years.
const mostSamples int64 = 1 << 31

// NewRecording keeps a copy of the samples, one a period.
func NewRecording(samples []float64) (*Recording, error) {
	if len(samples) < 2 {
		return nil, refuse("record more periods; 1000 are a beginning", "%d samples", len(samples))
	}
	if int64(len(samples)) > mostSamples {
		return nil, refuse("record for less time", "%d samples", len(samples))
	}
	for i, x := range samples {
		if !(x >= 0) || math.IsInf(x, 1) {
			return nil, refuse("a sample is CPU time: 0 or more, and finite", "sample %d is %v", i, x)
		}
	}
	r := newRecording(slices.Clone(samples))
	if r.mean == 0 {
		return nil, refuse("record while the container works", "all %d samples are 0", len(samples))
	}
	if math.IsInf(r.mean, 1) || math.IsInf(r.variance, 1) {
		return nil, refuse("are they in the capacity's unit?", "samples up to %.6g", r.Max())
	}
	return r, nil
}

func newRecording(samples []float64) *Recording {
	r := bare(samples)
	r.sorted, r.above = slices.Clone(samples), make([]float64, len(samples)+1)
	slices.Sort(r.sorted)
	for i := len(samples) - 1; i >= 0; i-- {
		r.above[i] = r.above[i+1] + r.sorted[i]
	}
	return r
}

// bare is a recording without its order statistics: the exact law needs none.
func bare(samples []float64) *Recording {
	r := &Recording{samples: samples, most: slices.Max(samples)}
	n := float64(len(samples))
	for _, x := range samples {
		r.mean += x / n
	}
	for _, x := range samples {
		r.variance += (x - r.mean) * (x - r.mean) / n
	}
	return r
}

// Len is the number of periods.
func (r *Recording) Len() int { return len(r.samples) }

// Max is the highest demand.
func (r *Recording) Max() float64 { return r.most }

func (r *Recording) Mean() float64     { return r.mean }
func (r *Recording) Variance() float64 { return r.variance }
func (r *Recording) step() float64     { return 0 }

func (r *Recording) String() string {
	return fmt.Sprintf("a recording of %d periods of mean %.6g", len(r.samples), r.mean)
}

// Scale is the recording with every demand multiplied.
func (r *Recording) Scale(by float64) (*Recording, error) {
	scaled := make([]float64, len(r.samples))
	for i, x := range r.samples {
		scaled[i] = x * by
	}
	return NewRecording(scaled)
}

func (r *Recording) excess(x float64) float64 {
	i := sort.SearchFloat64s(r.sorted, x)
	count := len(r.sorted) - i
	return max(0, r.above[i]-float64(count)*x) / float64(len(r.sorted))
}

func (r *Recording) quantile(s float64) float64 {
	n := len(r.sorted)
	return r.sorted[min(n-1, max(0, int(float64(n)*(1-s))))]
}

// covariances are the autocovariances of the demand at lags below a number, in a unit of their own: those at lag 0
// make autocorrelations of them. They come from the power spectrum (Wiener and Khinchin), so that a lag does not take a
// pass over millions of periods.
func (r *Recording) covariances(lags int) []float64 {
	size := powerOfTwo(len(r.samples) + lags) // nothing wraps around
	list, fft := make([]float64, size), fourier.NewFFT(size)
	for i, x := range r.samples {
		list[i] = x - r.mean
	}
	spectrum := fft.Coefficients(nil, list)
	for k, c := range spectrum {
		spectrum[k] = complex(real(c)*real(c)+imag(c)*imag(c), 0)
	}
	return fft.Sequence(list, spectrum)[:lags]
}

// memory is after how many periods the autocorrelation is lost in the noise of 2/sqrt(n), but at most a tenth of the
// recording.
func (r *Recording) memory() int {
	n := len(r.samples)
	list := r.covariances(max(1, n/10))
	noise := 2 / math.Sqrt(float64(n)) * list[0]
	lag := 1
	for lag < len(list) && list[lag] > noise {
		lag++
	}
	return lag
}

// block is how many periods in a row have to be kept together by a bootstrap: several times the memory, but at least
// the cube root of the length (Kuensch 1989; Lahiri, Resampling Methods for Dependent Data, 2003), and at most a tenth
// of the recording.
func (r *Recording) block() int {
	n := len(r.samples)
	return max(1, min(n, max(int(math.Cbrt(float64(n))), min(3*r.memory(), n/10))))
}

// resample is a circular block bootstrap of the recording (Politis and Romano 1992).
func (r *Recording) resample(block int, rnd *random) []float64 {
	n := len(r.samples)
	drawn := make([]float64, 0, n)
	for len(drawn) < n {
		at := rnd.below(n)
		for k := 0; k < block && len(drawn) < n; k++ {
			drawn = append(drawn, r.samples[at])
			if at++; at == n {
				at = 0
			}
		}
	}
	return drawn
}
