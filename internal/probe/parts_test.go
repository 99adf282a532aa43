package probe

import (
	"errors"
	"testing"
)

// A part of which the kernel refuses two programs is missing once: metrics with a series twice are refused as a whole.
func TestMissingOnce(t *testing.T) {
	p, first := &Probe{}, errors.New("the first refusal")
	p.lacks(PartWakeups, first)
	p.lacks(PartPeriods, errors.New("another part's"))
	p.lacks(PartWakeups, errors.New("the second refusal"))
	if got := p.Missing(); len(got) != 2 || got[0].Part != PartWakeups || got[0].Err != first {
		t.Errorf("%+v", got)
	}
}
