package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/report"
)

// onTape is a source of periods for one call.
type onTape struct {
	list    []flight.Period
	lost    int64
	on      bool
	refused error
	broken  error
}

func (s *onTape) Fly(on bool) error { s.on = on; return s.refused }

func (s *onTape) Flown(list []flight.Period) ([]flight.Period, int64, error) {
	list = append(list, s.list...)
	s.list = nil
	return list, s.lost, s.broken
}

func recorderOf(t *testing.T, s *onTape) (r *Recorder, dir string) {
	t.Helper()
	dir = t.TempDir()
	known := func() []report.Container {
		return []report.Container{{Cgroup: "/a", Name: "web", Level: "container", Limit: 50 * time.Millisecond,
			Period: 100 * time.Millisecond}}
	}
	return New(disk.Options{Dir: dir, MaxBytes: 1 << 20, MaxAge: time.Hour}, s, known,
		slog.New(slog.DiscardHandler)), dir
}

// TestFlightRecorder: what was taken before the agent ends is on disk when Run returns, with the requests and waits of
// its minute, and the kernel records no more.
func TestFlightRecorder(t *testing.T) {
	now := time.Now()
	s := &onTape{list: []flight.Period{{Cgroup: "/a", End: now.UnixMilli(), Used: 1000, Quota: 50_000, Count: 1}},
		lost: 7}
	r, dir := recorderOf(t, s)
	r.Requests = func(minute time.Time) map[string]report.RequestWindow {
		if !minute.Equal(now.Truncate(time.Minute)) {
			return nil
		}
		return map[string]report.RequestWindow{"/a": {Answered: 5,
			Response: report.Quantiles{P50: time.Millisecond, P90: time.Millisecond,
				P99: 2 * time.Millisecond}, Time: 6 * time.Millisecond}}
	}
	r.Waits = func(time.Time) map[string]report.Waited {
		w := report.Waited{Wanted: 99 * time.Microsecond, Received: 98 * time.Microsecond}
		for i, cause := range report.Causes() {
			w.Waits = append(w.Waits, report.Wait{Cause: cause, Time: time.Duration(i+1) * time.Microsecond})
		}
		return map[string]report.Waited{"/a": w}
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := r.Run(ctx); err != nil || s.on {
		t.Fatalf("%v; still on: %v", err, s.on)
	}
	got, err := disk.Select(dir, time.Now().Add(-time.Hour), time.Now().Add(time.Hour),
		func(*flight.Minute) bool { return true })
	if err != nil || len(got.Rows) != 1 || got.Rows[0].Name() != "web" || got.Rows[0].LimitUs != 50_000 ||
		got.Lost != 7 {
		t.Errorf("%+v %v", got, err)
	}
	want := &flight.Requests{Answered: 5, P50Us: 1000, P90Us: 1000, P99Us: 2000, ResponseUs: 6000, UnthrottledP99Us: -1,
		ThrottledUs: -1}
	if diff := cmp.Diff(want, got.Rows[0].Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	waits := &flight.Waits{Wanted: 99, Received: 98, OwnLimit: 1, PodLimit: 2, Neighbour: 3, Kernel: 4, Interrupts: 5,
		Hypervisor: 6, IdleWakeup: 7, OwnThreads: 8, Unnamed: 9}
	if diff := cmp.Diff(waits, got.Rows[0].Waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if f := r.Status(); f.Files != 1 || f.Written != 1 || f.Lost != 7 || f.Fault != "" {
		t.Errorf("%+v", f)
	}
}

// inTurn is a source whose calls have one list each; with the last it ends the agent.
type inTurn struct {
	onTape
	lists [][]flight.Period
	end   func()
}

func (s *inTurn) Flown(list []flight.Period) ([]flight.Period, int64, error) {
	if len(s.lists) == 0 {
		s.end()
		return list, 0, nil
	}
	list = append(list, s.lists[0]...)
	s.lists = s.lists[1:]
	return list, 0, nil
}

// TestNamesAsAMinuteEnds: a container that starts within a minute is asked for as the minute is closed, so that its row
// has its name, its limit and its period.
func TestNamesAsAMinuteEnds(t *testing.T) {
	one := func(group string) []flight.Period {
		return []flight.Period{{Cgroup: group, End: time.Now().UnixMilli(), Used: 1000, Quota: 5000, Count: 1}}
	}
	s := &inTurn{lists: [][]flight.Period{one("/a"), one("/b")}}
	r, dir := recorderOf(t, &s.onTape)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	s.end, r.source = end, s
	first := r.containers
	r.containers = func() []report.Container {
		r.containers = func() []report.Container {
			return append(first(), report.Container{Cgroup: "/b", Name: "new", Level: "container",
				Limit: 5 * time.Millisecond, Period: 10 * time.Millisecond})
		}
		return first()
	}
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := disk.Select(dir, time.Now().Add(-time.Hour), time.Now().Add(time.Hour),
		func(m *flight.Minute) bool { return m.Cgroup == "/b" })
	if err != nil || len(got.Rows) != 1 || got.Rows[0].Name() != "new" || got.Rows[0].LimitUs != 5000 ||
		got.Rows[0].PeriodUs != 10_000 {
		t.Errorf("%+v %v", got.Rows, err)
	}
}

// TestNoFlightRecorder: where the kernel has no periods, or the ring breaks, the agent goes on and the status says why.
func TestNoFlightRecorder(t *testing.T) {
	for want, s := range map[string]*onTape{"no eBPF": {refused: errors.New("no eBPF")},
		"closed": {broken: errors.New("closed")}} {
		r, _ := recorderOf(t, s)
		if err := r.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if f := r.Status(); f.Fault != want {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	var off *Recorder
	if err := off.Run(t.Context()); err != nil || off.Status() != nil {
		t.Errorf("turned off: %v %v", err, off.Status())
	}
}

// TestRecordOfAnAgentThatEnds: its programs end before the record, which is no fault. What was taken is on disk, also
// where the ring breaks, and the status keeps the fault.
func TestRecordOfAnAgentThatEnds(t *testing.T) {
	for _, c := range []struct {
		broken error
		fault  string
	}{{fmt.Errorf("probe: %w", os.ErrClosed), ""}, {io.ErrUnexpectedEOF, io.ErrUnexpectedEOF.Error()}} {
		s := &onTape{list: []flight.Period{{Cgroup: "/a", End: time.Now().UnixMilli(), Used: 1000, Count: 1}},
			broken: c.broken}
		r, _ := recorderOf(t, s)
		var said bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&said, nil))
		if err := r.Run(t.Context()); err != nil || said.Len() > 0 != (c.fault != "") {
			t.Errorf("%v: %v, said %q", c.broken, err, said.String())
		}
		if f := r.Status(); f.Written != 1 || f.Fault != c.fault {
			t.Errorf("%v: %+v", c.broken, f)
		}
	}
}

// TestKnownFrom: no limit is 0.
func TestKnownFrom(t *testing.T) {
	got := KnownFrom([]report.Container{{Cgroup: "/c", Name: "a/b/c", Pod: "a/b", Level: "container",
		Limit: cpu.Unlimited, Period: time.Millisecond}})
	want := map[string]flight.Known{"/c": {Namespace: "a", Pod: "b", Container: "c", Period: time.Millisecond}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
