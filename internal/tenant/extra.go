package tenant

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Bounding CPUs above limits.
//
// Problem: an administrator bounds how many CPUs above limits a pod, a namespace and a node hand out. A bound on each
// container (a percentage of its limit) does not do that: many containers add up, and how many there will be is not
// known when the percentage is read.
//
// Approach: a group holds the CPUs that are handed out to it above its limit: as long as its quota is raised, and
// until its period ends when it was refilled, or its quota was lowered. Whoever is to get more may have what the
// others in the same pod, in the same namespace and on the node do not hold, and no more. Holdings are whole
// micro-CPUs, so that no sum drifts, and a holding is rounded up, so that no sum is above a bound.
//
// Terminology: a scope is what one bound is for: a pod, a namespace, the node.
//
// Known limits: holdings are averages over the periods of the groups, which do not begin at one time. What a group
// saved up in the kernel's burst buffer is its own and not held; but a period in which it is refilled counts all that
// it may use.

// Extra is who holds CPUs above limits.
type Extra struct {
	bounds strategy.ExtraCores
	held   map[workload.ID]holding
	sums   map[scope]int64
	brief  []workload.ID // groups that hold more until some time
}

// holding is what one group holds.
type holding struct {
	Owner
	standing int64     // micro-CPUs: as long as its quota is raised
	more     int64     // in place of that, until then
	until    time.Time // zero: nothing
}

func (h holding) micros() int64 { return max(h.standing, h.more) }

type scope struct{ bound, name string }

// The bounds, by the names of their fields; node is the name of the only scope of the last.
const (
	perPod, perNamespace, perNode = "extraCoresPerPod", "extraCoresPerNamespace", "extraCoresPerNode"

	node = "*"
)

const microsPerCPU = 1e6

// Bound takes the bounds. Without any, nothing is kept.
func (e *Extra) Bound(b strategy.ExtraCores) {
	if e.bounds = b; !b.Bounded() {
		e.held, e.sums, e.brief = nil, nil, nil
	}
}

// Bounded says whether there is any bound.
func (e *Extra) Bounded() bool { return e.bounds.Bounded() }

// scopes calls for each bound that a group counts towards.
func (e *Extra) scopes(o Owner, each func(scope, float64)) {
	for _, s := range []struct {
		bound string
		name  string
		most  strategy.Bound
	}{
		{perPod, o.Pod, e.bounds.PerPod},
		{perNamespace, o.Namespace, e.bounds.PerNamespace},
		{perNode, node, e.bounds.PerNode},
	} {
		if s.most.Set && s.name != "" {
			each(scope{s.bound, s.name}, s.most.CPUs)
		}
	}
}

// Hold has a group hold so many CPUs above its limit from now on. What it held until now and holds no more it holds
// for one more period: it may have been handed out in the period that stands.
func (e *Extra) Hold(id workload.ID, o Owner, cpus float64, now time.Time, period time.Duration) {
	h := e.held[id]
	if was := h.standing; was > micros(cpus) {
		e.HoldUntil(id, o, float64(was)/microsPerCPU, now.Add(period))
		h = e.held[id]
	}
	h.Owner, h.standing = o, micros(cpus)
	e.set(id, h)
}

// HoldUntil has a group hold so many CPUs until then, if that is more than what it holds anyway.
func (e *Extra) HoldUntil(id workload.ID, o Owner, cpus float64, until time.Time) {
	h := e.held[id]
	if h.until.IsZero() {
		e.brief = append(e.brief, id)
	}
	h.Owner, h.more = o, max(h.more, micros(cpus))
	if until.After(h.until) {
		h.until = until
	}
	e.set(id, h)
}

func micros(cpus float64) int64 { return int64(math.Ceil(cpus*microsPerCPU - 1e-3)) }

func (e *Extra) set(id workload.ID, h holding) {
	if !e.Bounded() {
		return
	}
	if e.held == nil {
		e.held, e.sums = map[workload.ID]holding{}, map[scope]int64{}
	}
	was := e.held[id]
	e.add(was.Owner, -was.micros())
	e.add(h.Owner, h.micros())
	e.held[id] = h
	if h.micros() == 0 && h.until.IsZero() {
		delete(e.held, id)
	}
}

// add counts in every scope, of those without a bound too: one may be set while the holding lasts.
func (e *Extra) add(o Owner, micros int64) {
	if micros == 0 {
		return
	}
	for _, s := range []scope{{perPod, o.Pod}, {perNamespace, o.Namespace}, {perNode, node}} {
		if e.sums[s] += micros; e.sums[s] == 0 {
			delete(e.sums, s)
		}
	}
}

// Expire ends what was held until now.
func (e *Extra) Expire(now time.Time) {
	e.brief = slices.DeleteFunc(e.brief, func(id workload.ID) bool {
		h, ok := e.held[id]
		if ok && now.Before(h.until) {
			return false
		}
		if ok {
			h.more, h.until = 0, time.Time{}
			e.set(id, h)
		}
		return true
	})
}

// Drop forgets a group that is gone.
func (e *Extra) Drop(id workload.ID) {
	if e.held != nil {
		e.set(id, holding{})
		delete(e.held, id)
	}
}

// Left is how many CPUs above its limit a group may hold, what it holds included, and by which bound: +Inf and ""
// where there is none.
func (e *Extra) Left(id workload.ID, o Owner) (cpus float64, bound string) {
	cpus = math.Inf(1)
	own := e.held[id].micros()
	e.scopes(o, func(s scope, most float64) {
		left := (math.Floor(most*microsPerCPU+1e-3) - float64(e.sums[s]-own)) / microsPerCPU
		if left = max(0, left); left < cpus {
			cpus, bound = left, s.bound
		}
	})
	return cpus, bound
}

// Divide is what each claim may have of what the bounds allow in all, whoever holds it now: within a pod, then among
// what its namespace's pods are left with, then on the node.
func (e *Extra) Divide(claims []Claim) []float64 {
	cut := slices.Clone(claims)
	for _, level := range []struct {
		most strategy.Bound
		name func(Owner) string
	}{
		{e.bounds.PerPod, func(o Owner) string { return o.Pod }},
		{e.bounds.PerNamespace, func(o Owner) string { return o.Namespace }},
		{e.bounds.PerNode, func(Owner) string { return node }},
	} {
		if level.most.Set {
			divide(cut, level.most.CPUs, level.name)
		}
	}
	got := make([]float64, len(cut))
	for i, c := range cut {
		got[i] = c.Want
	}
	return got
}

// divide cuts the claims of each scope to what it may have.
func divide(claims []Claim, most float64, name func(Owner) string) {
	of := map[string][]int{}
	for i, c := range claims {
		if scope := name(c.Owner); scope != "" {
			of[scope] = append(of[scope], i)
		}
	}
	for _, list := range of {
		some := make([]Claim, len(list))
		for i, at := range list {
			some[i] = claims[at]
		}
		for i, got := range Split(some, most) {
			claims[list[i]].Want = got
		}
	}
}
