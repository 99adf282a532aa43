// Package reserve decides which containers get CPUs of their own, which CPUs, and what every control group's cpuset
// shall be. It is pure: a machine and what is in its files go in, sets of CPUs and changes come out.
//
// # Problem
//
// A container that reserves CPU time does not get it, because run queues are shared: the load balancer evens out load,
// not reservations, and a weight is split over the CPUs that a group's threads are on (Mind the Gap, SoCC '21: forced
// run-queue sharing). Who has run queues of its own gets all of them.
//
// # Approach
//
// As rKube does, a container that asks for it gets n = ceil(request) CPUs that nobody else may use, by cpuset.cpus,
// and everybody else is confined to the rest, the shared pool. Beyond rKube:
//
//   - Requests below one CPU are packed, several on one CPU as far as their sum fits. They share its run queue with each
//     other only, in proportion to their weights. A request above one CPU is not packed with its fraction: its weight
//     is spread over its CPUs, and would not hold that fraction on the one that it shared.
//   - Placement is best fit: the smallest domain of the machine (thread, core, last cache, NUMA node, socket) that holds
//     the request, of those the fullest, so that large ones stay whole for large requests. Where no domain holds it,
//     whole domains are taken first, and then the nearest ones.
//   - Whoever has CPUs keeps them. Only where somebody new would not fit otherwise are packed ones moved together, the
//     fewest that do.
//   - The shared pool never goes below its floor. Somebody new is admitted only if the pool also still holds the requests
//     of those who are in it. Who does not fit is refused, with the arithmetic, and nothing is done for it.
//   - A node may ask for all its containers (strategy.Reserve.All), as the paper does. Such a container that has no CPUs of its
//     own is one of those in the pool, whose requests keep room there: rounding up must not leave others less than they
//     requested.
//   - CPUs count by their capacity, where cores are unequal.
//
// # Terminology
//
// A want is what one container asks for. A bin is the CPU that packed ones share. Kept CPUs are never exclusive: the
// system's, and those that another program has pinned something to. Isolated CPUs are those of isolcpus= and of
// others' partitions: no balancing reaches them, so that they are no room for anybody, and are left as they are.
//
// # Known limits
//
// Packed ones are moved on machines with equal CPUs only, and among the CPUs that they have. The search for the fewest
// moves ends after maxSteps. Those with whole CPUs are never moved, also not where a want is bound to some CPUs (Within)
// and others hold these.
package reserve

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/cpu"
)

// Machine is what there is to share out.
type Machine struct {
	Topology  cpu.Topology
	Kept      cpu.Set // never exclusive; part of the shared pool
	Isolated  cpu.Set // neither exclusive nor room for those in the shared pool
	Floor     float64 // CPUs that the shared pool has at least
	Requested float64 // CPUs that those in it have requested: binds who is new
}

// Want is one container that asks for CPUs of its own.
type Want struct {
	Name   string
	CPUs   float64 // its request, in CPUs of full capacity
	Within cpu.Set // CPUs that it may have; nil: any
	Has    cpu.Set // what it has now; nil: it is new
	// ByNode says that it has not asked itself (reserve.exclusive). While it has no CPUs of its own it is one of the others in
	// the shared pool, which must hold its request.
	ByNode bool
}

// Allocation is who gets what.
type Allocation struct {
	Sets    map[string]cpu.Set // by name
	Packed  map[string]bool    // shares its CPU with others that reserve
	Shared  cpu.Set
	Refused []Refusal
}

// Refusal says who gets no CPUs of its own, and why.
type Refusal struct{ Name, Why string }

// epsilon is the rounding error of sums of requests and capacities.
const epsilon = 1e-6

// Allocate shares the machine out: first to those who have CPUs, then to those who are new, in the order of the list.
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
	// Packed ones first: one of them that has grown to a CPU goes, and not those beside it.
	for _, packed := range []bool{true, false} {
		for _, w := range having {
			if (whole(w) == 0) == packed && !a.keep(w) {
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

// inPool is what a want binds of the shared pool while it has no CPUs of its own.
func (w Want) inPool() float64 {
	if w.ByNode {
		return w.CPUs
	}
	return 0
}

// allocator is an allocation in the making.
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

// bin is a set of CPUs, one where they are equal, that several share.
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
	a := &allocator{Machine: m, machine: newMachine(m.Topology), cap: map[int]float64{}, free: map[int]bool{}, sets: map[string]cpu.Set{}, equal: true}
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

// whole is how many CPUs a want takes for itself; 0: it is packed.
func whole(w Want) float64 {
	if w.CPUs < 1-epsilon {
		return 0
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

// keep leaves a want what it has, if that is still what it needs.
func (a *allocator) keep(w Want) bool {
	if need := whole(w); need > 0 {
		size := a.size(w.Has)
		return w.Has.Within(a.available(w)) && size >= need-epsilon && !a.spare(w.Has, need) && a.fits(size, a.Floor) && a.own(w, w.Has)
	}
	for _, b := range a.bins {
		if b.cpus.Equal(w.Has) {
			return b.room() >= w.CPUs-epsilon && b.add(w)
		}
	}
	size := a.size(w.Has)
	if !w.Has.Within(a.available(w)) || a.spare(w.Has, w.CPUs) || size < w.CPUs-epsilon || !a.fits(size, a.Floor) {
		return false
	}
	return a.open(w, w.Has)
}

// fits says whether so much may be taken from the shared pool.
func (a *allocator) fits(size, floor float64) bool { return a.total-a.used-size >= floor-epsilon }

func (a *allocator) own(w Want, cpus cpu.Set) bool {
	a.sets[w.Name] = cpus
	a.take(cpus)
	return true
}

func (a *allocator) open(w Want, cpus cpu.Set) bool {
	a.bins = append(a.bins, &bin{cpus: cpus, size: a.size(cpus), items: []Want{w}})
	a.take(cpus)
	return true
}

func (b *bin) add(w Want) bool {
	b.items = append(b.items, w)
	return true
}

func (a *allocator) take(cpus cpu.Set) {
	for _, c := range cpus {
		a.free[c] = false
	}
	a.used += a.size(cpus)
}

// place finds CPUs for a want that has none, or no longer what it needs; one that is new must leave room for the requests in the
// shared pool.
func (a *allocator) place(w Want) {
	a.Requested -= w.inPool()
	floor := a.Floor
	if len(w.Has) == 0 {
		floor = max(floor, a.Requested)
	}
	if !a.find(w, floor) {
		a.Requested += w.inPool()
	}
}

func (a *allocator) find(w Want, floor float64) bool {
	need := whole(w)
	if need == 0 {
		packed := a.pack(w, floor)
		if !packed {
			a.refuse(w, a.arithmetic(w, w.CPUs, floor))
		}
		return packed
	}
	enough := func() bool {
		cpus := a.choose(w, need)
		return cpus != nil && a.fits(a.size(cpus), floor) && a.own(w, cpus)
	}
	if !enough() && !(a.repack(a.gap(w, need, floor), nil) && enough()) {
		a.refuse(w, a.arithmetic(w, need, floor))
		return false
	}
	return true
}

// gap is how many CPUs packed ones would have to give up for a want that has too few.
func (a *allocator) gap(w Want, need, floor float64) gap {
	missing := func(have float64) int { return max(0, int(math.Ceil(need-have-epsilon))) }
	return gap{anywhere: missing(a.total - a.used - floor), where: w, usable: missing(a.size(a.available(w)))}
}

// pack finds a place for a fraction: the fullest bin that holds it, else a CPU, else a place that others make.
func (a *allocator) pack(w Want, floor float64) bool {
	var best *bin
	for _, b := range a.bins {
		if b.room() >= w.CPUs-epsilon && w.mayUse(b) && (best == nil || b.room() < best.room()) {
			best = b
		}
	}
	if best != nil {
		return best.add(w)
	}
	if cpus := a.choose(w, w.CPUs); cpus != nil && a.fits(a.size(cpus), floor) {
		return a.open(w, cpus)
	}
	return a.repack(gap{}, []Want{w})
}

func (w Want) mayUse(b *bin) bool { return w.Within == nil || b.cpus.Within(w.Within) }

func (a *allocator) refuse(w Want, why string) {
	a.refused = append(a.refused, Refusal{Name: w.Name, Why: why})
}

// arithmetic says why a want does not fit.
func (a *allocator) arithmetic(w Want, need, floor float64) string {
	all := a.Topology.Set()
	text := fmt.Sprintf("it needs %s (request %s); of %s online, %s exclusive already", cpus(need), amount(w.CPUs), cpus(a.size(all)), verb(a.used))
	if isolated := a.Isolated.And(all); len(isolated) > 0 {
		text += fmt.Sprintf(", %s isolated or in another's partition (%s)", verb(a.size(isolated)), isolated)
	}
	if kept := a.size(a.Kept.And(all)); kept > 0 {
		text += fmt.Sprintf(", %s kept back (%s)", verb(kept), a.Kept)
	}
	text += fmt.Sprintf(", and the shared pool keeps %s", amount(floor))
	if a.Requested > a.Floor && floor == a.Requested {
		text += " (the requests in it)"
	}
	left := max(0, min(a.total-a.used-floor, a.size(a.available(Want{}))))
	text += fmt.Sprintf(": %s left", verb(left))
	if w.Within != nil {
		text += fmt.Sprintf(", %s of them within %s, where its groups may run", amount(min(left, a.size(a.available(w)))), w.Within)
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
