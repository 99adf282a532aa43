package policy

import (
	"fmt"
	"time"

	"plimsoll/internal/loadline"
	"plimsoll/internal/strategy"
)

// The load line: how much burst the node can bear.
//
// Problem: a burst is CPU time that was promised to nobody. Bursts that coincide take from neighbours what they were
// promised, and how often they do depends on the demands of all containers together.
//
// Approach: each container's demand per period of late, counted by sixteenths of its limit, is its law. From the laws
// loadline finds how often the demands admitted in a period exceed what the node has, and the largest share of the
// bursts asked for with which that happens in no more periods than the operator allows (loadLinePercent). The share cuts
// every container's cpuBurstPercent, and what cfsQuotaBurstPercent and startupBurstPercent allow beyond its limit, alike.
//
// Terminology: the burst asked for is the most that a strategy lets a container use in one period beyond its limit; the
// risk is the part of the periods in which somebody does not get what was admitted.
//
// Known limits: containers are taken to be independent of each other, and their periods too (docs/MODEL.md); `plimsoll
// advise` says at which correlation a verdict turns. What a limit has cut off is not in the record. Work without a limit
// counts with its mean. What a start may use beyond other times is not in the burst asked for: the node's guard alone bounds it.

// UsesPerQuota is how finely the use of a period is counted: in classes of a sixteenth of the limit.
const UsesPerQuota = 16

// Demand is what one container has wanted of late.
type Demand struct {
	Quota float64 // its limit in CPUs
	Asked float64 // the burst asked for, in limits
	Uses  []int64 // periods by their use: (i-1, i] sixteenths of the limit; the last class is open
}

// Risk is how the node stands to its load line.
type Risk struct {
	Target     float64 // part of the periods in which everybody is to get what was admitted
	Asked      float64 // risk with all bursts asked for
	Now        float64 // risk with the share that is granted
	Share      float64 // of the bursts asked for
	Met        bool
	Containers int
}

// LoadLine sizes the bursts of a node that has so many CPUs for these containers.
func LoadLine(capacity float64, demands []Demand, targetPercent float64) (Risk, error) {
	n := loadline.Node{Capacity: capacity}
	for _, d := range demands {
		law, err := loadline.NewRecording(d.samples())
		if err != nil {
			continue // it has used nothing
		}
		n.Containers = append(n.Containers, loadline.Container{Quota: d.Quota, Burst: d.Asked * d.Quota, Demand: law})
	}
	r := Risk{Target: targetPercent / 100, Share: 1, Met: true, Containers: len(n.Containers)}
	if len(n.Containers) == 0 {
		return r, nil
	}
	s, err := loadline.Size(n, 1-r.Target)
	if err != nil {
		return Risk{}, fmt.Errorf("load line of %d containers on %.2f CPUs: %w", len(n.Containers), capacity, err)
	}
	r.Asked, r.Now, r.Share, r.Met = s.Asked, s.Risk, s.Share, s.Met
	return r, nil
}

// samplesMost bounds what a law is made from: ten minutes of periods of 100 ms are 6,000, a tenth says as much.
const samplesMost = 600

// samples are demands in CPUs, as frequent as they were counted, rounded up to their class.
func (d Demand) samples() []float64 {
	var total int64
	for _, n := range d.Uses {
		total += n
	}
	var list []float64
	var seen int64
	for class, n := range d.Uses {
		seen += n
		for int64(len(list))*max(total, samplesMost) < seen*samplesMost {
			list = append(list, float64(class)/UsesPerQuota*d.Quota)
		}
	}
	return list
}

// AskedBurst is the most that a strategy lets a container use in one period beyond its limit, in limits.
func AskedBurst(s strategy.Strategy, r Rules) float64 {
	var burst, raise float64
	if s.Policy.Burst() && r.Burst {
		burst = float64(s.CPUBurstPercent) / 100
		if !r.BurstAboveQuota {
			burst = min(burst, 1)
		}
	}
	if s.Policy.Quota() {
		raise = float64(s.CFSQuotaBurstPercent-100) / 100
	}
	return max(burst, raise)
}

// cut takes a part off what a strategy asks for beyond the limit.
func cut(s strategy.Strategy, part float64, r Rules) strategy.Strategy {
	if part <= 0 {
		return s
	}
	share := 1 - part
	s.CPUBurstPercent = min(s.CPUBurstPercent, int64(100*share*AskedBurst(s, r)))
	s.CFSQuotaBurstPercent = 100 + int64(share*float64(s.CFSQuotaBurstPercent-100))
	s.StartupBurstPercent = 100 + int64(share*float64(s.StartupBurstPercent-100))
	return s
}

// LoadLineEvery is how often the risk is computed.
const LoadLineEvery = time.Minute
