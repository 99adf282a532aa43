package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestServeHasNothingOfTheNode: what the network reaches is no root, asks who reads, and has no folder but that of the
// agent's socket for readers and its own certificate, whatever else the pod has.
func TestServeHasNothingOfTheNode(t *testing.T) {
	all := map[string]any{"serve": map[string]any{"tlsSecret": "tls"},
		"config": map[string]any{"reserve": map[string]any{"policy": "auto"}}}
	for _, values := range []map[string]any{nil, all} {
		pod := workloads(t, values, kubeVersion)["plimsoll"].Spec.Template.Spec
		if pod.HostNetwork || pod.HostIPC {
			t.Errorf("%v: the pod has the node's network or IPC", values)
		}
		onNode := map[string]bool{}
		for _, v := range pod.Volumes {
			onNode[v.Name] = v.HostPath != nil
		}
		at := slices.IndexFunc(pod.Containers, func(c container) bool { return c.Name == "serve" })
		serve := pod.Containers[at]
		if s := serve.SecurityContext; s.RunAsUser != 65532 || s.RunAsGroup != 65532 {
			t.Errorf("%v: it runs as user %d of group %d", values, s.RunAsUser, s.RunAsGroup)
		}
		if !slices.Contains(serve.Args, "--kube-auth") {
			t.Errorf("%v: it asks nobody who reads: %q", values, serve.Args)
		}
		var mounts []string
		for _, m := range serve.VolumeMounts {
			if mounts = append(mounts, m.Name); onNode[m.Name] || !m.ReadOnly {
				t.Errorf("%v: %s is of the node or can be written", values, m.Name)
			}
		}
		want := []string{"read"}
		if values != nil {
			want = append(want, "tls")
		}
		if diff := cmp.Diff(want, mounts); diff != "" {
			t.Errorf("%v: it has\n%s", values, diff)
		}
		if agent := pod.Containers[0]; !slices.Contains(agent.Args, "--listen=") {
			t.Errorf("%v: the agent listens: %q", values, agent.Args)
		}
	}
}

// TestUserOfServe: Helm reads a number of a values file as a float64, which a template spells 1.00065e+09.
func TestUserOfServe(t *testing.T) {
	values := map[string]any{"serve": map[string]any{"user": float64(1000650000)}}
	files, err := render(chart, values, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"supplementalGroups: [1000650000]", "--read-group=1000650000\n",
		"runAsUser: 1000650000\n", "runAsGroup: 1000650000\n"} {
		if !strings.Contains(string(files["plimsoll.yaml"]), want) {
			t.Errorf("it does not have %q", want)
		}
	}
}

// TestRolesOfTheChart: what the roles of the chart permit, besides the ConfigMaps that have a test of their own.
func TestRolesOfTheChart(t *testing.T) {
	files, err := render(chart, nil, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for document := range strings.SplitSeq(string(files["plimsoll.yaml"]), "\n---\n") {
		var o struct {
			object `json:",inline"`
			Rules  []struct{ APIGroups, Resources, NonResourceURLs, Verbs []string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		for _, r := range o.Rules {
			if !slices.Contains(r.Resources, "configmaps") {
				what := strings.Join(slices.Concat(r.APIGroups, r.Resources, r.NonResourceURLs), " ")
				got = append(got, o.Kind+" "+o.Metadata.Name+": "+strings.Join(r.Verbs,
					" ")+" of "+strings.TrimSpace(what))
			}
		}
	}
	want := []string{
		"ClusterRole plimsoll: get list watch of pods nodes",
		"ClusterRole plimsoll: create of events",
		"ClusterRole plimsoll: create of authentication.k8s.io tokenreviews",
		"ClusterRole plimsoll: create of authorization.k8s.io subjectaccessreviews",
		"Role plimsoll-viewer: get list of pods",
		"Role plimsoll-viewer: create of pods/portforward",
		"ClusterRole plimsoll-reader: get of / /assets/* /metrics",
		"ClusterRole plimsoll-reader: get of /plimsoll/api/v1/container /plimsoll/api/v1/snapshot",
		"ClusterRole plimsoll-reader: get of /plimsoll/api/v1/status /plimsoll/api/v1/report " +
			"/plimsoll/api/v1/view /plimsoll/api/v1/live",
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
