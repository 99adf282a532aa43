package reserve

import (
	"cmp"
	"slices"
)

// maxSteps bounds all searches for the fewest moves in one allocation together: the agent's other work waits for them.
const maxSteps = 50_000

// gap is how many bins have to be emptied: so many anywhere, and so many that the want where may use.
type gap struct {
	anywhere, usable int
	where            Want
}

// repacking is the search for a packing into fewer bins, or of one more want.
type repacking struct {
	bins  []*bin
	room  []float64
	count []int // items in each bin
	gap   gap
	steps *int // of all searches of the allocation
	moves []move
}

// move moves an item from a bin to another; from is -1 for a new item.
type move struct {
	item     Want
	from, to int
}

// repack moves the fewest items so that all items, including the new ones, fit into as many bins less as the gap says.
// It frees the CPUs of the emptied bins. False: nothing was changed.
func (a *allocator) repack(g gap, fresh []Want) bool {
	limit := len(a.bins) - max(g.anywhere, g.usable)
	if !a.equal || limit < 0 || len(a.bins) == 0 || limit == len(a.bins) && len(fresh) == 0 {
		return false
	}
	r := &repacking{bins: a.bins, gap: g, steps: &a.steps}
	sum, items := 0.0, []move{}
	for i, b := range a.bins {
		r.room, r.count = append(r.room, b.room()), append(r.count, len(b.items))
		for _, w := range b.items {
			items = append(items, move{w, i, -1})
			sum += w.CPUs
		}
	}
	for _, w := range fresh {
		r.moves = append(r.moves, move{w, -1, -1})
		sum += w.CPUs
	}
	if sum > float64(limit)+epsilon {
		return false
	}
	for n := 1; n <= len(items) && a.steps < maxSteps; n++ {
		if r.try(items, n) {
			a.carryOut(r.moves)
			return true
		}
	}
	return false
}

// step says whether the search may go on.
func (r *repacking) step() bool {
	*r.steps++
	return *r.steps <= maxSteps
}

// try tries every choice of n items, and every way to put them elsewhere.
func (r *repacking) try(items []move, n int) bool {
	if !r.step() {
		return false
	}
	if n == 0 {
		order := slices.Clone(r.moves)
		slices.SortStableFunc(order, func(x, y move) int { return cmp.Compare(y.item.CPUs, x.item.CPUs) })
		if !r.put(order, 0) {
			return false
		}
		r.moves = order
		return true
	}
	for i := 0; i+n <= len(items); i++ {
		m := items[i]
		r.room[m.from] += m.item.CPUs
		r.count[m.from]--
		r.moves = append(r.moves, m)
		if r.try(items[i+1:], n-1) {
			return true
		}
		r.moves = r.moves[:len(r.moves)-1]
		r.count[m.from]++
		r.room[m.from] -= m.item.CPUs
	}
	return false
}

// put finds bins for the moves from the i-th on.
func (r *repacking) put(moves []move, i int) bool {
	if !r.step() {
		return false
	}
	if i == len(moves) {
		return r.closed()
	}
	m := &moves[i]
	for to, b := range r.bins {
		if to == m.from || r.room[to] < m.item.CPUs-epsilon || !m.item.mayUse(b) {
			continue
		}
		m.to = to
		r.room[to] -= m.item.CPUs
		r.count[to]++
		if r.put(moves, i+1) {
			return true
		}
		r.count[to]--
		r.room[to] += m.item.CPUs
	}
	return false
}

// closed says whether enough bins are empty.
func (r *repacking) closed() bool {
	anywhere, usable := 0, 0
	for i, n := range r.count {
		if n > 0 {
			continue
		}
		anywhere++
		if r.gap.where.mayUse(r.bins[i]) {
			usable++
		}
	}
	return anywhere >= r.gap.anywhere && usable >= r.gap.usable
}

// carryOut moves the items, and frees bins that are empty.
func (a *allocator) carryOut(moves []move) {
	for _, m := range moves {
		if m.from >= 0 {
			b := a.bins[m.from]
			b.items = slices.DeleteFunc(b.items, func(w Want) bool { return w.Name == m.item.Name })
		}
		a.bins[m.to].add(m.item)
	}
	a.bins = slices.DeleteFunc(a.bins, func(b *bin) bool {
		if len(b.items) > 0 {
			return false
		}
		for _, c := range b.cpus {
			a.free[c] = true
		}
		a.used -= b.size
		return true
	})
}
