package report

import (
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Colocation is how online work is preferred to offline work.
type Colocation struct {
	Asked      strategy.Mechanism `json:"asked"`
	Mechanism  strategy.Mechanism `json:"mechanism"` // that is used
	Why        string             `json:"why"`
	Mechanisms []Mechanism        `json:"mechanisms"` // that there are, and whether this machine has them
	Knobs      []Priority         `json:"knobs"`
	Exposed    []string           `json:"exposed,omitempty"` // offline groups that some online work does not stand beside
	Ranks      []Rank             `json:"ranks"`
}

// Mechanism is one way to prefer online work.
type Mechanism struct {
	Name   strategy.Mechanism `json:"name"`
	Usable bool               `json:"usable"`
	Why    string             `json:"why"`
}

// Priority is a knob that the mechanism turns.
type Priority struct {
	Cgroup   string     `json:"cgroup"`
	Knob     plan.Knob  `json:"knob"`
	Want     plan.Value `json:"want"`
	Have     plan.Value `json:"have"`
	Original plan.Value `json:"original"`
	InForce  bool       `json:"in_force"` // since
	Since    time.Time  `json:"since"`
	Resets   int64      `json:"resets"`  // times that its owner put its own value back
	Refused  int64      `json:"refused"` // writes that were refused or overwritten
	Foreign  bool       `json:"foreign,omitempty"`
	Problem  string     `json:"problem,omitempty"`
}

// Rank sums up the containers on one side of the priority.
type Rank struct {
	Rank       strategy.Rank `json:"rank"`
	Containers int           `json:"containers"`
	Usage      time.Duration `json:"usage_ns"`  // CPU time used since the agent runs, also by containers that are gone
	Used       float64       `json:"used_cpus"` // of late
}

// InForce says whether the mechanism holds everywhere.
func (c Colocation) InForce() bool {
	for _, k := range c.Knobs {
		if !k.InForce {
			return false
		}
	}
	return len(c.Knobs) > 0
}
