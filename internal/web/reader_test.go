package web_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/kubeauth"
)

// TestReaderMayReadEverything: the chart's ClusterRole for readers, and the manifest that is rendered from it, permit
// each path of a site. The paths that need no permission are left out.
func TestReaderMayReadEverything(t *testing.T) {
	route := regexp.MustCompile(`HandleFunc\("GET (/[^"{]*)([^"]*)"`)
	var paths []string
	for _, file := range []string{"site.go", "look.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range route.FindAllStringSubmatch(string(text), -1) {
			path := m[1]
			if m[2] != "" && m[2] != "{$}" {
				path += "*"
			}
			if !slices.Contains([]string{"/healthz", "/readyz", "/livez"}, path) {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) < 9 {
		t.Fatalf("a site has more paths than %q", paths)
	}
	for _, file := range []string{"../../deploy/helm/plimsoll/templates/rbac.yaml",
		"../../deploy/manifests/plimsoll.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, role, found := strings.Cut(string(text), "-reader\n")
		if !found {
			t.Fatalf("%s: no ClusterRole for readers", file)
		}
		role, _, _ = strings.Cut(role, "\n---")
		var permitted []string
		for _, m := range regexp.MustCompile(`nonResourceURLs: \[([^\]]*)\]`).FindAllStringSubmatch(role, -1) {
			permitted = append(permitted, strings.Split(m[1], ", ")...)
		}
		for _, path := range paths {
			if !slices.Contains(permitted, kubeauth.Right(path)) {
				t.Errorf("%s: a reader may not read %s", file, path)
			}
		}
	}
}
