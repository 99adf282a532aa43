package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestLabels: namespace, pod and container are what Kubernetes calls them, and nothing loses its name.
func TestLabels(t *testing.T) {
	for name, c := range map[string]struct {
		of                        Container
		namespace, pod, container string
	}{
		"a container of a pod": {Container{Name: "default/web/nginx", Pod: "default/web", Level: "container"},
			"default", "web", "nginx"},
		"the pod": {Container{Name: "default/web", Pod: "default/web", Level: "pod"}, "default",
			"web", ""},
		"a pod without a name": {Container{Name: "pod 0b5a", Pod: "pod 0b5a", Level: "pod"}, "", "pod 0b5a", ""},
		"a container of that": {Container{Name: "0123456789ab", Pod: "pod 0b5a", Level: "container"}, "",
			"pod 0b5a", "0123456789ab"},
		"one without a name in a pod": {Container{Name: "0123456789ab", Pod: "default/web", Level: "container"},
			"default", "web", "0123456789ab"},
		"a container of Docker": {Container{Name: "shop-db-1", Level: "container"}, "", "", "shop-db-1"},
		"a service":             {Container{Name: "nginx.service", Level: "container"}, "", "", "nginx.service"},
		"a plain group":         {Container{Name: "/lab/a", Level: "container"}, "", "", "/lab/a"},
		"one in a group with a limit": {Container{Name: "/lab/a", Pod: "/lab", Level: "container"}, "", "/lab",
			"/lab/a"},
		"that group":               {Container{Name: "/lab", Pod: "/lab", Level: "pod"}, "", "/lab", ""},
		"a name that is not UTF-8": {Container{Name: "\xff", Level: "container"}, "", "", "\uFFFD"},
	} {
		c.of.Cgroup, c.of.Runtime = "/g", "r"
		want := []string{"/g", c.namespace, c.pod, c.container, c.of.Level, "r"}
		if diff := cmp.Diff(want, c.of.labels()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLabelsAreBounded: no name makes a label that is long, unprintable or the same as that of another long name.
func TestLabelsAreBounded(t *testing.T) {
	longest := strings.Repeat("x", longestLabel)
	if label(longest) != longest {
		t.Errorf("%q is cut", longest)
	}
	seen := map[string]string{}
	for _, name := range []string{longest + "a", longest + "b", strings.Repeat("\x1b", 4096),
		strings.Repeat("\x1b", 4095) + "ü",
		strings.Repeat("ü", 200), strings.Repeat("\xff", 300), "\u202e" + longest} {
		l := label(name)
		if len(l) > longestLabel || !utf8.ValidString(l) ||
			strings.ContainsFunc(l, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%d bytes: %q", len(l), l)
		}
		if other, ok := seen[l]; ok {
			t.Errorf("%q and %q have the same label", name, other)
		}
		seen[l] = name
	}
}
