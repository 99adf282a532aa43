// Package reserve decides which containers get exclusive CPUs, which CPUs these are, and the cpuset of every control
// group. It is pure: the machine and the values of its files go in, sets of CPUs and intents come out.
//
// # Problem
//
// A container that reserves CPU time does not get it, because run queues are shared: the load balancer balances load,
// not reservations, and a weight is split over the CPUs of a group's threads (Mind the Gap, SoCC '21: forced run-queue
// sharing). A container with run queues of its own gets all of their CPU time.
//
// # Approach
//
// As in rKube, a container that requests it gets n = ceil(request) exclusive CPUs by cpuset.cpus, and all other groups
// are confined to the remaining CPUs, the share pool. Beyond rKube:
//
//   - Requests below one CPU are packed, several on one CPU as far as their sum fits. They share its run queue only
//     with each other, in proportion to their weights. The fraction of a request above one CPU is not packed: the
//     container's weight is spread over its CPUs, and would not secure that fraction on a shared one.
//   - Placement is best fit: the smallest domain of the machine (thread, core, last cache, NUMA node, socket) with
//     enough CPUs left, of those the fullest, so that large domains stay whole for large requests. Where no domain has
//     enough, whole domains are taken first, and then the nearest ones.
//   - Containers keep their CPUs. Only where a new container would not fit otherwise are packed containers moved, as
//     few as possible.
//   - The share pool never shrinks below MinShared. A new container is admitted only if the pool can still serve the
//     requests of the containers in it. A container that does not fit is refused, with the arithmetic, and stays in the
//     pool.
//   - A node may request CPUs for all its containers (strategy.Reserve.All), as the paper does. Such a container
//     without exclusive CPUs counts in the pool, and its request is reserved there: rounding up must not leave others
//     less than they requested.
//   - Where cores are unequal, CPUs count by their capacity.
//
// # Terminology
//
// A want is the request of one container. A bin is the CPU that packed containers share. Kept CPUs are never exclusive:
// those of the system, and those to which another program has pinned a group. Isolated CPUs are those of isolcpus= and
// of partitions of other programs: the load balancer does not use them, so they count neither as exclusive nor as
// shared CPUs, and are left as they are.
//
// # Known limits
//
// Packed containers are moved only on machines with equal CPUs, and only among the CPUs of bins. The search for the
// fewest moves ends after maxSteps. Containers with whole CPUs are never moved, even where a want is bound to CPUs
// (Within) that they have.
package reserve

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/cpu"
)

// Machine is the CPUs to allocate from.
type Machine struct {
	Topology  cpu.Topology
	Kept      cpu.Set // never exclusive; part of the share pool
	Isolated  cpu.Set // neither exclusive nor part of the share pool
	MinShared float64 // CPUs that the share pool has at least
	Requested float64 // CPUs that containers in the share pool request; limits the admission of new wants
}

// Want is the request of one container for exclusive CPUs.
type Want struct {
	Name   string
	CPUs   float64 // its request, in CPUs of full capacity
	Within cpu.Set // CPUs that it may have; nil: any
	Has    cpu.Set // the CPUs that it has now; nil: it is new
	// ByNode says that the node's rule requests the CPUs, not the container (reserve.exclusive). While it has none, the
	// share pool must be able to serve its request.
	ByNode bool
}

// Allocation is the CPUs of each want.
type Allocation struct {
	Sets    map[string]cpu.Set // by name
	Packed  map[string]bool    // by name: shares its CPU with others that reserve
	Shared  cpu.Set
	Refused []Refusal
}

// Refusal says which container gets no exclusive CPUs, and why.
type Refusal struct{ Name, Why string }

// epsilon is the rounding error of sums of requests and capacities.
const epsilon = 1e-6

// Allocate allocates CPUs to the wants: first to those that have some, then to new ones, in the order of the list.
func Allocate(m Machine, wants []Want) Allocation {
	a := newAllocator(m)
	var having, changed, fresh []Want
	for _, w := range wants {
		switch {
		case !(w.CPUs > 0) || math.IsInf(w.CPUs, 1):
			a.refuse(w, "it has neither a request nor a limit")
		case len(w.Has) == 0:
			fresh = append(fresh, w)
		default:
			having = append(having, w)
		}
	}
	// Packed wants first: if one of them has grown to a whole CPU, it moves, and the others in its bin stay.
	for _, packed := range []bool{true, false} {
		for _, w := range having {
			if w.packed() == packed && !a.keep(w) {
				changed = append(changed, w)
			}
		}
	}
	rest := append(changed, fresh...)
	for _, w := range rest {
		a.Requested += w.inPool()
	}
	for _, w := range rest {
		a.place(w)
	}
	return a.allocation()
}

// inPool is what a want reserves of the share pool while it has no exclusive CPUs.
func (w Want) inPool() float64 {
	if w.ByNode {
		return w.CPUs
	}
	return 0
}

// allocator is the state of an allocation.
type allocator struct {
	Machine
	machine *machine
	cap     map[int]float64
	total   float64 // capacity of all CPUs that are not isolated
	free    map[int]bool
	used    float64 // capacity that is exclusive
	sets    map[string]cpu.Set
	bins    []*bin
	refused []Refusal
	equal   bool // all CPUs have the same capacity
	steps   int  // of searches for the fewest moves
}

// bin is a set of CPUs that several containers share; a single CPU where all CPUs are equal.
type bin struct {
	cpus  cpu.Set
	size  float64
	items []Want
}

func (b *bin) room() float64 {
	room := b.size
	for _, w := range b.items {
		room -= w.CPUs
	}
	return room
}

func newAllocator(m Machine) *allocator {
	a := &allocator{Machine: m, machine: &machine{threads: map[int]*domain{}}, equal: true,
		cap: map[int]float64{}, free: map[int]bool{}, sets: map[string]cpu.Set{}}
	a.machine.domain = a.machine.cut(nil, m.Topology.Places)
	for _, p := range m.Topology.Places {
		isolated := m.Isolated.Contains(p.CPU)
		a.cap[p.CPU] = p.Capacity
		if !isolated {
			a.total += p.Capacity
		}
		a.free[p.CPU] = !isolated && !m.Kept.Contains(p.CPU)
		a.equal = a.equal && p.Capacity == 1
	}
	return a
}

// packed says whether a want shares a CPU with others.
func (w Want) packed() bool { return w.CPUs < 1-epsilon }

// need is how many CPUs a want takes; one that is not packed takes whole ones.
func (w Want) need() float64 {
	if w.packed() {
		return w.CPUs
	}
	return math.Ceil(w.CPUs - epsilon)
}

func (a *allocator) size(cpus cpu.Set) float64 {
	sum := 0.0
	for _, c := range cpus {
		sum += a.cap[c]
	}
	return sum
}

// allowed says whether a want may have a CPU.
func (w Want) allowed(c int) bool { return w.Within == nil || w.Within.Contains(c) }

// available lists the free CPUs that a want may have.
func (a *allocator) available(w Want) cpu.Set {
	var set cpu.Set
	for _, p := range a.Topology.Places {
		if a.free[p.CPU] && w.allowed(p.CPU) {
			set = append(set, p.CPU)
		}
	}
	slices.Sort(set)
	return set
}

// keep lets a want keep its CPUs, if they still match its request.
func (a *allocator) keep(w Want) bool {
	for _, b := range a.bins {
		if w.packed() && b.cpus.Equal(w.Has) {
			return b.room() >= w.CPUs-epsilon && b.add(w)
		}
	}
	size := a.size(w.Has)
	exact := size >= w.need()-epsilon && !a.spare(w.Has, w.need())
	return exact && w.Has.Within(a.available(w)) && a.fits(size, a.MinShared) && a.give(w, w.Has)
}

// fits says whether this capacity may be taken from the share pool.
func (a *allocator) fits(size, least float64) bool { return a.total-a.used-size >= least-epsilon }

// give gives CPUs that are free to a want: to itself, or as a new bin.
func (a *allocator) give(w Want, cpus cpu.Set) bool {
	if w.packed() {
		a.bins = append(a.bins, &bin{cpus: cpus, size: a.size(cpus), items: []Want{w}})
	} else {
		a.sets[w.Name] = cpus
	}
	for _, c := range cpus {
		a.free[c] = false
	}
	a.used += a.size(cpus)
	return true
}

func (b *bin) add(w Want) bool {
	b.items = append(b.items, w)
	return true
}

// place finds CPUs for a want that has none, or whose CPUs no longer match; a new want must leave enough CPUs for the
// requests in the share pool.
func (a *allocator) place(w Want) {
	a.Requested -= w.inPool()
	least := a.MinShared
	if len(w.Has) == 0 {
		least = max(least, a.Requested)
	}
	if !a.find(w, least) {
		a.Requested += w.inPool()
	}
}

// find places a want on exclusive CPUs, or a packed one in a bin or on a new CPU; else by moving packed ones.
func (a *allocator) find(w Want, least float64) bool {
	free := func() bool {
		cpus := a.choose(w, w.need())
		return cpus != nil && a.fits(a.size(cpus), least) && a.give(w, cpus)
	}
	var found bool
	if w.packed() {
		found = a.join(w) || free() || a.repack(gap{}, []Want{w})
	} else {
		found = free() || a.repack(a.gap(w, least), nil) && free()
	}
	if !found {
		a.refuse(w, a.arithmetic(w, least))
	}
	return found
}

// gap is how many CPUs packed containers would have to give up for a want.
func (a *allocator) gap(w Want, least float64) gap {
	missing := func(have float64) int { return max(0, int(math.Ceil(w.need()-have-epsilon))) }
	return gap{anywhere: missing(a.total - a.used - least), where: w, usable: missing(a.size(a.available(w)))}
}

// join places a packed want in the fullest bin with room for it.
func (a *allocator) join(w Want) bool {
	var best *bin
	for _, b := range a.bins {
		if b.room() >= w.CPUs-epsilon && w.mayUse(b) && (best == nil || b.room() < best.room()) {
			best = b
		}
	}
	return best != nil && best.add(w)
}

func (w Want) mayUse(b *bin) bool { return w.Within == nil || b.cpus.Within(w.Within) }

func (a *allocator) refuse(w Want, why string) {
	a.refused = append(a.refused, Refusal{Name: w.Name, Why: why})
}

// arithmetic says why a want does not fit.
func (a *allocator) arithmetic(w Want, least float64) string {
	all := a.Topology.Set()
	text := fmt.Sprintf("it needs %s (request %s); of %s online, %s exclusive already",
		cpus(w.need()), amount(w.CPUs), cpus(a.size(all)), verb(a.used))
	if isolated := a.Isolated.And(all); len(isolated) > 0 {
		text += fmt.Sprintf(", %s isolated or in another's partition (%s)", verb(a.size(isolated)), isolated)
	}
	if kept := a.size(a.Kept.And(all)); kept > 0 {
		text += fmt.Sprintf(", %s kept back (%s)", verb(kept), a.Kept)
	}
	text += fmt.Sprintf(", and the share pool keeps %s", amount(least))
	if a.Requested > a.MinShared && least == a.Requested {
		text += " (the requests in it)"
	}
	left := max(0, min(a.total-a.used-least, a.size(a.available(Want{}))))
	text += fmt.Sprintf(": %s left", verb(left))
	if w.Within != nil {
		within := min(left, a.size(a.available(w)))
		text += fmt.Sprintf(", %s of them within %s, where its groups may run", amount(within), w.Within)
	}
	return text
}

func cpus(n float64) string {
	if n == 1 {
		return "1 CPU"
	}
	return amount(n) + " CPUs"
}

func verb(n float64) string {
	if n == 1 {
		return "1 is"
	}
	return amount(n) + " are"
}

func amount(n float64) string { return fmt.Sprintf("%.4g", n) }

func (a *allocator) allocation() Allocation {
	out := Allocation{Sets: a.sets, Packed: map[string]bool{}, Shared: a.Topology.Set(), Refused: a.refused}
	for _, b := range a.bins {
		for _, w := range b.items {
			out.Sets[w.Name] = b.cpus
			out.Packed[w.Name] = len(b.items) > 1 || w.CPUs < b.size-epsilon
		}
	}
	for _, set := range out.Sets {
		out.Shared = out.Shared.Minus(set)
	}
	slices.Sort(out.Shared)
	return out
}
