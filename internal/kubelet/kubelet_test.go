package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	last := &decoded{} // of the case before
	for _, c := range []struct {
		state, config, flags string
		owner, reserve       string
		more                 float64
	}{
		{},
		{state: `{"policyName":"none","defaultCpuSet":"","checksum":1}`, config: "cpuManagerPolicy: none\n"},
		{state: `{"policyName":"static","defaultCpuSet":"0-3","checksum":1}`,
			owner: "the kubelet's CPU manager (policy static) shares out the CPUs of this node"},
		{config: "kind: KubeletConfiguration\nreservedSystemCPUs: \"0-1,8\"\n", reserve: "0-1,8"},
		{config: "reservedSystemCPUs: 3", reserve: "3"},
		{config: "reservedSystemCPUs: 0\nreservedSystemCPUs: 0-1\na: {b: 1, b: 2}\n", reserve: "0-1"},
		{config: "kubeReserved: {cpu: 1, cpu: 2}\n", more: 2},
		{config: "# nothing\n"},
		{config: "kubeReserved:\n  memory: 1Gi\n  cpu: 500m\nsystemReserved: {cpu: 1}\n", more: 1.5},
		{config: "kubeReserved: {cpu: 500m}\nreservedSystemCPUs: 0-1\n", reserve: "0-1"},
		{config: "kubeReserved: {cpu: 500m}\n",
			flags: "KUBELET_KUBEADM_ARGS=\"--kube-reserved=memory=1Gi,cpu=2 --v=2\"\n", more: 2},
		{flags: "KUBELET_KUBEADM_ARGS=\"--pod-infra-container-image=pause:3.10 --reserved-cpus=0,4\"\n",
			reserve: "0,4"},
	} {
		empty, dir := t.TempDir(), t.TempDir()
		for name, text := range map[string]string{"cpu_manager_state": c.state, "config.yaml": c.config,
			"kubeadm-flags.env": c.flags} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := Files{Dirs: []string{empty, dir}, last: last}
		if got := k.Owner(); got != c.owner {
			t.Errorf("%+v: owner %q", c, got)
		}
		if got, more := k.Reserved(); got.String() != c.reserve || more != c.more {
			t.Errorf("%+v: reserved %q and %v", c, got, more)
		}
	}
}

// TestUnknown: a state that cannot be read, or that is not where somebody has said that it is, is no answer.
func TestUnknown(t *testing.T) {
	const shares, keeps = "whether the kubelet shares out CPUs is not known: ", "which CPUs the kubelet keeps is " +
		"not known: "
	for _, c := range []struct {
		name       string
		torn       string // a state that is none
		config     string
		unreadable string // a file that cannot be read: a folder
		given      bool
		want       string // the beginning; "" for an answer
	}{
		{name: "no kubelet"},
		{name: "a torn state", torn: "torn {", want: shares + "cpu_manager_state is no JSON"},
		{name: "the state", unreadable: "cpu_manager_state", want: shares},
		{name: "its configuration", unreadable: "config.yaml", want: keeps},
		{name: "its flags", unreadable: "kubeadm-flags.env", want: keeps},
		{name: "no YAML", config: "a: [", want: keeps + "config.yaml is no configuration of a kubelet"},
		{name: "another configuration", config: "kubeReserved: 1", want: keeps + "config.yaml is no"},
		{name: "an amount", config: "systemReserved: {cpu: 2k}", want: keeps + `"2k" is not an amount of CPU`},
		{name: "CPUs", config: "reservedSystemCPUs: all", want: keeps},
		{name: "not where it is said to be", given: true, want: shares + "open /"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"cpu_manager_state": c.torn, "config.yaml": c.config} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c.unreadable != "" {
			if err := os.Mkdir(filepath.Join(dir, c.unreadable), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		k := Files{Dirs: []string{dir, t.TempDir()}, Given: c.given} // that the second has nothing changes nothing
		if got := k.Owner(); !strings.HasPrefix(got, c.want) || got != "" && c.want == "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestOfHost: a given folder means that there is a kubelet.
func TestOfHost(t *testing.T) {
	t.Setenv(Var, "")
	if k := OfHost(); k.Given || k.Dirs[0] != "/var/lib/kubelet" {
		t.Errorf("%+v", k)
	}
	dir := t.TempDir()
	t.Setenv(Var, dir)
	if k := OfHost(); !k.Given || len(k.Dirs) != 1 || k.Dirs[0] != dir {
		t.Errorf("%+v", k)
	}
}
