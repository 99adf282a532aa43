//go:build kube

package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
)

// These test on a kubelet what koordlet was seen to fail (docs/MIGRATION.md); internal/agent has the others.

// TestDefaultPercentIsCutToTheLimit: with all defaults there is a burst, as large as the kernel accepts.
func TestDefaultPercentIsCutToTheLimit(t *testing.T) {
	p := start(t, want{name: "default", containers: []container{sleeper("a", "100m", "500m")},
		annotations: map[string]string{annotation: `{"policy": "auto"}`}})
	before := files(t)
	a := follower(t, "none")
	p.become(full(50 * ms))
	c, err := report.Find(a.status().Containers, p.containers["a"])
	if err != nil || c.Burst.Requested != 500*ms || c.Burst.InForce != 50*ms || !c.Burst.Clamped ||
		c.Burst.Problem != "" {
		t.Errorf("%v, %+v", err, c.Burst)
	}
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// write puts a text into a file of a group, as the kubelet and the runtime do.
func (p *pod) write(group, quota string) {
	p.t.Helper()
	name, text := "cpu.cfs_quota_us", quota
	dir := filepath.Join(cgrouptest.Root(), cluster.groups.Dir(group))
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		name, text = "cpu.max", quota+" 100000"
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0); err != nil {
		p.t.Fatal(err)
	}
}

// TestLimitPutBackByItsOwner: a raised quota that the runtime sets to the limit again is seen, and the container is
// helped again within seconds.
func TestLimitPutBackByItsOwner(t *testing.T) {
	p := start(t, want{name: "reset", containers: []container{hog("a", "50m", "100m")}})
	before := files(t)
	a := newAgent(t, "strategy: {policy: cfsQuotaBurstOnly, sharePoolThresholdPercent: 100, startupSeconds: 0}\n",
		"--poll", "--kube", "--kubeconfig", filepath.Join(scratch, "pki/admin.kubeconfig"), "--node-name", nodeName)
	a.start()
	raised := func() string {
		if b := p.limits()["a"]; b.Quota <= 10*ms {
			return fmt.Sprintf("%v is not raised", b)
		}
		return ""
	}
	eventually(t, wait, raised)
	a.wrote(p.containers["a"])
	p.write(p.containers["a"], "10000")
	eventually(t, wait, func() string {
		return cmp.Diff(cpu.Bandwidth{Quota: 10 * ms, Period: 100 * ms}, p.limits()["a"])
	})
	took := eventually(t, wait, raised)
	t.Logf("raised again after %v", took.Round(ms))
	if log := a.log.String(); !strings.Contains(log, "the owner has restored its value") {
		t.Errorf("it was not seen:\n%s", log)
	}
	a.stop(syscall.SIGTERM)
	same(t, before)
}
