package observe

import (
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestScopeOfAContainer: a scope has the strategy and the declared limit of its container; where systemd has rounded that, what
// its file holds is its limit, and nothing else is declared.
func TestScopeOfAContainer(t *testing.T) {
	const scope = "/crio-a.scope"
	declared := &workload.Declared{Bandwidth: cpu.Bandwidth{Quota: 33 * ms, Period: 100 * ms}}
	for quota, want := range map[time.Duration]*workload.Declared{33 * ms: declared, 40 * ms: nil} {
		k := sim.New(sim.Config{CPUs: 4, Version: 2, BurstFile: true, Seed: 1})
		for _, group := range []string{scope, scope + "/container"} {
			k.AddGroup(group)
		}
		tree, err := cgroup.Detect(k)
		if err == nil {
			err = tree.SetQuota(scope, quota)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := workload.Container{ID: workload.ID{Path: scope + "/container", Inode: 2}, Scope: workload.ID{Path: scope, Inode: 1},
			Declared: declared, Strategy: strategy.Default()}
		pod, _ := New(tree, nil, k.Now).ReadPod(k.Now(), workload.Pod{Containers: []workload.Container{c}})
		if len(pod.Scopes) != 1 {
			t.Fatalf("%+v", pod)
		}
		if got := pod.Scopes[0]; got.Declared != want || got.Strategy != c.Strategy || pod.Containers[0].Declared != declared {
			t.Errorf("quota %v: declared %+v, strategy %+v", quota, got.Declared, got.Strategy)
		}
	}
}
