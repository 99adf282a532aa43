package main

import (
	"slices"
	"strings"
	"testing"
)

// TestLease: beside the agent is a container that watches it: it has the same folders, sees its process, and can be
// left out. With the annotations of AppArmor it is named where it is there, and not otherwise.
func TestLease(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		for _, hostPID := range []bool{true, false} {
			values := map[string]any{"lease": map[string]any{"enabled": enabled}, "hostPID": hostPID,
				"appArmorProfile": "RuntimeDefault"}
			pod := workloads(t, values, "v1.28.0")["plimsoll"].Spec.Template
			at := slices.IndexFunc(pod.Spec.Containers, func(c container) bool { return c.Name == "lease" })
			if (at >= 0) != enabled || pod.Spec.HostPID != hostPID ||
				pod.Spec.ShareProcessNamespace != (enabled && !hostPID) {
				t.Errorf("enabled %v, hostPID %v: container %d, %+v", enabled, hostPID, at, pod.Spec)
			}
			if _, named :=
				pod.Metadata.Annotations["container.apparmor.security.beta.kubernetes.io/lease"]; named != enabled {
				t.Errorf("enabled %v: %v", enabled, pod.Metadata.Annotations)
			}
			if at < 0 {
				continue
			}
			agent, lease := pod.Spec.Containers[0], pod.Spec.Containers[at]
			if !slices.Equal(lease.Command, []string{"/plimsoll-lease"}) {
				t.Errorf("it runs %q", lease.Command)
			}
			for _, v := range agent.Env {
				if v.Name == "PLIMSOLL_CGROUP_ROOT" { // as the flag is said to all commands in its container
					agent.Args = append(agent.Args, "--cgroup-root="+v.Value)
				}
			}
			for _, arg := range lease.Args {
				if !slices.Contains(agent.Args, arg) {
					t.Errorf("the agent has no %s: %q", arg, agent.Args)
				}
			}
			mounts := map[string]string{}
			for _, m := range lease.VolumeMounts {
				mounts[m.Name] = m.MountPath
			}
			for _, m := range agent.VolumeMounts {
				if slices.Contains([]string{"cgroup", "state", "lock"}, m.Name) && mounts[m.Name] != m.MountPath {
					t.Errorf("the agent has %s in %s, it in %q", m.Name, m.MountPath, mounts[m.Name])
				}
			}
			if len(mounts) != 3 || !strings.HasPrefix(mounts["lock"], "/run/plimsoll-lock") {
				t.Errorf("mounted: %v", mounts)
			}
		}
	}
}
