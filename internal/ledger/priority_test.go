package ledger

import (
	"testing"

	"plimsoll/internal/plan"
)

// TestPriority: while an intent of colocation claims a file, bandwidth does not write it, whatever stands there.
func TestPriority(t *testing.T) {
	s := newShelf(t, plan.Quota, "400ms", "50ms")
	high, low := s.wanted[0], plan.Intent{Key: s.key, Value: "900ms", Release: true}
	high.Priority = plan.ForColocation
	s.wanted = []plan.Intent{low}
	s.turn()
	if s.file != "900ms" || len(s.ledger.Claimed(plan.ForColocation)) > 0 {
		t.Fatalf("bandwidth alone: the file holds %s", s.file)
	}
	s.wanted = []plan.Intent{high, low}
	s.turns(3)
	if e := s.entry(); s.file != "50ms" || e.By != plan.ForColocation || e.Baseline != "400ms" {
		t.Errorf("both: the file holds %s, %+v", s.file, e)
	}
	s.facts.Declared = "500ms" // it is resized meanwhile
	s.file = "500ms"
	s.ledger.See(s.now, s.key, Sight{InFile: s.file, Declared: "500ms"})
	if e := s.entry(); e.By != plan.ForColocation || e.Intended != "50ms" || e.Ours() {
		t.Errorf("resized: %+v", e)
	}
	s.facts.Declared, s.file = "400ms", "400ms"
	s.turn()
	back := low
	back.Value = "400ms"
	s.wanted = []plan.Intent{back}
	s.turns(3)
	if s.file != "50ms" {
		t.Errorf("bandwidth restores another's claim to %s", s.file)
	}
	s.file = "400ms" // its owner puts it back: colocation's turn to answer
	s.wanted = []plan.Intent{low}
	s.turns(3)
	if s.file != "400ms" {
		t.Errorf("bandwidth writes %s into another's claim", s.file)
	}
	s.ledger.Claim(s.key, plan.ForBandwidth)
	s.turns(3)
	if s.file != "900ms" {
		t.Errorf("not claimed any more: the file holds %s", s.file)
	}
}
