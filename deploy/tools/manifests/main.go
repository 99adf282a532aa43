// Command manifests lints the Helm chart and renders it into plain manifests: what is installed, and apart from it the
// DaemonSet that puts everything back before an uninstallation. With -check it only tells whether they are as rendered.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "plimsoll"
	// kubeVersion is the one that is rendered for: fields that an older API server does not know are dropped by it.
	kubeVersion = "v1.34.0"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a manifest is not as rendered")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: manifests [-check] CHART FOLDER"); flag.PrintDefaults() }
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(chart, folder string, check bool) error {
	if err := linted(chart); err != nil {
		return err
	}
	files, err := render(chart, nil, kubeVersion)
	if err != nil {
		return err
	}
	var wrong error
	for name, text := range files {
		path := filepath.Join(folder, name)
		if check {
			if was, err := os.ReadFile(path); err != nil || !bytes.Equal(was, text) {
				wrong = errors.Join(wrong, fmt.Errorf("%s is not what the chart renders; hint: make manifests", path))
			}
		} else if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return wrong
}

// linted is helm lint, with the values as they are and with every switch of the chart the other way.
func linted(chart string) error {
	version, err := chartutil.ParseKubeVersion(kubeVersion)
	if err != nil {
		return err
	}
	var wrong error
	for _, values := range []map[string]any{nil, {
		"events":         map[string]any{"enabled": true, "memlock": true},
		"compatibility":  map[string]any{"koordinator": true},
		"hostPID":        false,
		"lease":          map[string]any{"enabled": false},
		"resourceQuota":  map[string]any{"enabled": true},
		"nri":            map[string]any{"enabled": false},
		"seccompProfile": "Localhost",
		"podMonitor":     map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"uninstall":      map[string]any{"restore": false},
	}, {
		"events":            map[string]any{"enabled": false},
		"appArmorProfile":   "RuntimeDefault",
		"config":            map[string]any{"reserve": map[string]any{"policy": "auto"}},
		"extraCapabilities": []any{"SYS_PTRACE"},
		"hostPID":           false,
		"extraArgs":         []any{"--verbose"},
	}} {
		for _, m := range lint.AllWithKubeVersion(chart, values, namespace, version).Messages {
			if m.Severity > support.InfoSev {
				wrong = errors.Join(wrong, fmt.Errorf("lint: %w", m))
			}
		}
	}
	return wrong
}

// render makes the files by name, for a version of Kubernetes and a cluster of which nothing is known.
func render(dir string, values map[string]any, version string) (map[string][]byte, error) {
	return renderBy(engine.Render, dir, values, version)
}

// renderer is an engine, which may know a cluster.
type renderer func(*helm.Chart, chartutil.Values) (map[string]string, error)

func renderBy(by renderer, dir string, values map[string]any, version string) (map[string][]byte, error) {
	hooks, manifests, err := objects(by, dir, values, version)
	if err != nil {
		return nil, err
	}
	const head = "# Rendered from deploy/helm/plimsoll by make manifests. Do not edit.\n"
	install := bytes.NewBufferString(head + "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + namespace +
		"\n  labels:\n    pod-security.kubernetes.io/enforce: privileged # hostPath and hostPID\n")
	for _, m := range manifests {
		fmt.Fprintf(install, "---\n%s\n", strings.TrimSpace(m.Content))
	}
	restore := bytes.NewBufferString(head)
	for _, h := range hooks {
		if h.Kind == "DaemonSet" {
			text, err := withoutHook(h.Manifest)
			if err != nil {
				return nil, err
			}
			restore.Write(text)
		}
	}
	return map[string][]byte{"plimsoll.yaml": install.Bytes(), "restore.yaml": restore.Bytes()}, nil
}

// objects are the chart's, the hooks apart from the others.
func objects(by renderer, dir string, values map[string]any, version string) ([]*release.Hook, []releaseutil.Manifest,
	error) {
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, nil, err
	}
	able := chartutil.DefaultCapabilities.Copy()
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, nil, err
	}
	able.KubeVersion = *parsed
	all, err := chartutil.ToRenderValues(chart, values,
		chartutil.ReleaseOptions{Name: "plimsoll", Namespace: namespace, IsInstall: true, Revision: 1}, able)
	if err != nil {
		return nil, nil, err
	}
	texts, err := by(chart, all)
	if err != nil {
		return nil, nil, err
	}
	for name := range texts {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(texts, name)
		}
	}
	return releaseutil.SortManifests(texts, able.APIVersions, releaseutil.InstallOrder)
}

// withoutHook takes off what makes an object a hook of Helm's.
func withoutHook(text string) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return nil, err
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "annotations")
	}
	return yaml.Marshal(object)
}
