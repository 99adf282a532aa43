package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cgroup"
)

func TestKubelet(t *testing.T) {
	for _, c := range []struct {
		state, config, flags string
		owner, reserve       string
		more                 float64
	}{
		{},
		{state: `{"policyName":"none","defaultCpuSet":"","checksum":1}`, config: "cpuManagerPolicy: none\n"},
		{state: `{"policyName":"static","defaultCpuSet":"0-3","checksum":1}`, owner: "the kubelet's CPU manager (policy static) shares out the CPUs of this node"},
		{config: "kind: KubeletConfiguration\nreservedSystemCPUs: \"0-1,8\"\n", reserve: "0-1,8"},
		{config: "reservedSystemCPUs: 3", reserve: "3"},
		{config: "reservedSystemCPUs: all\n"},
		{config: "kubeReserved:\n  memory: 1Gi\n  cpu: 500m\nsystemReserved: {cpu: 1}\n", more: 1.5},
		{config: "kubeReserved: {cpu: 500m}\nreservedSystemCPUs: 0-1\n", reserve: "0-1"},
		{config: "kubeReserved: {cpu: 500m}\n", flags: "KUBELET_KUBEADM_ARGS=\"--kube-reserved=memory=1Gi,cpu=2 --v=2\"\n", more: 2},
		{flags: "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=pause:3.10 --reserved-cpus=0,4\"\n", reserve: "0,4"},
	} {
		empty, dir := t.TempDir(), t.TempDir()
		for name, text := range map[string]string{"cpu_manager_state": c.state, "config.yaml": c.config, "kubeadm-flags.env": c.flags} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := kubelet{dirs: []string{empty, dir}}
		if got := k.owner(); got != c.owner {
			t.Errorf("%+v: owner %q", c, got)
		}
		if got, more := k.reserved(); got.String() != c.reserve || more != c.more {
			t.Errorf("%+v: reserved %q and %v", c, got, more)
		}
	}
}

// TestKubeletUnknown: a state that cannot be read, or that is not where somebody has said that it is, is no answer.
func TestKubeletUnknown(t *testing.T) {
	const shares, keeps = "whether the kubelet shares out CPUs is not known: ", "which CPUs the kubelet keeps is not known: "
	for _, c := range []struct {
		name       string
		torn       string // a state that is none
		unreadable string // a file that cannot be read: a folder
		given      bool
		want       string // the beginning; "" for an answer
	}{
		{name: "no kubelet"},
		{name: "a torn state", torn: "torn {", want: shares + "cpu_manager_state is no JSON"},
		{name: "the state", unreadable: "cpu_manager_state", want: shares},
		{name: "its configuration", unreadable: "config.yaml", want: keeps},
		{name: "its flags", unreadable: "kubeadm-flags.env", want: keeps},
		{name: "not where it is said to be", given: true, want: shares + "open /"},
	} {
		dir := t.TempDir()
		if c.torn != "" {
			if err := os.WriteFile(filepath.Join(dir, "cpu_manager_state"), []byte(c.torn), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c.unreadable != "" {
			if err := os.Mkdir(filepath.Join(dir, c.unreadable), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		k := kubelet{dirs: []string{dir, t.TempDir()}, given: c.given} // that the second has nothing changes nothing
		if got := k.owner(); !strings.HasPrefix(got, c.want) || got != "" && c.want == "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestHostKubelet: a given folder means that there is a kubelet.
func TestHostKubelet(t *testing.T) {
	t.Setenv(kubeletVar, "")
	if k := hostKubelet(); k.given || k.dirs[0] != "/var/lib/kubelet" {
		t.Errorf("%+v", k)
	}
	dir := t.TempDir()
	t.Setenv(kubeletVar, dir)
	if k := hostKubelet(); !k.given || len(k.dirs) != 1 || k.dirs[0] != dir {
		t.Errorf("%+v", k)
	}
}

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
		got := probeReserve(cgroup.NewDir(root), kubelet{dirs: []string{kube}})
		if got.State != c.want || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
