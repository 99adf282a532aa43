//go:build kube

package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// TestKubeletWithoutQuotas: where the kubelet writes no quotas, none is written, whatever limit the spec names
// (Koordinator writes the limit, and so throttles what was not throttled).
func TestKubeletWithoutQuotas(t *testing.T) {
	kubeletSays(t, "cpuCFSQuota: false")
	p := start(t, want{name: "free", containers: []container{hog("a", "100m", "100m")}})
	before := files(t)
	free := map[string]cpu.Bandwidth{"": {Quota: cpu.Unlimited, Period: 100 * ms},
		"a": {Quota: cpu.Unlimited, Period: 100 * ms}}
	if diff := cmp.Diff(free, p.limits()); diff != "" {
		t.Fatalf("the kubelet wrote a quota, the scenario proves nothing:\n%s", diff)
	}
	a := follower(t, "auto")
	always(t, 2*time.Second, func() string { return cmp.Diff(before, files(t)) })
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestKubeletWithShortPeriods: the period is the kubelet's and is never changed (Koordinator writes the quota of 100 ms
// into periods of 10 ms, ten times the limit).
func TestKubeletWithShortPeriods(t *testing.T) {
	kubeletSays(t, "cpuCFSQuotaPeriod: 10ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}")
	p := start(t, want{name: "short", containers: []container{sleeper("a", "100m", "500m")}})
	// the kubelet reports it as 100m
	least := start(t, want{name: "least", containers: []container{sleeper("a", "20m", "50m")}})
	before := files(t)
	a := follower(t, "auto")
	for p, quota := range map[*pod]time.Duration{p: 5 * ms, least: ms} {
		short := cpu.Bandwidth{Quota: quota, Period: 10 * ms, Burst: quota}
		eventually(t, wait, func() string {
			return cmp.Diff(map[string]cpu.Bandwidth{"": short, "a": short}, p.limits())
		})
	}
	a.stop(syscall.SIGTERM)
	same(t, before)
}

// TestKubeletWithACgroupRoot: the kubelet's groups may be anywhere (cgroupRoot, as kind has it).
func TestKubeletWithACgroupRoot(t *testing.T) {
	const root = "plimsoll-kubelet" // down.sh knows it
	hierarchies, err := filepath.Glob(filepath.Join(cgrouptest.Root(), "*", "cgroup.procs"))
	if err != nil || len(hierarchies) == 0 {
		hierarchies = []string{filepath.Join(cgrouptest.Root(), "cgroup.procs")} // v2
	}
	for _, file := range hierarchies {
		dir := filepath.Join(filepath.Dir(file), root)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // the kubelet's groups below are empty by then
			if out, err := exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}",
				";").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	t.Cleanup(func() { usualKubelet(t) }) // which makes no groups there
	kubeletSays(t, "cgroupRoot: /"+root)
	p := begin(t, want{name: "rooted", containers: []container{sleeper("a", "100m", "500m")}})
	p.root = root
	t.Cleanup(p.delete) // by this kubelet
	p.ready()
	p.find()
	before := p.limits()
	a := follower(t, "cpuBurstOnly")
	p.become(full(50 * ms))
	a.stop(syscall.SIGTERM)
	if diff := cmp.Diff(before, p.limits()); diff != "" {
		t.Error(diff)
	}
}
