package report

import (
	"fmt"
	"testing"
)

// TestCutsAreBounded: however many requests are cut, a status has the first of them, and their number.
func TestCutsAreBounded(t *testing.T) {
	var s Status
	for i := range 3 * mostCuts {
		s.AddCuts([]Cut{{Object: fmt.Sprintf("Pod %04d", 3*mostCuts-i)}}, 1)
	}
	s.AddCuts(nil, 1000)
	if s.CutsNow != 3*mostCuts+1000 || len(s.Cuts) != mostCuts {
		t.Fatalf("%d of %d", len(s.Cuts), s.CutsNow)
	}
	if first, last := s.Cuts[0].Object, s.Cuts[mostCuts-1].Object; first != "Pod 0001" ||
		last != fmt.Sprintf("Pod %04d", mostCuts) {
		t.Errorf("from %s to %s", first, last)
	}
}
