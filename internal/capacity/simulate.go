// Package capacity says what bursts do on a node that is full of containers: how often they coincide, what a burst
// brings each container and costs its neighbours, and what burst or limit is advised.
//
// Approach: the node's demand is a law or recorded, and internal/loadline has the model. This package makes the node of
// a question, asks the model, and words the conditions under which its answer holds. Each answer carries them.
//
// Known limits: those of the model (docs/MODEL.md).
package capacity

import (
	"fmt"

	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
)

// MostContainers bounds the number of containers: loadline takes no smaller part of a node as a quota.
const MostContainers = 1 << 16

// Demand makes the node of a case: of a Law, or of Recordings.
type Demand interface {
	node(c Case) (loadline.Node, []string, error)
	name() string
	title(c Case) string
	conditions(o loadline.Options) []string
	Containers() int // as many as the data have; 0: not said
	load(c Case) (float64, error)
}

// Case is what a sweep varies.
type Case struct {
	Containers  int
	Burst       float64 // in quotas
	Utilization float64 // mean demand / quota; 0: that of the data
}

// Simulate runs one case.
func Simulate(d Demand, c Case, o loadline.Options) (report.Simulation, error) {
	node, names, err := d.node(c)
	if err != nil {
		return report.Simulation{}, err
	}
	r, err := loadline.Simulate(node, o)
	if err != nil {
		return report.Simulation{}, err
	}
	s := report.Simulation{Miss: r.Miss.Value, MissCI: [2]float64{r.Miss.Low, r.Miss.High}, WCET: r.WCET.Value,
		WCETCI: [2]float64{r.WCET.Low, r.WCET.High},
		Method: r.Method, Rule: r.Rule.String(), Periods: r.Periods, Title: d.title(c), Conditions: conditions(d, o)}
	total := 0.0
	for i, out := range r.Containers {
		n := node.Containers[i]
		total += n.Demand.Mean()
		s.Containers = append(s.Containers, report.SimulatedContainer{ThrottledWithout: out.ThrottledWithout,
			ThrottledWith: out.ThrottledWith, Delay: out.DelayWith, Name: names[i], Use: n.Demand.Mean() / n.Quota,
			DelayWithout: out.DelayWithout, Interference: out.Interference})
	}
	s.Price = r.Waiting / total
	if committed := node.Committed() / node.Capacity; committed > 1+1e-9 {
		s.Conditions = append(s.Conditions, fmt.Sprintf("the limits add up to %.4g %% of the node: what a container "+
			"is sure of is less than its limit", 100*committed))
	}
	return s, nil
}

// conditions are those under which the figures are valid.
func conditions(d Demand, o loadline.Options) []string {
	list := d.conditions(o)
	if o.Rho > 0 {
		return append(list, fmt.Sprintf("the demands of one period are correlated with rho = %g, its periods "+
			"independent of each other", o.Rho))
	}
	return append(list, "demands of different containers have nothing to do with each other: --rho 0.1 shows what it "+
		"means if they have")
}
