package index

import (
	"testing"

	"plimsoll/internal/workload"
)

// TestNoSandboxes: what works for nobody is nothing to choose.
func TestNoSandboxes(t *testing.T) {
	list := []workload.Container{{Name: "default/web/pause", Sandbox: true}, {Name: "default/web/nginx"}}
	if got := New(nil, "", nil, []workload.Pod{{Containers: list}}).known; len(got) != 1 ||
		got[0].Name != "default/web/nginx" {
		t.Errorf("%+v", got)
	}
}

// TestBelow: a path of the file system is one below the hierarchy, and nothing else is changed.
func TestBelow(t *testing.T) {
	for _, tc := range [][3]string{
		{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/lab/a/", "/lab/a"},
		{"/sys/fs/cgroup/", "/sys/fs/cgroup/lab/a", "/lab/a"},
		{"/sys/fs/cgroup", "/lab/a", "/lab/a"},
		{"/sys/fs/cgroup", "nginx", "nginx"},
		{"/sys/fs/cgroup", "/sys/fs/cgroups/a", "/sys/fs/cgroups/a"},
	} {
		if got := Below(tc[0], tc[1]); got != tc[2] {
			t.Errorf("Below(%q, %q) = %q, want %q", tc[0], tc[1], got, tc[2])
		}
	}
}
