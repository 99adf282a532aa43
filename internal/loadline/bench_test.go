package loadline

import (
	"math"
	"testing"
)

// node20 is the case of the published table that the speed is told for.
func node20(b *testing.B) Node {
	law, err := Exponential(0.7 / 20)
	if err != nil {
		b.Fatal(err)
	}
	n, err := Homogeneous(20, 1, 1, law)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// A container and period of the Lindley form, on one core.
func BenchmarkLindley(b *testing.B) {
	n := node20(b)
	p := prepare(n, Options{Resamples: -1})
	p.warm, p.periods = 0, b.N/len(n.Containers)+1
	b.ResetTimer()
	o := p.replica(0)
	b.ReportMetric(float64(o.missed)/float64(o.periods)*100, "missed-%")
}

// A container and period of the model that shares out, on one core.
func BenchmarkFull(b *testing.B) {
	n := node20(b)
	p := prepare(n, Options{Resamples: -1, Rule: Published})
	p.warm, p.periods = 0, b.N/len(n.Containers)+1
	b.ResetTimer()
	o := p.replica(0)
	b.ReportMetric(float64(o.missed)/float64(o.periods)*100, "missed-%")
}

// The exact J of 20 containers.
func BenchmarkCoincidence(b *testing.B) {
	n := node20(b)
	for b.Loop() {
		if _, err := Coincidence(n, Offsets); err != nil {
			b.Fatal(err)
		}
	}
}

// The exact law of one container, for every burst.
func BenchmarkQueue(b *testing.B) {
	law, err := Exponential(0.7)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		q, err := NewQueue(law, 1)
		if err != nil || math.IsNaN(q.Throttled(1)) {
			b.Fatal(err)
		}
	}
}
