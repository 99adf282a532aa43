package loadline

import (
	"math"
)

// The bursts of a node coincide in a period if its containers admit more than the capacity. The probability of that,
// J = P(sum of A > capacity), needs no chance and no coupling: the containers' admissions are independent of each other
// whatever the contention. It is a lower bound of the probability of a broken period, which may also have work left
// over from before; below a tenth of a percent the two are within some percent of each other (docs/MODEL.md).

// Coincidence is J under a kind of replay. Blocks and copulas have no such law: see Simulate.
func Coincidence(n Node, replay Replay) (float64, error) {
	if err := n.Check(); err != nil {
		return 0, err
	}
	if replay != Offsets && replay != IID {
		return 0, refuse("Offsets or IID", "coincidence of replay %v", replay)
	}
	if n.within() {
		return 0, nil
	}
	points := n.grid(finePoints)
	fine, err := n.coincidence(points, replay)
	if err != nil || n.aligned(points) {
		return fine, err
	}
	coarse, err := n.coincidence(points/2, replay)
	if err != nil {
		return 0, err
	}
	return min(1, max(fine/2, fine+(fine-coarse)/3)), nil
}

// Risk is J on a coarser lattice, for the agent: within a percent of Coincidence, in a fraction of its time.
func Risk(n Node) (float64, error) {
	if err := n.Check(); err != nil {
		return 0, err
	}
	if n.within() {
		return 0, nil
	}
	return n.coincidence(n.grid(roughPoints), Offsets)
}

const (
	finePoints  = 2048 // of the capacity, or more
	roughPoints = 512

	discretePoints = 1 << 14
)

// within says that the containers cannot admit more than the capacity, whatever they demand.
func (n Node) within() bool {
	sum := 0.0
	for _, c := range n.Containers {
		sum += c.Quota + c.Burst
	}
	return sum <= n.Capacity*(1+tie)
}

// discrete says that all demands are on lattices of their own: there is no density, and nothing to extrapolate.
func (n Node) discrete() bool {
	for _, c := range n.Containers {
		if c.Demand.step() == 0 {
			return false
		}
	}
	return true
}

// grid is an even number of points of the capacity, half of which have as many quotas and jobs on them as possible: the
// extrapolation from the half needs both lattices to be alike.
func (n Node) grid(least int) int {
	least += least % 2
	best, off, most := least, math.Inf(1), least*3/2
	if n.discrete() {
		most = discretePoints // atoms have to be on points
	}
	for points := least; points < most && off > 1e-6; points += 2 {
		sum := 0.0
		for _, c := range n.Containers {
			if c.limited() {
				sum += beside(c.Quota / n.Capacity * float64(points/2))
			}
			sum += beside(c.Demand.step() / n.Capacity * float64(points/2))
		}
		if sum < off-1e-6 {
			best, off = points, sum
		}
	}
	return best
}

// aligned says that all quotas and jobs are on points: ties are ties then.
func (n Node) aligned(points int) bool {
	for _, c := range n.Containers {
		scale := float64(points) / n.Capacity
		if c.limited() && beside(c.Quota*scale) > 1e-6 || beside(c.Demand.step()*scale) > 1e-6 {
			return false
		}
	}
	return n.discrete()
}

// beside is how far a place is from the next point.
func beside(at float64) float64 { return math.Abs(at - math.Round(at)) }

// coincidence is J on a lattice on which the capacity has some points.
func (n Node) coincidence(points int, replay Replay) (float64, error) {
	sum, err := n.admitted(points, replay, newConvolver(points+1), lattice{})
	return n.above(sum, points), err
}

// admitted is the law of what the containers admit together, and of what a sum holds that they are added to.
func (n Node) admitted(points int, replay Replay, add *convolver, sum lattice) (lattice, error) {
	step := n.Capacity / float64(points)
	list := n.clocks(step, points+1)
	if sum.mass != nil {
		list = append(list, sum)
	}
	first, count := n.alike()
	for k, i := range first {
		if n.Containers[i].Clock != 0 {
			continue
		}
		p, err := admittedOn(n.Containers[i], step, points+1, replay)
		if err != nil {
			return lattice{}, err
		}
		list = append(list, add.times(p, count[k]))
	}
	return add.all(list), nil
}

// above is the mass above the capacity. At exactly the capacity a density lies half above it; a tie, in which all use
// up their quotas, does not.
func (n Node) above(sum lattice, points int) float64 {
	if sum.mass == nil || n.aligned(points) {
		return sum.over
	}
	atom := 0.0
	if math.Abs(n.Committed()-n.Capacity) <= tie*n.Capacity {
		atom = sum.atom
	}
	return sum.over + max(0, sum.mass[points]-atom)/2
}

// admittedOn is the law of one container's A on the node's lattice.
func admittedOn(c Container, step float64, n int, replay Replay) (lattice, error) {
	if r, ok := c.Demand.(*Recording); ok && replay == Offsets {
		return gather(admittedIn(r, c.Quota, c.Burst), c.Quota, step, n), nil
	}
	if !c.limited() {
		return newLattice(c.Demand, step, n), nil
	}
	if l, ok := c.Demand.(*classes); ok {
		return l.admitted(c.Quota, c.Burst).regrid(step, n), nil
	}
	k := max(leastPoints, int(math.Round(c.Quota/step)))
	own := c.Quota / float64(k)
	p, err := admittedBy(c, k, int(math.Ceil(float64(n)*step/own))+1)
	if err != nil {
		return lattice{}, err
	}
	return p.regrid(step, n), nil
}

// gather is the law of admissions that were seen.
func gather(list []float64, quota, step float64, n int) lattice {
	masses := make([]float64, len(list))
	atom := 0.0
	for i, a := range list {
		masses[i] = 1 / float64(len(list))
		if math.Abs(a-quota) <= tie*quota {
			atom += masses[i]
		}
	}
	p := spread(list, masses, step, n)
	p.atom = atom
	return p
}

// clocks are the laws of what the containers of each clock admit together.
func (n Node) clocks(step float64, points int) []lattice {
	var order []int
	sums, quotas := map[int][]float64{}, map[int]float64{}
	for _, c := range n.Containers {
		if c.Clock == 0 {
			continue
		}
		r := c.Demand.(*Recording)
		if sums[c.Clock] == nil {
			order = append(order, c.Clock)
			sums[c.Clock] = make([]float64, r.Len())
		}
		for i, a := range admittedIn(r, c.Quota, c.Burst) {
			sums[c.Clock][i] += a
		}
		quotas[c.Clock] += c.Quota
	}
	var list []lattice
	for _, k := range order {
		list = append(list, gather(sums[k], quotas[k], step, points))
	}
	return list
}
