package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestInForce: at groups of which every knob of the mechanism holds what it is to, and which no online work meets from
// outside. Slices and quotas keep nobody behind.
func TestInForce(t *testing.T) {
	key := func(path string, knob plan.Knob) plan.Key { return plan.Key{ID: workload.ID{Path: path}, Knob: knob} }
	var intents []plan.Intent
	for _, k := range []plan.Key{key("/a", plan.Idle), key("/b", plan.Idle), key("/c", plan.Idle), key("/d", plan.Idle),
		key("/d", plan.Weight),
		key("/e", plan.Slice), key("/f", plan.Quota), key("/g", plan.CPUs)} {
		intents = append(intents, plan.Intent{Key: k})
	}
	holds := func(k plan.Key) bool { return k.Path != "/b" && k.Knob != plan.Weight }
	want := map[string]bool{"/a": true, "/b": false, "/c": false, "/d": false}
	if diff := cmp.Diff(want, InForce(intents, holds, []string{"/c"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
