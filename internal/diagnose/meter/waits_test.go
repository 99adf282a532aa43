package meter

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/probe/runq"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// written are programs that write some sums all the time.
type written struct {
	waitPrograms
	busy map[runq.Slot]bool
	now  time.Duration
}

func (p written) Read(slot runq.Slot, within time.Duration) (runq.Sums, error) {
	if p.busy[slot] {
		time.Sleep(within)
		return runq.Sums{}, io.ErrNoProgress
	}
	return runq.Sums{At: p.now, Running: p.now}, nil
}

// TestAReadingIsGivenUp: a group that cannot be read keeps no other one, nor the lock, for longer than a part of the
// slice, and a later slice has all that it ran.
func TestAReadingIsGivenUp(t *testing.T) {
	programs := &written{busy: map[runq.Slot]bool{}}
	m := &Meter{probe: programs}
	for slot := range runq.Slot(12) {
		m.subjects = append(m.subjects, &subject{slot: slot})
		programs.busy[slot] = slot != 11
	}
	w := &Waits{meter: m}
	slice := func() {
		t.Helper()
		programs.now += Slice
		begun := time.Now()
		if err := w.read(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("a slice took %v", took)
		}
	}
	delete(programs.busy, 0)
	slice()
	programs.busy[0] = true
	slice()
	slice()
	clear(programs.busy)
	slice()
	for _, slot := range []int{0, 11} {
		if got := m.subjects[slot].account.Sum().Received; got != 3*Slice {
			t.Errorf("group %d has run for %v, want %v", slot, got, 3*Slice)
		}
	}
	if m.unread != 10+11+11 {
		t.Errorf("%d readings were given up", m.unread)
	}
}

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

// scripted are programs of which a test says what they have measured.
type scripted struct {
	waitPrograms
	sums    runq.Sums
	lengths [runq.Buckets]int64
}

func (p *scripted) Read(runq.Slot, time.Duration) (runq.Sums, error) { return p.sums, nil }
func (p *scripted) Lengths(runq.Class) ([runq.Buckets]int64, error)  { return p.lengths, nil }
func (p *scripted) Pairs() ([]runq.Pair, error)                      { return nil, nil }
func (p *scripted) Lost() (tasks, pairs int64)                       { return 0, 0 }

// TestBesideOnlyGrows: of a rank too.
func TestBesideOnlyGrows(t *testing.T) {
	programs := &scripted{}
	w := NewWaits(nil, nil, slog.New(slog.DiscardHandler))
	w.meter = &Meter{probe: programs, subjects: []*subject{{rank: strategy.Online}}}
	for i, c := range []struct{ beside, want time.Duration }{{5, 0}, {25, 20}, {24, 20}, {27, 22}} {
		programs.sums.At += Slice
		programs.sums.Beside[ranked()[strategy.Offline]] = c.beside
		if err := w.read(); err != nil {
			t.Fatal(err)
		}
		if got := w.ranks[strategy.Online].beside; got != c.want {
			t.Errorf("reading %d: %v, want %v", i, got, c.want)
		}
	}
}

// TestTheOpenClassHasNoEnd: the longest waits are counted, and are up to nothing.
func TestTheOpenClassHasNoEnd(t *testing.T) {
	programs := &scripted{}
	programs.lengths[runq.Buckets-2], programs.lengths[runq.Buckets-1] = 2, 1
	w := NewWaits(nil, nil, slog.New(slog.DiscardHandler))
	w.meter, w.problem = &Meter{probe: programs}, ""
	var s report.Status
	w.Report(&s)
	for _, r := range s.Waits.Ranks {
		last := r.Lengths[len(r.Lengths)-1]
		if r.Waits != 3 || last.N != 2 || last.UpTo != 8388608*time.Microsecond {
			t.Errorf("%s: %d waits, %+v", r.Rank, r.Waits, r.Lengths)
		}
	}
}
