package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestThrottlesPlus(t *testing.T) {
	kernel := Throttles{Begun: 5, Ended: 4, Unreported: 1, Wall: 40 * ms, Foreseen: 2, Last: 9 * ms, Peak: 30 * ms,
		Second:  300 * ms,
		Lengths: []Length{{2 * ms, 1}, {8 * ms, 3}}, Usage: time.Second}
	ours := Throttles{Begun: 2, Ended: 2, Wall: 5 * ms, Last: 10 * ms, Peak: 31 * ms,
		Lengths: []Length{{4 * ms, 1}, {8 * ms, 1}}}
	want := Throttles{Begun: 7, Ended: 6, Unreported: 1, Wall: 45 * ms, Foreseen: 2, Last: 10 * ms, Peak: 31 * ms,
		Second:  300 * ms,
		Lengths: []Length{{2 * ms, 1}, {4 * ms, 1}, {8 * ms, 4}}, Usage: time.Second}
	if diff := cmp.Diff(want, kernel.Plus(ours)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kernel, kernel.Plus(Throttles{})); diff != "" {
		t.Errorf("nothing changes something: %s", diff)
	}
}

func TestSchedulerInWords(t *testing.T) {
	s := sampleScheduler()
	want := "scheduler in force since 2026-11-21 09:00:00, stall 1.2ms; it enforces quotas and bursts, and none is " +
		"raised; offline had to yield 120 times (7 to a core's other thread), was given a floor 6 times, 18ms in " +
		"all, and ran 2ms beside online on a core"
	if got := s.line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	twice := s.Totals.Plus(s.Totals)
	if want := (SchedulerTotals{2 * s.Totals.Online, 2 * s.Totals.Offline, 36 * ms, 12, 4 * ms, 240,
		14}); twice != want {
		t.Errorf("twice: %+v, want %+v", twice, want)
	}
}

func sampleScheduler() *Scheduler {
	return &Scheduler{InForce: true, Since: at(0), Stall: 1200 * time.Microsecond, Loads: 1, Groups: 2, Expel: true,
		FloorPercent: 0.3, WatchdogSeconds: 20,
		Totals: SchedulerTotals{Online: 1900 * time.Second, Offline: 30 * time.Second, Floor: 18 * ms, Floors: 6,
			Beside: 2 * ms, Kicks: 120, Expels: 7}}
}
