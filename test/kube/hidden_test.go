//go:build kube

package kube

import (
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
)

// TestAgentWithoutHostPID: on cgroup v1 it sees no tasks, writes nothing, and says so in its log and its status.
func TestAgentWithoutHostPID(t *testing.T) {
	if cluster.groups.Version() == cgroup.V2 {
		cgrouptest.Elsewhere(t, "tier kube on cgroup v1", "it need not see tasks on v2")
	}
	p := start(t, want{name: "unseen", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "cpuBurstOnly"}`}})
	d := deploy(t)
	d.hidden = true
	self := d.start("plimsoll", "agent")
	eventually(t, lockWait, func() string {
		if log := self.kubectl("logs", "agent"); !strings.Contains(log, "hostPID: true") {
			return log
		}
		return ""
	})
	if problems := strings.Join(answer[report.Status](t, "status").Problems, "\n"); !strings.Contains(problems,
		"hostPID: true") {
		t.Errorf("problems: %q", problems)
	}
	p.stays(none)
}
