package loadline

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// stationary is the law of V in V' = max(0, V + x - quota), with x on a lattice and the quota some points of it, by the
// Wiener-Hopf factorisation (Spitzer 1956; by FFT: Gruebel, Algorithm AS 265, Applied Statistics 40, 1991). With phi
// the transform of the step x - quota, the coefficients a(k), k > 0, of -log(1 - phi(z)) are the sums over n of
// P(n steps lead to k)/n, and V has the transform exp(sum of a(k) (z^k - 1)).
//
// On the unit circle 1 - phi has a zero, and where the demand hardly varies the coefficients below 0 swing for long and
// fold back over those above. On a circle a little wider there is no zero, and they die out.
func stationary(x lattice, quota int) []float64 {
	n := powerOfTwo(2 * len(x.mass))
	fft := fourier.NewFFT(n)
	steps := make([]float64, n)
	theta := widen(x, quota, steps)
	phi := fft.Coefficients(nil, steps)
	// The zero is divided out: 1 - exp(-theta)/z has it too, and no coefficients above 0. The difference of the
	// principal values is taken, for the quotient's own argument may leave the principal branch.
	for i, c := range phi {
		if i == 0 && theta == 0 {
			phi[0] = cmplx.Log(complex(-x.drift(quota), 0))
			continue
		}
		z := cmplx.Rect(math.Exp(theta), -2*math.Pi*float64(i)/float64(n))
		phi[i] = cmplx.Log(1-c) - cmplx.Log(1-1/z)
	}
	a := fft.Sequence(steps, phi)
	sum := 0.0
	for k := range a {
		if k == 0 || k >= n/2 {
			a[k] = 0
			continue
		}
		a[k] = max(0, -a[k]/float64(n)*math.Exp(-theta*float64(k)))
		sum += a[k]
	}
	a[0] = -sum
	phi = fft.Coefficients(phi, a)
	for i, c := range phi {
		phi[i] = cmplx.Exp(c)
	}
	law := fft.Sequence(a, phi)[:n/2]
	for k := range law {
		law[k] = max(0, law[k]/float64(n))
	}
	return law
}

// widen fills in the masses of the steps times exp(theta step), with their mean below 1, and returns theta: at most
// what makes a factor of 1e6 of the half length, and not beyond the place where the mean is least for a normal law.
func widen(x lattice, quota int, steps []float64) (theta float64) {
	n, last := len(steps), len(x.mass)-1
	drift, square := 0.0, 0.0
	add := func(k int, m float64) {
		d := float64(k - quota)
		drift += m * d
		square += m * d * d
	}
	for k, m := range x.mass {
		add(k, m)
	}
	add(last, x.over)
	theta = min(-drift/(square-drift*drift), math.Log(1e6)/float64(n/2))
	least := math.Log(10) / float64(n/2)
	for {
		mean := 0.0
		clear(steps)
		put := func(k int, m float64) {
			m *= math.Exp(theta * float64(k-quota))
			steps[(k-quota+n)%n] += m
			mean += m
		}
		for k, m := range x.mass {
			put(k, m)
		}
		put(last, x.over)
		if upper := sumOf(steps[last/2 : n/2]); mean < 1 && upper < 1e-6 || theta == 0 {
			return theta
		}
		if theta /= 2; theta < least {
			theta = 0
		}
	}
}

func sumOf(list []float64) float64 {
	s := 0.0
	for _, v := range list {
		s += v
	}
	return s
}

// drift is the mean of a step.
func (p lattice) drift(quota int) float64 {
	last := len(p.mass) - 1
	sum := p.over * float64(last-quota)
	for k, m := range p.mass {
		sum += m * float64(k-quota)
	}
	return sum
}
