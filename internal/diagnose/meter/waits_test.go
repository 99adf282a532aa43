package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/report"
)

// TestWaitMinute: a minute of the clock has what was added in it, and is asked for by its begin.
func TestWaitMinute(t *testing.T) {
	s := &subject{container: report.Container{Cgroup: "/lab/web"}}
	w := &Waits{meter: &Meter{subjects: []*subject{s}}}
	begun := time.Date(2026, 11, 27, 12, 0, 20, 0, time.UTC)
	at := func(after time.Duration, running, throttled time.Duration) {
		s.account.Add(diagnose.Reading{At: after, Running: running, Waiting: throttled,
			Parts: diagnose.Parts{Own: throttled}})
		w.cut(begun.Add(after))
	}
	at(0, time.Second, time.Second) // before the account began
	at(39*time.Second, 5*time.Second, 2*time.Second)
	first := begun.Truncate(time.Minute)
	if got := w.Minute(first); got != nil {
		t.Errorf("the first minute is not over: %+v", got)
	}
	at(40*time.Second, 6*time.Second, 3*time.Second)
	at(100*time.Second, 16*time.Second, 3*time.Second)
	want := report.Waited{Wanted: 10 * time.Second, Received: 10 * time.Second}
	got := w.Minute(first.Add(time.Minute))["/lab/web"]
	for _, one := range got.Waits {
		if one.Time != 0 {
			t.Errorf("waited in the second minute: %+v", one)
		}
	}
	got.Waits = nil
	if diff := cmp.Diff(want, got); diff != "" || w.Minute(first) != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
