package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/workload"
)

// TestRunRaisesAScope: of a container that crun made with systemd in a pod, the scope and the group in it have the
// limit. The pod, the scope and the group are raised together, so that the container uses more than its limit,
// and put back.
func TestRunRaisesAScope(t *testing.T) {
	s := newShipped(t)
	s.flags, s.baseline = []string{"--poll"}, true
	node := cgrouptest.New(t)
	node.Prevail()
	pod := node.Child("kubepods-pod1_2.slice")
	scope := pod.Child("crio-" + strings.Repeat("a", 64) + ".scope")
	inner := scope.Child(workload.InScope)
	for _, g := range []*cgrouptest.Group{pod, scope, inner} {
		g.Limit(hogLimit)
	}
	inner.Idle()
	inner.Spin(2)
	before := files(t, pod, scope, inner)
	s.configure("cfsQuotaBurstOnly", scope.Path)
	agent := s.start()
	eventually(t, raiseWait, func() string {
		for _, g := range []*cgrouptest.Group{pod, scope, inner} {
			if quota, _ := bandwidthNow(t, g); quota <= hogLimit {
				return fmt.Sprintf("%s has %v; node %+v", g.Path, quota, s.status().Node)
			}
		}
		return ""
	})
	from, err := read(inner)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	time.Sleep(2 * time.Second)
	to, err := read(inner)
	if err != nil {
		t.Fatal(err)
	}
	limit := time.Duration(float64(hogLimit) * float64(time.Since(begin)) / float64(100*ms))
	if used := to.used - from.used; !emulated() && used < 3*limit/2 {
		t.Errorf("%v of CPU time used, the limit is %v: the scope or the group in it throttles", used, limit)
	}
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, pod, scope, inner)
}
