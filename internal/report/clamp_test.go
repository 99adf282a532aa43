package report

import (
	"fmt"
	"testing"
)

// TestClampsAreBounded: however many requests are clamped, a status has the first of them, and their number.
func TestClampsAreBounded(t *testing.T) {
	var s Status
	for i := range 3 * mostClamped {
		s.AddClamps([]Clamp{{Object: fmt.Sprintf("Pod %04d", 3*mostClamped-i)}}, 1)
	}
	s.AddClamps(nil, 1000)
	if s.ClampedNow != 3*mostClamped+1000 || len(s.Clamped) != mostClamped {
		t.Fatalf("%d of %d", len(s.Clamped), s.ClampedNow)
	}
	if first, last := s.Clamped[0].Object, s.Clamped[mostClamped-1].Object; first != "Pod 0001" || last != fmt.Sprintf("Pod %04d", mostClamped) {
		t.Errorf("from %s to %s", first, last)
	}
}
