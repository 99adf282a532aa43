package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// workload is what is read of a DaemonSet or a Job.
type workload struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ActiveDeadlineSeconds int // of a Job

		Template struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				HostPID, ShareProcessNamespace, HostNetwork, HostIPC bool
				ServiceAccountName                                   string
				AutomountServiceAccountToken                         *bool

				InitContainers, Containers []container
				Volumes                    []struct {
					Name     string
					HostPath *struct{ Path, Type string }
				}
			}
		}
	}
}

type container struct {
	Name         string
	Command      []string
	Args         []string
	Env          []struct{ Name, Value string }
	VolumeMounts []struct {
		Name, MountPath   string
		ReadOnly          bool
		RecursiveReadOnly string
	}
	SecurityContext struct {
		Privileged, AllowPrivilegeEscalation, ReadOnlyRootFilesystem *bool
		AppArmorProfile, SeccompProfile                              *struct{ Type, LocalhostProfile string }
		SELinuxOptions                                               *struct{ Type string }
		Capabilities                                                 struct{ Add, Drop []string }
		RunAsUser, RunAsGroup                                        int64
	}
}

// workloads renders the chart and reads what makes pods, hooks too: two DaemonSets and a Job, by name.
func workloads(t *testing.T, values map[string]any, version string) map[string]workload {
	t.Helper()
	hooks, manifests, err := objects(engine.Render, chart, values, version)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, h := range hooks {
		texts = append(texts, h.Manifest)
	}
	for _, m := range manifests {
		texts = append(texts, m.Content)
	}
	found := map[string]workload{}
	for _, text := range texts {
		var w workload
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Spec.Template.Spec.Containers) > 0 {
			found[w.Metadata.Name] = w
		}
	}
	if len(found) != 3 {
		t.Fatalf("%d workloads", len(found))
	}
	return found
}

// TestConfinement: the profiles and types that the values name are in every container, those of hooks too. Before 1.30
// AppArmor's profile is an annotation for each container.
func TestConfinement(t *testing.T) {
	const annotation = "container.apparmor.security.beta.kubernetes.io/"
	for _, c := range []struct {
		version, asked, seLinux, field, annotated string
	}{
		{"v1.34.0", "", "spc_t", "", ""},
		{"v1.34.0", "RuntimeDefault", "container_engine_t", "RuntimeDefault", ""},
		{"v1.34.0", "Unconfined", "spc_t", "Unconfined", ""},
		{"v1.30.0", "RuntimeDefault", "spc_t", "RuntimeDefault", ""},
		{"v1.29.0", "RuntimeDefault", "spc_t", "", "runtime/default"},
		{"v1.28.0", "Unconfined", "spc_t", "", "unconfined"},
		{"v1.28.0", "", "spc_t", "", ""},
	} {
		for name, w := range workloads(t, map[string]any{"appArmorProfile": c.asked, "seLinuxType": c.seLinux},
			c.version) {
			for _, ct := range append(w.Spec.Template.Spec.InitContainers, w.Spec.Template.Spec.Containers...) {
				s := ct.SecurityContext
				field := ""
				if s.AppArmorProfile != nil {
					field = s.AppArmorProfile.Type
				}
				if got := w.Spec.Template.Metadata.Annotations[annotation+ct.Name]; field != c.field ||
					got != c.annotated {
					t.Errorf("%+v: %s/%s has the field %q and the annotation %q", c, name, ct.Name, field, got)
				}
				if ct.Name == "serve" || ct.Name == "wait" { // they write nothing: the runtime's own type does
					if s.SELinuxOptions != nil || len(s.Capabilities.Add) > 0 || s.RunAsUser == 0 {
						t.Errorf("%+v: %s has %+v", c, ct.Name, s)
					}
					continue
				}
				if s.SELinuxOptions == nil || s.SELinuxOptions.Type != c.seLinux {
					t.Errorf("%+v: %s/%s has SELinux's %+v", c, name, ct.Name, s.SELinuxOptions)
				}
			}
		}
	}
}

// TestShippedProfiles: with Localhost each container has the profile of its program, and the file of each is shipped.
func TestShippedProfiles(t *testing.T) {
	programs := map[string]string{"plimsoll": "plimsoll", "serve": "plimsoll-serve", "lease": "plimsoll-lease",
		"restore": "plimsoll", "restored": "plimsoll", "wait": "plimsoll"}
	apparmor, err := os.ReadFile("../../apparmor/plimsoll")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1.34.0", "v1.28.0"} {
		seen := 0
		for name, w := range workloads(t, map[string]any{"seccompProfile": "Localhost",
			"appArmorProfile": "Localhost"}, version) {
			for _, ct := range append(w.Spec.Template.Spec.InitContainers, w.Spec.Template.Spec.Containers...) {
				seen++
				program, s := programs[ct.Name], ct.SecurityContext
				if s.SeccompProfile == nil || s.SeccompProfile.Type != "Localhost" ||
					s.SeccompProfile.LocalhostProfile != "plimsoll/"+program+".json" {
					t.Errorf("%s/%s has seccomp's %+v", name, ct.Name, s.SeccompProfile)
				}
				if _, err := os.Stat("../../seccomp/" + program + ".json"); err != nil {
					t.Error(err)
				}
				loaded :=
					w.Spec.Template.Metadata.Annotations["container.apparmor.security.beta.kubernetes.io/"+ct.Name]
				if s.AppArmorProfile != nil {
					loaded = "localhost/" + s.AppArmorProfile.LocalhostProfile
				}
				if loaded != "localhost/"+program || !strings.Contains(string(apparmor), "\nprofile "+program+" ") {
					t.Errorf("%s: %s/%s has AppArmor's %q", version, name, ct.Name, loaded)
				}
			}
		}
		if seen != len(programs) {
			t.Errorf("%d containers", seen)
		}
	}
}

// TestAccountOfRestore: the pods that put everything back have the agent's account, by which a cluster's policies
// permit the folders of the node, and not its token.
func TestAccountOfRestore(t *testing.T) {
	all := workloads(t, map[string]any{"name": "other"}, kubeVersion)
	agent, restore := all["other"].Spec.Template.Spec, all["other-restore"].Spec.Template.Spec
	if token := restore.AutomountServiceAccountToken; agent.ServiceAccountName != "other" ||
		restore.ServiceAccountName != "other" || token == nil || *token {
		t.Errorf("the agent's account is %q, the other %q", agent.ServiceAccountName, restore.ServiceAccountName)
	}
}

// TestUninstallEndsBeforeHelm: the Job is over, and says which nodes are not done, before Helm stops to wait for it.
func TestUninstallEndsBeforeHelm(t *testing.T) {
	const helmTimeout = 300 // seconds: default of `helm uninstall --timeout`
	job := workloads(t, nil, kubeVersion)["plimsoll-uninstall"].Spec
	if job.ActiveDeadlineSeconds == 0 || job.ActiveDeadlineSeconds >= helmTimeout {
		t.Errorf("it takes up to %d s, and Helm waits for %d s", job.ActiveDeadlineSeconds, helmTimeout)
	}
}

// TestInstallation: an uninstallation asks for the agent of its own DaemonSet.
func TestInstallation(t *testing.T) {
	const own = "--installation=" + namespace + "/other"
	all := workloads(t, map[string]any{"name": "other"}, kubeVersion)
	agent, restore := all["other"].Spec.Template.Spec.Containers[0],
		all["other-restore"].Spec.Template.Spec.InitContainers[0]
	if !slices.Contains(agent.Args, own) || !slices.Contains(restore.Args, own) {
		t.Errorf("the agent is run by %q, and retired by %q", agent.Args, restore.Args)
	}
}

// TestLeastPrivilege: no container of the chart has more than it needs and was given,
// with events on and off.
func TestLeastPrivilege(t *testing.T) {
	more := []any{"SYS_PTRACE", "SYS_NICE"}
	for _, c := range []struct {
		events      map[string]any
		extra       []any
		want, atEnd string
	}{
		{map[string]any{"enabled": true}, nil, "BPF PERFMON SYS_NICE", "SYS_NICE"},
		{map[string]any{"enabled": true, "memlock": true}, nil, "BPF PERFMON SYS_NICE SYS_RESOURCE", "SYS_NICE"},
		{map[string]any{"enabled": false, "memlock": true}, nil, "", "SYS_NICE"},
		{map[string]any{"enabled": true}, more, "BPF PERFMON SYS_NICE SYS_PTRACE", "SYS_NICE SYS_PTRACE"},
		{map[string]any{"enabled": false}, more, "SYS_PTRACE SYS_NICE", "SYS_NICE SYS_PTRACE"},
	} {
		values := map[string]any{"events": c.events}
		if c.extra != nil {
			values["extraCapabilities"] = c.extra
		}
		for name, w := range workloads(t, values, kubeVersion) {
			for _, ct := range append(w.Spec.Template.Spec.InitContainers, w.Spec.Template.Spec.Containers...) {
				s, want := ct.SecurityContext, map[string]string{"plimsoll": c.want, "lease": c.atEnd,
					"restore": c.atEnd}[ct.Name]
				if got := strings.Join(s.Capabilities.Add, " "); got != want ||
					strings.Join(s.Capabilities.Drop, " ") != "ALL" {
					t.Errorf("%s/%s adds %q, not %q, and drops %q", name, ct.Name, got, want, s.Capabilities.Drop)
				}
				if s.Privileged != nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
					s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.SeccompProfile == nil ||
					s.SeccompProfile.Type != "RuntimeDefault" {
					t.Errorf("%s/%s: %+v", name, ct.Name, s)
				}
			}
		}
	}
}
