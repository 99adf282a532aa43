//go:build kube

package kube

import (
	"encoding/json"
	"fmt"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/report"
)

// TestRefillsAsDeployed: the few rights of the DaemonSet's pod, and its image, which has no shell, are enough to find
// out that a rewritten burst refills, and to end throttles by that.
//
// The container uses a tenth of a second of CPU time now and then. A container that never stops running is raised to
// its cap after one throttled period, and is not refilled from then on.
func TestRefillsAsDeployed(t *testing.T) {
	bursts := container{"a", "50m", "200m", []string{"sh", "-c", "trap 'exit 0' TERM; " +
		"while :; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 5 & wait $!; done"}}
	start(t, want{name: "bursts", containers: []container{bursts},
		annotations: map[string]string{annotation: `{"policy": "auto"}`}})
	d := deploy(t)
	configMap(t, agents, "slo-controller-config", map[string]string{
		// also beside other load of this machine
		"cpu-burst-config": `{"clusterStrategy": {"sharePoolThresholdPercent": 100}}`})
	self := d.start("plimsoll", "agent")
	eventually(t, lockWait, func() string {
		s, err := answered[report.Status](t, "status")
		if err != nil {
			return err.Error()
		}
		if s.Events.Refills == 0 {
			return fmt.Sprintf("no throttle was ended by a refill: %+v", s.Events)
		}
		return ""
	})
	var found struct{ Features cgroup.Features }
	out := kubectl(t, "exec", "agent", "--namespace", agents, "--", "/plimsoll", "doctor", "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err, out)
	}
	for _, feature := range []string{cgroup.FeatureWritable, cgroup.FeatureRefill} {
		if !found.Features.Has(feature) {
			t.Errorf("%+v", found.Features.Get(feature))
		}
	}
	self.end()
}
