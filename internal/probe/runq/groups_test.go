package runq

import (
	"math"
	"testing"

	"plimsoll/internal/cpu"
)

func TestFacts(t *testing.T) {
	f := facts(Group{Request: 1.2, CPUs: cpu.Set{0, 3, 64}, Watched: true, Class: 2})
	if f.Share != 2 || f.Watched != 1 || f.Class != 2 || f.Allowed[0] != 0b1001 || f.Allowed[1] != 1 ||
		f.Allowed[2] != 0 {
		t.Errorf("%+v", f)
	}
	if f := facts(Group{}); f.Share != 0 || f.Watched != 0 || f.Allowed[0] != math.MaxUint64 ||
		f.Allowed[15] != math.MaxUint64 {
		t.Errorf("an unknown group: %+v", f)
	}
}
