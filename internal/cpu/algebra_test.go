package cpu

import (
	"math/rand/v2"
	"testing"
)

// TestAlgebra holds the operations against membership, CPU by CPU.
func TestAlgebra(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	draw := func() (s Set) {
		for c := range 12 {
			if rnd.IntN(2) == 0 {
				s = append(s, c)
			}
		}
		return s
	}
	for range 500 {
		a, b := draw(), draw()
		within, equal := true, true
		for c := range 12 {
			inA, inB := member(a, c), member(b, c)
			within, equal = within && (!inA || inB), equal && inA == inB
			for _, f := range []struct {
				name      string
				got, want bool
			}{
				{"contains", a.Contains(c), inA},
				{"union", a.Union(b).Contains(c), inA || inB},
				{"minus", a.Minus(b).Contains(c), inA && !inB},
				{"and", a.And(b).Contains(c), inA && inB},
			} {
				if f.got != f.want {
					t.Fatalf("%s: %v, %v: CPU %d: %v", f.name, a, b, c, f.got)
				}
			}
		}
		if a.Within(b) != within || a.Equal(b) != equal {
			t.Fatalf("%v, %v: within %v, equal %v", a, b, a.Within(b), a.Equal(b))
		}
	}
}

func member(s Set, c int) bool {
	for _, x := range s {
		if x == c {
			return true
		}
	}
	return false
}
