package probe

import (
	"errors"
	"slices"
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

// A program that cannot be attached disables its own part, and no other, as one that cannot be loaded does.
func TestAttachEachPart(t *testing.T) {
	for _, c := range []struct {
		refused  []string
		use      bool
		missing  []string
		attached int // programs; 0: the probe does not open
	}{
		{nil, true, nil, 7},
		{[]string{kernelProgSchedSwitch}, true, nil, 0},
		{wakeups(), true, []string{PartWakeups}, 4},
		{[]string{kernelProgHrtimerExpireEntry}, true, []string{PartPeriods}, 6},
		{[]string{kernelProgSchedStatRuntimeActive}, true, []string{PartPeriods}, 5},
		{[]string{kernelProgSchedStatRuntime}, true, []string{PartForecast, PartPeriods}, 4},
		{[]string{kernelProgSchedStatRuntime}, false, []string{PartForecast}, 4},
	} {
		p, attached := &Probe{}, 0
		err := p.attach(func(name string) error {
			if slices.Contains(c.refused, name) {
				return errors.New("refused")
			}
			attached++
			return nil
		}, c.use)
		var missing []string
		for _, m := range p.Missing() {
			missing = append(missing, m.Part)
		}
		if slices.Contains(missing, PartPeriods) {
			if err := p.openRecords(Options{Use: true}); err != nil || !errors.Is(p.Record(true), ErrNoPeriods) {
				t.Errorf("without %v: periods are recorded, %v", c.refused, err)
			}
		}
		if (err != nil) != (c.attached == 0) || attached != c.attached || !slices.Equal(missing, c.missing) {
			t.Errorf("without %v: %d programs, missing %v, %v", c.refused, attached, missing, err)
		}
	}
}
