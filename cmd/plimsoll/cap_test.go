package main

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// reading is one reading of a group.
type reading struct {
	periods int64
	used    time.Duration
}

// checkCap compares a group's use in the kernel's own periods with the cap.
func checkCap(t *testing.T, readings []reading, most time.Duration) {
	t.Helper()
	checkCapAndGrant(t, readings, most, 0)
}

// checkCapAndGrant allows more in one period: a limit that is restored in the middle of a period grants itself again,
// whatever was used in that period (tg_set_cfs_bandwidth refills),
// and who restores after a crash does not know what was used.
func checkCapAndGrant(t *testing.T, readings []reading, most, once time.Duration) {
	t.Helper()
	seen, highest, err := aboveCap(readings, most, once)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d readings of %d periods, up to %v in one", len(readings), seen, highest)
	if seen < 10 {
		t.Errorf("only %d periods were seen", seen)
	}
}

// aboveCap is an error where more than the cap was used, and once more in one period. A period begins between two
// readings: what was used between the reading after its begin and the last reading before its end was certainly used in
// it, so that a late reading hides a little and invents nothing. The tolerance, for each of two CPUs, is one slice
// (sched_cfs_bandwidth_slice_us, 5 ms), for a CPU keeps the rest of its slice beyond a period's end, and one tick (4 ms
// at 250 Hz), for it is there that the kernel notices that a slice is used up (entity_tick, update_curr); what is too
// much is taken from the next period.
func aboveCap(readings []reading, most, once time.Duration) (seen int, highest time.Duration, err error) {
	const tolerance = 2 * (5 + 4) * ms
	var begun []reading                           // the first reading in each period
	first, last := int64(0), int64(math.MaxInt64) // between which the one period is
	for i, now := range readings {
		if i > 0 && now.periods == readings[i-1].periods {
			continue
		}
		for _, from := range begun[max(0, len(begun)-3):] {
			to := readings[i-1]
			periods := time.Duration(to.periods - from.periods + 1)
			used := to.used - from.used
			highest = max(highest, used-(periods-1)*most)
			if used > periods*most+tolerance {
				first, last = max(first, from.periods), min(last, to.periods)
			}
			if err == nil && (used > periods*most+once+tolerance || first > last) {
				err = fmt.Errorf("used %v in %d periods, at most %v each, and %v more in one of all", used, periods,
					most, once)
			}
		}
		begun = append(begun, now)
	}
	return len(begun), highest, err
}

// TestAboveCap: what is granted once is allowed in one period, and not in another one too.
func TestAboveCap(t *testing.T) {
	for _, c := range []struct {
		name    string
		used    []time.Duration // in each period
		once    time.Duration
		refused bool
	}{
		{"the cap", []time.Duration{60, 60, 60, 60, 60}, 0, false},
		{"a slice and a tick of each CPU", []time.Duration{60, 78, 60, 60, 60}, 0, false},
		{"above the cap", []time.Duration{60, 79, 60, 60, 60}, 0, true},
		{"a grant", []time.Duration{60, 80, 60, 60, 60}, 20, false},
		{"more than a grant", []time.Duration{60, 99, 60, 60, 60}, 20, true},
		{"two grants", []time.Duration{60, 80, 0, 0, 0, 80, 60, 60}, 20, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var readings []reading
			sum := time.Duration(0)
			for n, used := range append(c.used, 0) {
				readings = append(readings, reading{int64(n), sum})
				sum += used * ms
				readings = append(readings, reading{int64(n), sum})
			}
			if _, _, err := aboveCap(readings, 60*ms, c.once*ms); (err != nil) != c.refused {
				t.Error(err)
			}
		})
	}
}
