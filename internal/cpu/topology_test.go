package cpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSiblings(t *testing.T) {
	topology := Topology{Places: []Place{{CPU: 0, Core: 7}, {CPU: 1, Core: 8}, {CPU: 2, Core: 7}, {CPU: 3, Core: 9}}}
	if diff := cmp.Diff(map[int]int{0: 2, 2: 0}, topology.Siblings()); diff != "" {
		t.Error(diff)
	}
}
