package journal

import (
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
)

// TestEntryScaled: what the kernel makes of an entry's values, and that a claim of it is kept.
func TestEntryScaled(t *testing.T) {
	const ms = time.Millisecond
	disk := NewMemory()
	j := openDisk(t, disk)
	c := claimOf("/a", plan.Quota, "10ms")
	c.Period, c.Quota = "5ms", "5ms"
	must(t, j.Claim(c))
	must(t, j.Intend(c.ID, c.Knob, "20ms"))
	must(t, j.Intend(c.ID, c.Knob, "30ms"))
	must(t, j.SetBaseline(c.ID, c.Knob, "15ms"))
	e, _ := j.Entry(c.ID, c.Knob)
	for _, x := range []struct {
		held, period time.Duration
		target       plan.Value
	}{
		{30 * ms, 5 * ms, "15ms"},
		{60 * ms, 10 * ms, "30ms"}, // ours, scaled
		{40 * ms, 10 * ms, "30ms"}, // the one before, scaled
		{20 * ms, 10 * ms, "30ms"}, // the original, scaled
		{70 * ms, 10 * ms, "15ms"}, // another program's
		{30 * ms, 10 * ms, "15ms"}, // a period of another program's
		{90 * ms, 15 * ms, "15ms"}, // no power of two
	} {
		if got := e.In(cpu.Bandwidth{Quota: x.held, Period: x.period}).Target(); got != x.target {
			t.Errorf("%v each %v: restores %s, want %s", x.held, x.period, got, x.target)
		}
	}
	scaled := e.In(cpu.Bandwidth{Quota: 240 * ms, Period: 40 * ms})
	must(t, j.Claim(scaled))
	again := openDisk(t, disk)
	for _, got := range []*Journal{j, again} {
		wantEntries(t, got.Entries(), scaled)
	}
	if scaled.Original != "80ms" || scaled.Last != "240ms" || scaled.Period != "40ms" || scaled.Quota != "40ms" {
		t.Errorf("%+v", scaled)
	}
	scaled.Period = ""
	if unknown := scaled.In(cpu.Bandwidth{Quota: 480 * ms, Period: 80 * ms}); unknown != scaled {
		t.Errorf("an entry without its period became %+v", unknown)
	}
}

// TestEntryWithoutPeriod: the entry of an older agent learns its period with the next claim, and nothing is scaled.
func TestEntryWithoutPeriod(t *testing.T) {
	j := openDisk(t, NewMemory())
	c := claimOf("/a", plan.Quota, "10ms")
	must(t, j.Claim(c))
	must(t, j.Intend(c.ID, c.Knob, "30ms"))
	c.Period, c.Original = "5ms", "30ms"
	must(t, j.Claim(c))
	if e, _ := j.Entry(c.ID, c.Knob); e.Period != "5ms" || e.Original != "10ms" || e.Last != "30ms" {
		t.Errorf("%+v", e)
	}
}
