package colocation

import (
	"fmt"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// yields is an agent that counts how often throttles may be answered.
type yields struct {
	Agent
	n int
}

func (y *yields) Topology() (cpu.Topology, string, error) { return cpu.Topology{}, "", nil }
func (y *yields) Outside(do func())                       { do() }
func (y *yields) Yield()                                  { y.n++ }

// TestConfinableYields: a tenant may make any number of groups, and throttles are answered between any two of them.
func TestConfinableYields(t *testing.T) {
	const groups = 2000
	kernel := sim.New(sim.Config{CPUs: 4, Version: 1, CPUSets: true})
	kernel.AddGroup("/batch")
	for i := range groups {
		kernel.AddGroup(fmt.Sprintf("/batch/g%d", i))
	}
	tree, err := cgroup.Detect(kernel)
	if err != nil {
		t.Fatal(err)
	}
	var agent yields
	c := New(Colocation{Tree: tree, Ledger: ledger.New(), Agent: &agent})
	list, _, err := c.confinable([]policy.Level{{ID: workload.ID{Path: "/batch"},
		QOS: strategy.CPUQOS{Enable: true, SchedIdle: 1}}})
	if err != nil || len(list) != groups+1 || agent.n < groups {
		t.Errorf("%d groups, %d yields, %v", len(list), agent.n, err)
	}
}
