package loadline

import "fmt"

// Sizing is what the guard of the node's load line decides.
type Sizing struct {
	Bursts []float64 // one a container
	Share  float64   // of the bursts asked for
	Asked  float64   // the risk with the bursts asked for
	Risk   float64   // the risk with these
	Met    bool      // the risk is within the bound; if not, it is too high even without any burst
}

// Size makes the bursts of a node as large a share of those asked for (each container's Burst) as keeps its risk within
// a bound: 0.001 keeps P(WCET = 1) at 99.9 %. The risk is J on a coarse lattice.
func Size(n Node, bound float64) (Sizing, error) {
	if !(bound > 0 && bound < 1) {
		return Sizing{}, refuse("a risk such as 0.001", "bound %v", bound)
	}
	asked, err := Risk(n)
	if err != nil {
		return Sizing{}, err
	}
	if asked <= bound {
		return n.sizing(1, asked, asked, bound), nil
	}
	lowest, err := Risk(n.scaled(0))
	if err != nil {
		return Sizing{}, err
	}
	share, risk := 0.0, lowest
	for step := 0.5; step > 1.0/256 && lowest <= bound; step /= 2 {
		r, err := Risk(n.scaled(share + step))
		if err != nil {
			return Sizing{}, fmt.Errorf("share %v of the bursts: %w", share+step, err)
		}
		if r <= bound {
			share, risk = share+step, r
		}
	}
	return n.sizing(share, asked, risk, bound), nil
}

func (n Node) sizing(share, asked, risk, bound float64) Sizing {
	s := Sizing{Share: share, Asked: asked, Risk: risk, Met: risk <= bound}
	for _, c := range n.scaled(share).Containers {
		s.Bursts = append(s.Bursts, c.Burst)
	}
	return s
}

// scaled is the node with a share of its bursts.
func (n Node) scaled(share float64) Node {
	list := make([]Container, len(n.Containers))
	for i, c := range n.Containers {
		list[i] = c
		if share == 0 {
			list[i].Burst = 0 // also of a burst without bound
		} else {
			list[i].Burst = share * c.Burst
		}
	}
	return Node{n.Capacity, list}
}
