package loadline

import (
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"
)

// stationary is the law of V in V' = max(0, V + x - quota), with x on a lattice and the quota some points of it, by the
// Wiener-Hopf factorisation (Spitzer 1956; by FFT: Gruebel, Algorithm AS 265, Applied Statistics 40, 1991). With z the
// unit circle and phi the transform of x - quota, the Fourier coefficients a(k), k > 0, of -log((1-phi(z))/(1-1/z)) are
// the sums over n of P(n steps lead to k)/n, and V has the transform exp(sum of a(k) (z^k - 1)).
func stationary(x lattice, quota int) []float64 {
	n := powerOfTwo(2 * len(x.mass))
	fft := fourier.NewFFT(n)
	steps := make([]float64, n)
	drift := 0.0
	for k, m := range x.mass {
		steps[(k-quota+n)%n] += m
		drift += m * float64(k-quota)
	}
	last := len(x.mass) - 1
	steps[(last-quota+n)%n] += x.over
	drift += x.over * float64(last-quota)

	phi := fft.Coefficients(nil, steps)
	phi[0] = cmplx.Log(complex(-drift, 0))
	for i := 1; i < len(phi); i++ {
		z := cmplx.Rect(1, -tau*float64(i)/float64(n))
		// The difference of the two principal values: the quotient's own argument may leave the principal branch.
		phi[i] = cmplx.Log(1-phi[i]) - cmplx.Log(1-1/z)
	}
	a := fft.Sequence(nil, phi)
	a[0] = 0
	sum := 0.0
	for k := range a {
		if k == 0 || k >= n/2 {
			a[k] = 0
			continue
		}
		a[k] /= -float64(n)
		sum += a[k]
	}
	a[0] = -sum
	phi = fft.Coefficients(phi, a)
	for i := range phi {
		phi[i] = cmplx.Exp(phi[i])
	}
	law := fft.Sequence(a, phi)[:n/2]
	for k := range law {
		law[k] = max(0, law[k]/float64(n))
	}
	return law
}

const tau = 6.283185307179586476925286766559
