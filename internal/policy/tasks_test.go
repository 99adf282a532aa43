package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
)

func TestSlicesOfLevels(t *testing.T) {
	levels := Levels(forest(map[string]strategy.CPUQOS{"/kubepods/burstable/pod1/c": online(),
		"/kubepods/besteffort/pod2/c": offline(), "/lab/web": online(), "/lab/other": {}}))
	can := Machine{Idle: true, Slice: true, LeastWeight: 2}
	for _, c := range []struct {
		mechanism strategy.Mechanism
		slice     time.Duration
		machine   Machine
		want      map[string]string
	}{
		{strategy.MechanismSlice, 0, can, map[string]string{"/kubepods/burstable slice": "100µs",
			"/lab/web slice": "100µs"}},
		{strategy.MechanismSlice, 3 * time.Millisecond, can,
			map[string]string{"/kubepods/burstable slice": "3ms", "/lab/web slice": "3ms"}},
		{strategy.MechanismWeight, 3 * time.Millisecond, can, map[string]string{"/kubepods/besteffort weight": "2",
			"/kubepods/burstable slice": "3ms", "/lab/web slice": "3ms"}},
		{strategy.MechanismWeight, 3 * time.Millisecond, Machine{LeastWeight: 2},
			map[string]string{"/kubepods/besteffort weight": "2"}},
		{strategy.MechanismSchedExt, 3 * time.Millisecond, can,
			map[string]string{"/kubepods/besteffort weight": "2", "/kubepods/besteffort/pod2 idle": "1"}},
		{strategy.MechanismNone, 3 * time.Millisecond, can, map[string]string{}},
	} {
		if diff := cmp.Diff(c.want, valuesOf(Colocate(c.mechanism, c.slice, levels, c.machine))); diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", c.mechanism, c.slice, diff)
		}
	}
}

// TestNoSlices: a slice that is asked for and cannot be set is no secret.
func TestNoSlices(t *testing.T) {
	cannot := Machine{SliceWhy: "without CAP_SYS_NICE"}
	for _, c := range []struct {
		mechanism strategy.Mechanism
		slice     time.Duration
		machine   Machine
		want      string
	}{
		{strategy.MechanismWeight, 3 * time.Millisecond, cannot,
			"a slice of 3ms is asked for and not set: without CAP_SYS_NICE"},
		{strategy.MechanismWeight, 0, cannot, ""},
		{strategy.MechanismWeight, 3 * time.Millisecond, Machine{Slice: true}, ""},
		{strategy.MechanismSchedExt, 3 * time.Millisecond, cannot, ""},
	} {
		if got := NoSlices(c.mechanism, c.slice, c.machine); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.mechanism, c.slice, got, c.want)
		}
	}
}

// TestCoreScheduling: offline tasks have the one cookie, stand back as without it, and never beside Group Identity.
func TestCoreScheduling(t *testing.T) {
	levels := Levels(forest(map[string]strategy.CPUQOS{"/lab/web": online(), "/lab/batch": offline(),
		"/kubepods/besteffort/pod2/c": offline()}))
	m := Machine{Idle: true, CoreSched: true, Cookie: "4711", LeastWeight: 2}
	want := map[string]string{"/lab/batch idle": "1", "/lab/batch cookie": "4711", "/kubepods/besteffort weight": "2",
		"/kubepods/besteffort cookie": "4711", "/kubepods/besteffort/pod2 idle": "1"}
	if diff := cmp.Diff(want, valuesOf(Colocate(strategy.MechanismCoreSched, 0, levels, m))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.Identity = true
	if got, why := Choose(strategy.MechanismCoreSched, m); got != strategy.MechanismGroupIdentity {
		t.Errorf("beside Group Identity: %s (%s)", got, why)
	}
}
