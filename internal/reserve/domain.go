package reserve

import (
	"cmp"
	"math"
	"slices"

	"plimsoll/internal/cpu"
)

// domain is a part of the machine: the whole, a socket, a NUMA node in it, a cache in that, a core or a thread.
type domain struct {
	id       int // in the order of the tree
	cpus     cpu.Set
	nodes    []int
	children []*domain
	parent   *domain
	depth    int
}

// levels is the depth of the tree of domains, which is that of a thread.
const levels = 5

// machine is the tree of domains. Each level is within the one above: a cache that spans two nodes counts in each of
// them.
type machine struct {
	*domain
	threads map[int]*domain // by CPU
	size    int             // domains
}

func (m *machine) cut(parent *domain, places []cpu.Place) *domain {
	d := &domain{id: m.size, parent: parent}
	m.size++
	if parent != nil {
		d.depth = parent.depth + 1
	}
	var keys []int
	parts := map[int][]cpu.Place{}
	for _, p := range places {
		d.cpus = append(d.cpus, p.CPU)
		if !slices.Contains(d.nodes, p.Node) {
			d.nodes = append(d.nodes, p.Node)
		}
		key := [levels]int{p.Socket, p.Node, p.Cache, p.Core, p.CPU}[min(d.depth, levels-1)]
		if parts[key] == nil {
			keys = append(keys, key)
		}
		parts[key] = append(parts[key], p)
	}
	slices.Sort(d.cpus)
	if d.depth == levels {
		m.threads[d.cpus[0]] = d
		return d
	}
	slices.Sort(keys)
	for _, key := range keys {
		d.children = append(d.children, m.cut(d, parts[key]))
	}
	return d
}

// chooser picks CPUs for one want from the CPUs that are left.
type chooser struct {
	a    *allocator
	left []float64 // capacity that is left in each domain
}

func (a *allocator) chooser(cpus cpu.Set) *chooser {
	c := &chooser{a, make([]float64, a.machine.size)}
	for _, n := range cpus {
		c.book(n, a.cap[n])
	}
	return c
}

func (c *chooser) book(n int, capacity float64) {
	for d := c.a.machine.threads[n]; d != nil; d = d.parent {
		c.left[d.id] += capacity
	}
}

// choose finds CPUs of capacity need for a want, near the CPUs that it keeps; nil: there are not enough. Where CPUs
// have unequal capacities there may be a surplus, which it gives back, the slowest CPUs first.
func (a *allocator) choose(w Want, need float64) cpu.Set {
	set := a.chosen(w, need)
	for a.spare(set, need) {
		set = set.Minus(cpu.Set{a.slowest(set)})
	}
	return set
}

// spare says whether a set has one CPU more than needed.
func (a *allocator) spare(set cpu.Set, need float64) bool {
	return len(set) > 1 && a.size(set)-a.cap[a.slowest(set)] >= need-epsilon
}

func (a *allocator) slowest(set cpu.Set) int {
	return slices.MinFunc(set, func(x, y int) int { return cmp.Compare(a.cap[x], a.cap[y]) })
}

func (a *allocator) chosen(w Want, need float64) cpu.Set {
	available := a.available(w)
	kept := w.Has.And(available)
	size := a.size(kept)
	switch {
	case a.size(available) < need-epsilon:
		return nil
	case size >= need-epsilon: // it needs less than it has
		return a.chooser(kept).take(a.machine.domain, need)
	case len(kept) == 0:
		return a.chooser(available).take(a.machine.domain, need)
	}
	c := a.chooser(available.Minus(kept))
	return kept.Union(c.take(c.around(kept, need-size), need-size))
}

// around is the smallest domain that contains these CPUs and has capacity need left.
func (c *chooser) around(cpus cpu.Set, need float64) *domain {
	d := c.a.machine.domain
	for {
		inner := slices.IndexFunc(d.children, func(child *domain) bool {
			return cpus.Within(child.cpus) && c.left[child.id] >= need-epsilon
		})
		if inner < 0 {
			return d
		}
		d = d.children[inner]
	}
}

// take takes CPUs of capacity need from a domain, or all that it has left: from its smallest part that has enough, and
// within that part, where no child has enough alone, whole children first.
func (c *chooser) take(d *domain, need float64) cpu.Set {
	d = c.smallest(d, need)
	if len(d.children) == 0 || c.left[d.id] <= need+epsilon {
		return c.all(d)
	}
	var taken cpu.Set
	for need > epsilon {
		got := c.take(c.next(d, taken, need), need)
		taken, need = taken.Union(got), need-c.a.size(got)
	}
	return taken
}

// all takes all CPUs that a domain has left.
func (c *chooser) all(d *domain) cpu.Set {
	var set cpu.Set
	for _, n := range d.cpus {
		if c.left[c.a.machine.threads[n].id] > epsilon {
			set = append(set, n)
			c.book(n, -c.a.cap[n])
		}
	}
	return set
}

// smallest is the smallest domain in d that has capacity need left; of equal ones the one with the least left (fuller).
func (c *chooser) smallest(d *domain, need float64) *domain {
	best := d
	var visit func(*domain)
	visit = func(at *domain) {
		if c.left[at.id] < need-epsilon {
			return
		}
		if at.depth > best.depth || at.depth == best.depth && c.fuller(at, best, need) {
			best = at
		}
		for _, child := range at.children {
			visit(child)
		}
	}
	visit(d)
	return best
}

// fuller says whether a is preferred to b, a domain of the same level. Of two that are equally full, the one with more
// whole cores is better for more than one CPU.
func (c *chooser) fuller(a, b *domain, need float64) bool {
	for a != b {
		switch x, y := c.left[a.id], c.left[b.id]; {
		case math.Abs(x-y) > epsilon:
			return x < y
		case need > 1+epsilon && c.cores(a) != c.cores(b):
			return c.cores(a) > c.cores(b)
		}
		a, b = a.parent, b.parent
	}
	return false
}

// cores counts the cores in a domain with all threads left.
func (c *chooser) cores(d *domain) int {
	switch {
	case d.depth < levels-1:
		sum := 0
		for _, child := range d.children {
			sum += c.cores(child)
		}
		return sum
	case d.depth == levels-1 && c.left[d.id] >= c.a.size(d.cpus)-epsilon:
		return 1
	}
	return 0
}

// next is the child of a domain to continue with: the nearest to the CPUs taken so far; of those the fullest with
// enough capacity left, or else the emptiest.
func (c *chooser) next(d *domain, taken cpu.Set, need float64) *domain {
	var best *domain
	for _, part := range d.children {
		if c.left[part.id] > epsilon && (best == nil || c.better(part, best, taken, need)) {
			best = part
		}
	}
	return best
}

func (c *chooser) better(a, b *domain, taken cpu.Set, need float64) bool {
	if x, y := c.distance(a, taken), c.distance(b, taken); x != y {
		return x < y
	}
	x, y := c.left[a.id], c.left[b.id]
	enoughX, enoughY := x >= need-epsilon, y >= need-epsilon
	switch {
	case enoughX != enoughY:
		return enoughX
	case enoughX:
		return x < y-epsilon
	}
	return x > y+epsilon
}

// distance is the least distance between the NUMA nodes of a domain and those of cpus.
func (c *chooser) distance(d *domain, cpus cpu.Set) int {
	least := math.MaxInt
	for _, n := range cpus {
		row := c.a.Topology.Distance[c.a.machine.threads[n].nodes[0]]
		for _, node := range d.nodes {
			if node < len(row) {
				least = min(least, row[node])
			}
		}
	}
	return least
}
