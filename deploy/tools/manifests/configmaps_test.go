package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"
)

// inCluster renders for a cluster that has some namespaces.
type inCluster []string

func (c inCluster) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	var objects []runtime.Object
	for _, name := range c {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
			"kind": "Namespace", "metadata": map[string]any{"name": name}}})
	}
	return fake.NewSimpleDynamicClient(runtime.NewScheme(),
		objects...).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}), false, nil
}

func (c inCluster) render(chart *helm.Chart, values chartutil.Values) (map[string]string, error) {
	return engine.RenderWithClientProvider(chart, values, c)
}

// TestConfigMaps: the agent is told to read the ConfigMaps of namespaces that exist or that the administrator names,
// and may read these and no others: by a Role in each namespace, so that one that somebody makes later is closed to it.
func TestConfigMaps(t *testing.T) {
	const own, ack = "plimsoll/slo-controller-config", "kube-system/ack-slo-config"
	const koordinator = "koordinator-system/slo-controller-config,koordinator-system/ack-slo-pod-config"
	compatible := func(v any) map[string]any {
		return map[string]any{"compatibility": map[string]any{"koordinator": v}}
	}
	plain, with := inCluster{"kube-system"}, inCluster{"kube-system", "koordinator-system"}
	for _, c := range []struct {
		name    string
		cluster inCluster
		values  map[string]any
		want    string
	}{
		{"without Koordinator", plain, nil, own + "," + ack},
		{"with Koordinator", with, nil, own + "," + ack + "," + koordinator},
		{"it will come", plain, compatible(true), own + "," + ack + "," + koordinator},
		{"the same as --set-string", plain, compatible("true"), own + "," + ack + "," + koordinator},
		{"not wanted", with, compatible(false), own + "," + ack},
		{"not wanted, as --set-string", with, compatible("false"), own + "," + ack},
		{"others", with, map[string]any{"configMaps": []any{"a/b", "c/d", "a/e", "a/b"}}, "a/b,c/d,a/e"},
	} {
		files, err := renderBy(c.cluster.render, chart, c.values, kubeVersion)
		if err != nil {
			t.Fatal(err)
		}
		told, may := configMapsOf(t, string(files["plimsoll.yaml"]))
		if told != c.want {
			t.Errorf("%s: it is told to read %s, want %s", c.name, told, c.want)
		}
		want := strings.Split(c.want, ",")
		slices.Sort(want)
		if diff := cmp.Diff(want, may); diff != "" {
			t.Errorf("%s: it may read (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := render(chart, compatible("maybe"), kubeVersion); err == nil {
		t.Error("koordinator: maybe is taken")
	}
}

// configMapsOf reads which ConfigMaps the agent is told to read, and which its account may.
func configMapsOf(t *testing.T, manifest string) (told string, may []string) {
	t.Helper()
	bound := map[string]bool{}
	for _, document := range strings.Split(manifest, "\n---\n") {
		var o struct {
			object  `json:",inline"`
			RoleRef struct{ Kind, Name string }
			Rules   []struct{ Resources, ResourceNames, Verbs []string }
			Spec    struct {
				Template struct {
					Spec struct{ Containers []container }
				}
			}
			Subjects []struct{ Name, Namespace string }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		for _, ct := range o.Spec.Template.Spec.Containers {
			for _, arg := range ct.Args {
				if names, ok := strings.CutPrefix(arg, "--kube-configmaps="); ok {
					told = names
				}
			}
		}
		if o.Kind == "RoleBinding" && o.RoleRef.Kind == "Role" && len(o.Subjects) == 1 &&
			o.Subjects[0].Name == "plimsoll" && o.Subjects[0].Namespace == namespace {
			bound[o.Metadata.Namespace+"/"+o.RoleRef.Name] = true
		}
		for _, r := range o.Rules {
			if !slices.Contains(r.Resources, "configmaps") {
				continue
			}
			if o.Kind != "Role" || len(r.ResourceNames) == 0 ||
				!slices.Equal(r.Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("%s %s: %+v", o.Kind, o.Metadata.Name, r)
			}
			for _, name := range r.ResourceNames {
				may = append(may, o.Metadata.Namespace+"/"+name)
			}
			defer func() {
				if !bound[o.Metadata.Namespace+"/"+o.Metadata.Name] {
					t.Errorf("Role %s/%s is bound to nobody", o.Metadata.Namespace, o.Metadata.Name)
				}
			}()
		}
	}
	slices.Sort(may)
	return told, may
}
