package strategy

import (
	"errors"
	"math"
	"testing"
)

func of[T any](v T) *T { return &v }

func TestOverLaysOnlyWhatIsNamed(t *testing.T) {
	got := Patch{Policy: of(Auto), CFSQuotaBurstPercent: of(int64(200))}.Over(Default())
	want := Default()
	want.Policy, want.CFSQuotaBurstPercent = Auto, 200
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		patch Patch
		field string
	}{
		{"nothing said", Patch{}, ""},
		{"lowest values", Patch{CPUBurstPercent: of(int64(0)), CFSQuotaBurstPercent: of(int64(100)),
			CFSQuotaBurstPeriodSeconds: of(int64(-1)), SharePoolThresholdPercent: of(int64(0))}, ""},
		{"unknown policy", Patch{Policy: of(Policy("Auto"))}, "policy"},
		{"burst below zero", Patch{CPUBurstPercent: of(int64(-1))}, "cpuBurstPercent"},
		{"burst too large", Patch{CPUBurstPercent: of(int64(10001))}, "cpuBurstPercent"},
		{"a cap below the limit", Patch{CFSQuotaBurstPercent: of(int64(99))}, "cfsQuotaBurstPercent"},
		{"a start that never ends", Patch{StartupSeconds: of(int64(601))}, "startupSeconds"},
		{"a start below the limit", Patch{StartupBurstPercent: of(int64(99))}, "startupBurstPercent"},
		{"seconds below -1", Patch{CFSQuotaBurstPeriodSeconds: of(int64(-2))}, "cfsQuotaBurstPeriodSeconds"},
		{"a load line that asks for more than ever is", Patch{LoadLinePercent: of(100.0)}, "loadLinePercent"},
		{"no number", Patch{LoadLinePercent: of(math.NaN())}, "loadLinePercent"},
		{"a load line that asks for nothing", Patch{LoadLinePercent: of(49.9)}, "loadLinePercent"},
		{"no load line", Patch{LoadLinePercent: of(0.0)}, ""},
		{"three nines", Patch{LoadLinePercent: of(99.9)}, ""},
		{"above the whole machine", Patch{SharePoolThresholdPercent: of(int64(101))}, "sharePoolThresholdPercent"},
	} {
		var field *FieldError
		err := c.patch.Check()
		if errors.As(err, &field); (err != nil) != (c.field != "") || err != nil && field.Field != c.field {
			t.Errorf("%s: %v, want field %q", c.name, err, c.field)
		}
	}
}

func TestPolicies(t *testing.T) {
	for p, want := range map[Policy][2]bool{None: {}, CPUBurstOnly: {true, false}, CFSQuotaBurstOnly: {false, true},
		Auto: {true, true}} {
		if got := [2]bool{p.Burst(), p.Quota()}; got != want {
			t.Errorf("%s: burst and quota %v, want %v", p, got, want)
		}
	}
}
