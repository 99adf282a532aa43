package workload

import (
	"slices"
	"testing"
)

func TestAbove(t *testing.T) {
	for group, want := range map[string][]string{"/a/b/c": {"/a/b", "/a"}, "/a": nil, "/": nil, "": nil} {
		if got := slices.Collect(Above(group)); !slices.Equal(got, want) {
			t.Errorf("above %q: %v, want %v", group, got, want)
		}
	}
	for range Above("/a/b/c") { // ends when its caller does
		break
	}
}
