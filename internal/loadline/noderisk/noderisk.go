// Package noderisk is the load line of a node: how much burst it can bear.
//
// Problem: a burst is CPU time that no request reserves. Bursts that coincide take reserved CPU time from neighbours,
// and how often that happens depends on the demands of all containers together.
//
// Approach: the recent demand of each container per period, counted in sixteenths of its limit, is its distribution.
// From the distributions, loadline computes how often the demands admitted in a period exceed the node's capacity, and
// the largest share of the requested bursts with which that happens in no more periods than the operator allows
// (loadLinePercent). Every container's cpuBurstPercent is multiplied by the share, and so are the parts of
// cfsQuotaBurstPercent and startupBurstPercent above 100 %.
//
// A kernel burst is saved before it is spent. Raises and refills are not: a container may use its cap in every period,
// which is then its quota in the model.
//
// Terminology: the requested burst is the most that a strategy lets a container use in one period beyond its limit; the
// risk is the part of the periods in which some container does not get what was admitted.
//
// Known limits: containers are assumed to be independent of each other, and so are their periods (docs/MODEL.md);
// `plimsoll advise` says at which correlation a verdict changes. Demand that a limit cut off is not in the record. Work
// without a limit counts with its mean, and so does a container that Models leaves out. The extra use of a start is not
// in the requested burst: only the node's guard bounds it. A budget of raises (cfsQuotaBurstPeriodSeconds) is not in
// the model, which is then on the careful side.
package noderisk

import (
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/loadline"
)

// UsesPerQuota is the number of classes per limit by which the use of a period is counted.
const UsesPerQuota = 16

// Demand is the recent demand of one container.
type Demand struct {
	Quota float64 // its limit in CPUs
	Burst float64 // requested of saved time, in limits
	Raise float64 // requested by a higher quota, in limits
	Uses  []int64 // periods by their use: (i-1, i] sixteenths of the limit; the last class is open
	// Minutes are the parts that Uses is the sum of, oldest first. Only the interval of the risk needs them.
	Minutes [][]int64
}

// leastLimit is the smallest limit that loadline takes, as a part of the node.
const leastLimit = 1.0 / (1 << 16)

// Models says whether a container with a limit is in the model of a node of so many CPUs. A class of a limit above the
// node's CPUs may be more than the node has, and one next to nothing is refused: either would decide for all others.
func Models(limit float64, cpus int) bool {
	return limit <= float64(cpus) && limit >= float64(cpus)*leastLimit
}

// Risk compares the node with its load line.
type Risk struct {
	Target     float64 // part of the periods in which every container should get what was admitted
	Asked      float64 // risk with all requested bursts
	Now        float64 // risk with the share that is granted
	Share      float64 // of the requested bursts that is granted
	Met        bool
	Containers int
}

// leastCapacity is the smallest capacity that loadline takes, as a part of what a container may use.
const leastCapacity = 1.0 / (1 << 12)

// LoadLine sizes the bursts of a node whose containers have capacity CPUs. Where other work leaves them next to none,
// every period is at risk.
func LoadLine(capacity float64, demands []Demand, targetPercent float64) (Risk, error) {
	node := nodeOf(capacity, demands)
	containers := len(node(1).Containers)
	r := Risk{Target: targetPercent / 100, Share: 1, Met: true, Containers: containers}
	if containers == 0 {
		return r, nil
	}
	for _, c := range node(1).Containers {
		if capacity <= max(c.Quota, c.Burst, c.Demand.Mean())*leastCapacity {
			r.Asked, r.Now, r.Share, r.Met = 1, 1, 0, false
			return r, nil
		}
	}
	s, err := loadline.Size(node, 1-r.Target)
	if err != nil {
		return Risk{}, fmt.Errorf("load line of %d containers on %.2f CPUs: %w", containers, capacity, err)
	}
	r.Asked, r.Now, r.Share, r.Met = s.Asked, s.Risk, s.Share, s.Met
	return r, nil
}

// nodeOf gives the node with a share of the requested bursts.
func nodeOf(capacity float64, demands []Demand) func(share float64) loadline.Node {
	var list []loadline.Container
	var requested []Demand
	for _, d := range demands {
		law, err := loadline.Classes(d.Quota/UsesPerQuota, d.Uses)
		if err != nil {
			continue // it has used nothing
		}
		list, requested = append(list, loadline.Container{Demand: law}), append(requested, d)
	}
	return func(share float64) loadline.Node {
		n := loadline.Node{Capacity: capacity, Containers: slices.Clone(list)}
		for i, d := range requested {
			n.Containers[i].Quota = d.Quota * (1 + share*d.Raise)
			n.Containers[i].Burst = d.Quota * share * max(0, d.Burst-d.Raise)
		}
		return n
	}
}

// Every is how often the risk is computed.
const Every = time.Minute
