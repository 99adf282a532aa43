package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// manifests are the objects of deploy/manifests, by kind and name.
func manifests(t *testing.T) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, file := range []string{"plimsoll.yaml", "restore.yaml"} {
		text, err := os.ReadFile("../../deploy/manifests/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
			var o map[string]any
			if err := dec.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all[o["kind"].(string)+"/"+at(o, "metadata", "name").(string)] = o
		}
	}
	return all
}

// at follows a path of keys; nil where there is nothing.
func at(o any, keys ...string) any {
	for _, k := range keys {
		m, ok := o.(map[string]any)
		if !ok {
			return nil
		}
		o = m[k]
	}
	return o
}

func items(o any, keys ...string) []map[string]any {
	var list []map[string]any
	all, _ := at(o, keys...).([]any)
	for _, x := range all {
		list = append(list, x.(map[string]any))
	}
	return list
}

func words(o any) []string {
	var list []string
	all, _ := o.([]any)
	for _, x := range all {
		list = append(list, x.(string))
	}
	return list
}

// TestManifestsCallWhatThereIs: every command and flag of the manifests is one of the binary's.
func TestManifestsCallWhatThereIs(t *testing.T) {
	called := map[string]bool{}
	for name, o := range manifests(t) {
		spec := at(o, "spec", "template", "spec")
		for _, c := range append(items(spec, "containers"), items(spec, "initContainers")...) {
			args := words(c["args"])
			if command := words(c["command"]); len(command) > 0 {
				called[strings.TrimPrefix(command[0], "/")] = true // its flags: cmd/plimsoll-lease
				continue
			}
			cmd, rest, err := newRoot().Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd.Name() == "plimsoll" {
				t.Errorf("%s: %q: %v", name, args, err)
				continue
			}
			called[cmd.Name()] = true
		}
	}
	for _, name := range []string{"run", "serve", "retire", "wait", "plimsoll-lease"} {
		if !called[name] {
			t.Errorf("nothing calls %s", name)
		}
	}
}

// TestManifestsAskForLittle: no privileged mode, no network of the node's, nothing but reading and Events at the API
// server, and no CPU limit for an agent against throttling.
func TestManifestsAskForLittle(t *testing.T) {
	all := manifests(t)
	for _, name := range []string{"DaemonSet/plimsoll", "DaemonSet/plimsoll-restore"} {
		spec := at(all[name], "spec", "template", "spec")
		if spec == nil || at(spec, "hostNetwork") != nil {
			t.Errorf("%s: %v", name, spec)
		}
		for _, c := range append(items(spec, "containers"), items(spec, "initContainers")...) {
			s := c["securityContext"]
			if at(s, "privileged") != nil || at(s, "allowPrivilegeEscalation") != false ||
				at(s, "readOnlyRootFilesystem") != true ||
				!slices.Equal(words(at(s, "capabilities", "drop")), []string{"ALL"}) ||
				at(s, "seccompProfile", "type") != "RuntimeDefault" {
				t.Errorf("%s: %s: %v", name, c["name"], s)
			}
			if at(c, "resources", "limits", "cpu") != nil || at(c, "resources", "requests", "cpu") == nil {
				t.Errorf("%s: %s: %v", name, c["name"], c["resources"])
			}
		}
	}
	agent := items(all["DaemonSet/plimsoll"], "spec", "template", "spec", "containers")[0]
	if caps := words(at(agent, "securityContext", "capabilities", "add")); !slices.Equal(caps,
		[]string{"BPF", "PERFMON", "SYS_NICE"}) {
		t.Errorf("capabilities: %v", caps)
	}
	var rights []string
	for _, r := range items(all["ClusterRole/plimsoll"], "rules") {
		named := ""
		if len(words(r["resourceNames"])) > 0 {
			named = " by name"
		}
		rights = append(rights, strings.Join(words(r["verbs"]), "+")+" "+strings.Join(words(r["resources"]), "+")+named)
	}
	if want := []string{"get+list+watch pods+nodes", "create events", "create tokenreviews",
		"create subjectaccessreviews"}; !slices.Equal(rights, want) {
		t.Errorf("rights: %q, want %q", rights, want)
	}
}

// TestExecFindsTheAgent: a command that is called in the agent's pod speaks to it without flags,
// as docs/RUNBOOK.md says.
func TestExecFindsTheAgent(t *testing.T) {
	agent := items(manifests(t)["DaemonSet/plimsoll"], "spec", "template", "spec", "containers")[0]
	state := newRoot().PersistentFlags().Lookup("state-dir").DefValue
	mounted := slices.ContainsFunc(items(agent, "volumeMounts"),
		func(m map[string]any) bool { return m["name"] == "state" && m["mountPath"] == state })
	if !mounted || !slices.Contains(words(agent["args"]), "--state-dir="+state) {
		t.Errorf("by default commands look into %s: %v", state, agent["args"])
	}
}
