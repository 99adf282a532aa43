package loadline

import "fmt"

// Sizing is what the guard of the node's load line decides.
type Sizing struct {
	Share float64 // of the requested bursts
	Asked float64 // the risk with all of them
	Risk  float64 // the risk with the share
	Met   bool    // the risk is within the bound; if not, it is too high even without any
}

// Size finds the largest share of the requested bursts that keeps the node's risk within a bound: 0.001 keeps
// P(WCET = 1) at 99.9 %. node is the node with a share; more of it never lowers the risk. The risk is J on a coarse
// lattice.
func Size(node func(share float64) Node, bound float64) (Sizing, error) {
	if !(bound > 0 && bound < 1) {
		return Sizing{}, refuse("a risk such as 0.001", "bound %v", bound)
	}
	asked, err := Risk(node(1))
	if err != nil {
		return Sizing{}, err
	}
	if asked <= bound {
		return Sizing{Share: 1, Asked: asked, Risk: asked, Met: true}, nil
	}
	lowest, err := Risk(node(0))
	if err != nil {
		return Sizing{}, err
	}
	share, risk := 0.0, lowest
	for step := 0.5; step > 1.0/256 && lowest <= bound; step /= 2 {
		r, err := Risk(node(share + step))
		if err != nil {
			return Sizing{}, fmt.Errorf("share %v of the bursts: %w", share+step, err)
		}
		if r <= bound {
			share, risk = share+step, r
		}
	}
	return Sizing{Share: share, Asked: asked, Risk: risk, Met: risk <= bound}, nil
}
