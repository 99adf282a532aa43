package main

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/doctor"
	"plimsoll/internal/doctor/features"
)

// TestPIDNamespace: in a PID namespace of its own, as in a pod without hostPID, the doctor and the agent say that on v1
// they see no tasks; on v2 they need not.
func TestPIDNamespace(t *testing.T) {
	s := newShipped(t)
	g := cgrouptest.New(t)
	g.Limit(hogLimit)
	g.Idle()
	v1 := g.Tree().Version() == cgroup.V1
	if f := features.Tasks(g.Tree(), nil); f.State != cgroup.Yes {
		t.Errorf("in the host's: %+v", f)
	}
	cmd := s.command(context.Background(), "doctor", "--json")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.Output()
	if (err != nil) != v1 { // where tasks are hidden, no policy can work
		t.Fatalf("doctor ends with %v", err)
	}
	var e doctor.Report
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	if f := e.Features.Get(doctor.FeatureTasks); (f.State == cgroup.No) != v1 || v1 &&
		!strings.Contains(f.Detail, "hostPID: true") {
		t.Errorf("in one of its own: %+v", f)
	}

	s.configure("cpuBurstOnly", g.Path)
	s.apart, s.flags = true, append(s.flags, "--poll")
	agent := s.start()
	problems := strings.Join(s.status().Problems, "\n")
	for _, said := range []string{problems, agent.log.String()} {
		if strings.Contains(said, "hostPID: true") != v1 {
			t.Errorf("it says %q", said)
		}
	}
	agent.stop(syscall.SIGTERM)
}
