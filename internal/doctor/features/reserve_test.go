package features

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/kubelet"
)

func TestProbeReserve(t *testing.T) {
	write := func(root, name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		controllers, state string
		want               cgroup.State
		detail             string
	}{
		{"cpu memory\n", "", cgroup.No, "no cpuset controller"},
		{"cpuset cpu\n", "", cgroup.Yes, "partitions"},
		{"cpuset cpu\n", `{"policyName":"static"}`, cgroup.No, "left alone"},
	} {
		root, kube := t.TempDir(), t.TempDir()
		write(root, "cgroup.controllers", c.controllers)
		if c.state != "" {
			write(kube, "cpu_manager_state", c.state)
		}
		got := reserve(cgroup.NewDir(root), kubelet.Files{Dirs: []string{kube}})
		if got.State != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
