package cgroup_test

import (
	"errors"
	"path"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
)

// step is one write and its result: an error, or the content of the file afterwards.
type step struct {
	file, text string
	want       error
	reads      string
}

func walk(t *testing.T, g *cgrouptest.Group, steps []step) {
	t.Helper()
	for _, s := range steps {
		name := path.Join(g.Tree().Dir(g.Path), s.file)
		err := g.Dir().WriteFile(name, []byte(s.text))
		if !errors.Is(err, s.want) {
			t.Errorf("%s > %s: %v, want %v", s.text, s.file, err, s.want)
		}
		data, err := g.Dir().ReadFile(name)
		if got := strings.TrimSpace(string(data)); err != nil || s.want == nil && got != s.reads {
			t.Errorf("%s > %s reads %q, want %q: %v", s.text, s.file, got, s.reads, err)
		}
	}
}

// What docs/KERNEL.md says of quota and period.
func TestKernelRefusesBandwidth(t *testing.T) {
	g := cgrouptest.New(t)
	if g.Tree().Version() == cgroup.V2 {
		walk(t, g, []step{
			{"cpu.max", "1000 999", syscall.EINVAL, ""},
			{"cpu.max", "1000 1000", nil, "1000 1000"},
			{"cpu.max", "1000 1000001", syscall.EINVAL, ""},
			{"cpu.max", "1000 1000000", nil, "1000 1000000"},
			{"cpu.max", "999 100000", syscall.EINVAL, ""},
			{"cpu.max", "50000 100000", nil, "50000 100000"},
			{"cpu.max", "60000", nil, "60000 100000"},
			{"cpu.max", "max", nil, "max 100000"},
			{"cpu.max", "17592186044416", syscall.EINVAL, ""},
		})
		return
	}
	walk(t, g, []step{
		{"cpu.cfs_period_us", "999", syscall.EINVAL, ""},
		{"cpu.cfs_period_us", "1000", nil, "1000"},
		{"cpu.cfs_period_us", "1000001", syscall.EINVAL, ""},
		{"cpu.cfs_period_us", "1000000", nil, "1000000"},
		{"cpu.cfs_period_us", "100000", nil, "100000"},
		{"cpu.cfs_quota_us", "999", syscall.EINVAL, ""},
		{"cpu.cfs_quota_us", "1000", nil, "1000"},
		{"cpu.cfs_quota_us", "-7", nil, "-1"},
		{"cpu.cfs_quota_us", "17592186044416", syscall.EINVAL, ""},
	})
}

// What docs/KERNEL.md says of burst, on kernels that bound burst by the quota.
func TestKernelRefusesBurst(t *testing.T) {
	g := cgrouptest.New(t)
	found := g.Features()
	cgrouptest.Need(t, found.Get(cgroup.FeatureBurst))
	if found.Has(cgroup.FeatureAboveQuota) {
		cgrouptest.Elsewhere(t, "test/vm/matrix.sh", "a vendor's kernel: other rules")
	}
	quota, burst, unlimited, reads := "cpu.cfs_quota_us", "cpu.cfs_burst_us", "-1", ""
	if g.Tree().Version() == cgroup.V2 {
		quota, burst, unlimited, reads = "cpu.max", "cpu.max.burst", "max", " 100000"
	}
	walk(t, g, []step{
		{quota, "50000", nil, "50000" + reads},
		{burst, "50001", syscall.EINVAL, ""},
		{burst, "50000", nil, "50000"},
		{quota, "49999", syscall.EINVAL, ""},
		{quota, unlimited, nil, unlimited + reads},
		{burst, "9000000", nil, "9000000"}, // no limit, so any burst
		{quota, "50000", syscall.EINVAL, ""},
		{burst, "0", nil, "0"},
		{quota, "50000", nil, "50000" + reads},
	})
}

// A child's quota above its parent's: refused on v1, accepted on v2, where the parent's quota limits the child all the
// same.
func TestKernelNestedQuota(t *testing.T) {
	pod := cgrouptest.New(t)
	container := pod.Child("container")
	pod.Limit(50 * ms)
	container.Limit(50 * ms)
	var want error
	if pod.Tree().Version() == cgroup.V1 {
		want = syscall.EINVAL
	}
	if err := container.Tree().SetQuota(container.Path, 51*ms); !errors.Is(err, want) {
		t.Errorf("a child above its parent: %v, want %v", err, want)
	}
	container.Limit(50 * ms)
	if err := pod.Tree().SetQuota(pod.Path, 49*ms); !errors.Is(err, want) {
		t.Errorf("a parent below its child: %v, want %v", err, want)
	}
}

// Weights out of range are refused on v2 and cut on v1.
func TestKernelWeightRange(t *testing.T) {
	g := cgrouptest.New(t)
	if g.Tree().Version() == cgroup.V2 {
		walk(t, g, []step{
			{"cpu.weight", "0", syscall.ERANGE, ""},
			{"cpu.weight", "1", nil, "1"},
			{"cpu.weight", "10000", nil, "10000"},
			{"cpu.weight", "10001", syscall.ERANGE, ""},
		})
		return
	}
	walk(t, g, []step{
		{"cpu.shares", "0", nil, "2"},
		{"cpu.shares", "2", nil, "2"},
		{"cpu.shares", "262144", nil, "262144"},
		{"cpu.shares", "300000", nil, "262144"},
	})
}
