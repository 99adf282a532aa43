// Package tenant divides among tenants what their groups take beyond their limits: CPUs, and the writes that end
// throttles.
//
// A tenant is a namespace; where nothing tells of namespaces, it is a pod, or a container that is in none.
package tenant

import (
	"cmp"
	"math"
	"sort"
)

// Owner is the pod that a group is in, or the group itself where it is in none, and the pod's namespace.
type Owner struct {
	Pod       string // its path, which outlives its containers
	Namespace string // "" where nothing tells of one
}

// Tenant is the name of the tenant.
func (o Owner) Tenant() string { return cmp.Or(o.Namespace, o.Pod) }

// Claim is what one group wants.
type Claim struct {
	Owner
	Weight float64 // the reservation
	Want   float64 // CPUs above its limit
}

// Split divides what is free among claims so that no claim gets more than it wants, and what is short is short in
// proportion to the weights (weighted max-min fairness). Fifty groups that are throttled in the same millisecond so
// share what is free, and do not each take it.
func Split(claims []Claim, free float64) []float64 {
	var order []int // those that want something: the sandbox of a pod has no limit, and so an infinite weight
	weight := 0.0
	for i, c := range claims {
		if c.Want > 0 && c.Weight > 0 {
			order = append(order, i)
			weight += c.Weight
		}
	}
	sort.SliceStable(order, func(a, b int) bool { // the most modest for its weight first
		x, y := claims[order[a]], claims[order[b]]
		return x.Want*y.Weight < y.Want*x.Weight
	})
	got := make([]float64, len(claims))
	for _, i := range order {
		c := claims[i]
		got[i] = math.Min(c.Want, free*c.Weight/weight)
		free -= got[i]
		weight -= c.Weight
	}
	return got
}
