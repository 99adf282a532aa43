package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const chart = "../../helm/plimsoll"

// TestUnknownValues: a value that the chart does not have, or of another type, or that cannot work, is an error that
// names it.
func TestUnknownValues(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"enable":                         {"nri": map[string]any{"enable": false}},
		"memlok":                         {"events": map[string]any{"memlok": true}},
		"hostPid":                        {"hostPid": false},
		"/nri/folder":                    {"nri": map[string]any{"folder": "run/nri"}},
		"/extraArgs":                     {"extraArgs": "--verbose"},
		"localPort":                      {"port": 12780},
		"/terminationGracePeriodSeconds": {"terminationGracePeriodSeconds": 9},
		"--state-dir=/x":                 {"extraArgs": []any{"--verbose", "--state-dir=/x"}},
		"/serve/user":                    {"serve": map[string]any{"user": 1 << 31}},
		"/enabled":                       {"enabled": false},
		"--cgroup-root would":            {"extraArgs": []any{"--cgroup-root", "/x"}},
	} {
		if _, err := render(chart, values, kubeVersion); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", values, err)
		}
	}
}

// TestSchemaIsComplete: the schema knows the values that there are, and of a chart in a chart `global`, which Helm
// gives it, and `enabled`, by which others switch it on.
func TestSchemaIsComplete(t *testing.T) {
	var schema struct{ Properties map[string]any }
	var values map[string]any
	read := func(file string, to any, unmarshal func([]byte, any) error) {
		data, err := os.ReadFile(chart + "/" + file)
		if err == nil {
			err = unmarshal(data, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read("values.schema.json", &schema, json.Unmarshal)
	read("values.yaml", &values, func(data []byte, to any) error { return yaml.Unmarshal(data, to) })
	values["global"], values["enabled"] = nil, nil
	known, there := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(values))
	if !slices.Equal(known, there) {
		t.Errorf("the schema has %q, the values %q", known, there)
	}
}

// TestKubeletFolder: the kubelet's folder, in which secrets are, is mounted read-only where CPUs are shared out or it
// is asked for, and nowhere else, with the volumes of pods below it where Kubernetes can do that; the agent knows in
// any case where it would be.
func TestKubeletFolder(t *testing.T) {
	for _, c := range []struct {
		policy, version, below string
		asked, want            bool
	}{{"", kubeVersion, "", false, false}, {"none", kubeVersion, "", false, false},
		{"cpuset", kubeVersion, "IfPossible", false, true}, {"auto", "v1.31.0", "IfPossible", false, true},
		{"auto", "v1.30.9", "", false, true}, {"none", kubeVersion, "IfPossible", true, true}} {
		values := map[string]any{"kubeletDir": "/var/lib/k0s/kubelet", "mountKubeletDir": c.asked}
		if c.policy != "" {
			values["config"] = map[string]any{"reserve": map[string]any{"policy": c.policy}}
		}
		for name, w := range workloads(t, values, c.version) {
			mounted, from, at := false, "", ""
			for _, v := range w.Spec.Template.Spec.Volumes {
				if v.Name == "kubelet" {
					from = v.HostPath.Path + " " + v.HostPath.Type
				}
			}
			for _, ct := range append(w.Spec.Template.Spec.InitContainers, w.Spec.Template.Spec.Containers...) {
				for _, m := range ct.VolumeMounts {
					mounted = mounted || m.Name == "kubelet" && m.ReadOnly && m.RecursiveReadOnly == c.below &&
						m.MountPath == "/host/kubelet"
				}
				for _, e := range ct.Env {
					if e.Name == "PLIMSOLL_KUBELET_DIR" {
						at = e.Value
					}
				}
			}
			want := c.want && name == "plimsoll"
			if mounted != want || (from == "/var/lib/k0s/kubelet Directory") != want ||
				(at == "/host/kubelet") != (name == "plimsoll") {
				t.Errorf("policy %q: %s has mounted %v, from %q, and looks at %q", c.policy, name, mounted, from, at)
			}
		}
	}
}

// TestInAnotherChart: its values have what the condition plimsoll.enabled of the other chart asks for.
func TestInAnotherChart(t *testing.T) {
	if _, err := render(chart, map[string]any{"enabled": true, "global": map[string]any{}}, kubeVersion); err != nil {
		t.Error(err)
	}
}

// TestExtraArgs: they come after the chart's own.
func TestExtraArgs(t *testing.T) {
	agent := workloads(t, map[string]any{"extraArgs": []any{"--verbose"}},
		kubeVersion)["plimsoll"].Spec.Template.Spec.Containers[0]
	if n := len(agent.Args); n < 2 || agent.Args[0] != "run" || agent.Args[n-1] != "--verbose" {
		t.Errorf("%q", agent.Args)
	}
}
