package recorder

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/flight"
	"plimsoll/internal/plan"
	"plimsoll/internal/probe"
	"plimsoll/internal/recent"
	"plimsoll/internal/workload"
)

// taped is a probe that records by hand, and the containers that there are.
type taped struct {
	on      bool
	next    []probe.Period
	lost    int64
	refused error
	pods    []workload.Pod
	asked   int
}

func (p *taped) Record(on bool) error { p.on = on; return p.refused }

func (p *taped) Periods(list []probe.Period) ([]probe.Period, error) {
	list = append(list, p.next...)
	p.next = nil
	return list, nil
}

func (p *taped) Unrecorded() int64 { return p.lost }

func (p *taped) Pods() ([]workload.Pod, error) { p.asked++; return p.pods, nil }

func container(path string, inode uint64) workload.Pod {
	return workload.Pod{Containers: []workload.Container{{ID: workload.ID{Path: path, Inode: inode}}}}
}

const boot = 10 * time.Second // of the kernel's clock, as the tests begin

var began = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// recordingOf is the source of a probe's periods, whose clock is moved by hand.
func recordingOf(p *taped) (source *Periods, clock *time.Duration) {
	clock = new(time.Duration)
	source = NewPeriods(p, "", p)
	source.clock = func() (time.Duration, time.Time) { return boot + *clock, began.Add(*clock) }
	return source, clock
}

// TestPeriodsHavePaths: a record gets the path of its group and our time; groups are looked up once.
func TestPeriodsHavePaths(t *testing.T) {
	p := &taped{pods: []workload.Pod{container("/a", 7), container("/b", 8)}, lost: 3}
	source, clock := recordingOf(p)
	var all []bool
	source.Watch = func(on bool) { all = append(all, on) }
	if err := source.Record(true); err != nil || !p.on {
		t.Fatal(err)
	}
	defer func() {
		if err := source.Record(false); err != nil || !slices.Equal(all, []bool{true, false}) {
			t.Errorf("all groups are watched while periods are recorded: %v, %v", all, err)
		}
	}()
	*clock = time.Second
	p.next = []probe.Period{{Group: 7, End: boot + 500*time.Millisecond, Used: 30 * time.Millisecond,
		Quota: 50 * time.Millisecond, Count: 1},
		{Group: 9, End: boot, Count: 1}, // it has gone before the search
		{Group: 8, End: boot + 600*time.Millisecond, Used: 60 * time.Millisecond, Quota: 50 * time.Millisecond,
			Lost: 20 * time.Millisecond, Throttles: 2, Count: 2}}
	got, lost, err := source.Take()
	want := map[string][]recent.Period{"/a": {{End: began.Add(500 * time.Millisecond).UnixMilli(), Used: 30_000,
		Quota: 50_000, Burst: recent.UnknownBurst}},
		// the mean of two
		"/b": {{End: began.Add(600 * time.Millisecond).UnixMilli(), Used: 30_000, Quota: 50_000,
			Burst: recent.UnknownBurst, Lost: 10_000, Throttles: 2}}}
	if diff := cmp.Diff(want, got); diff != "" || lost != 3+1 || err != nil {
		t.Errorf("%d lost, %v (-want +got):\n%s", lost, err, diff)
	}
	if p.asked != 1 {
		t.Errorf("the groups were looked up %d times in a second", p.asked)
	}
	p.pods = append(p.pods, container("/c", 9))
	p.next, *clock = []probe.Period{{Group: 9, End: boot + time.Second, Count: 1}}, 3*time.Second
	if got, _, _ := source.Take(); len(got["/c"]) != 1 || p.asked != 2 {
		t.Errorf("%v after %d searches", got, p.asked)
	}
}

// TestPeriodsOfNewAndOldGroups: periods of a group that is not known wait for the next search, and are lost where it
// does not know their group either. The last ones of a group that has gone by then are not.
func TestPeriodsOfNewAndOldGroups(t *testing.T) {
	p := &taped{pods: []workload.Pod{container("/a", 7)}}
	source, clock := recordingOf(p)
	if err := source.Fly(true); err != nil {
		t.Fatal(err)
	}
	step := func(after time.Duration, groups ...uint64) (got []string, lost int64) {
		t.Helper()
		*clock = after
		for _, group := range groups {
			p.next = append(p.next, probe.Period{Group: group, End: boot + after, Count: 2})
		}
		list, lost, err := source.Flown(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			got = append(got, one.Cgroup)
		}
		return got, lost
	}
	step(0, 7)
	p.pods = []workload.Pod{container("/b", 8)} // in place of the other one
	for _, c := range []struct {
		after  time.Duration
		groups []uint64
		want   []string
		lost   int64
	}{
		{500 * time.Millisecond, []uint64{8, 9}, nil, 0},
		{1100 * time.Millisecond, []uint64{8, 7}, []string{"/b", "/b", "/a"}, 2},
		{2500 * time.Millisecond, []uint64{10, 7}, nil, 6}, // /a has gone for more than a second
	} {
		if got, lost := step(c.after, c.groups...); !slices.Equal(got, c.want) || lost != c.lost {
			t.Errorf("after %v: periods of %q, %d lost; want %q, %d", c.after, got, lost, c.want, c.lost)
		}
	}
}

// TestPodsHaveNoRows: of a pod the flight recorder gets its containers' periods, however short it lives.
func TestPodsHaveNoRows(t *testing.T) {
	p := &taped{pods: []workload.Pod{{ID: workload.ID{Path: "/pod", Inode: 5}, Containers: []workload.Container{{
		ID: workload.ID{Path: "/pod/scope/a", Inode: 7}, Scope: workload.ID{Path: "/pod/scope", Inode: 6}}}}}}
	source, _ := recordingOf(p)
	if err := errors.Join(source.Fly(true), source.Record(true)); err != nil {
		t.Fatal(err)
	}
	for group := range uint64(3) {
		p.next = append(p.next, probe.Period{Group: 5 + group, Count: 1})
	}
	if got, _, err := source.Flown(nil); err != nil || len(got) != 1 || got[0].Cgroup != "/pod/scope/a" {
		t.Errorf("the flight recorder has %+v, %v", got, err)
	}
	if got, _, err := source.Take(); err != nil || len(got) != 3 {
		t.Errorf("the page has periods of %d groups, %v", len(got), err)
	}
}

// TestRefillsAreInTheirPeriods: a refill belongs to the period in which it was written,
// and is kept only while recorded.
func TestRefillsAreInTheirPeriods(t *testing.T) {
	p := &taped{pods: []workload.Pod{container("/a", 7)}}
	source, clock := recordingOf(p)
	refill := func(at time.Duration, outcome plan.Outcome, is bool) plan.Result {
		return plan.Result{Change: plan.Change{Cgroup: workload.ID{Path: "/a", Inode: 7}, Refill: is}, Outcome: outcome,
			At: began.Add(at)}
	}
	source.Note([]plan.Result{refill(0, plan.Applied, true)}) // nobody has asked yet
	if err := source.Record(true); err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	source.Note([]plan.Result{refill(20*ms, plan.Applied, true), refill(30*ms, plan.Refused, true),
		refill(40*ms, plan.Applied, false), refill(150*ms, plan.Applied, true),
		refill(250*ms, plan.Applied, true)})
	*clock = 300 * ms
	p.next = []probe.Period{{Group: 7, End: boot + 100*ms, Count: 1}, {Group: 7, End: boot + 200*ms, Count: 1}}
	got, _, err := source.Take()
	if list := got["/a"]; err != nil || len(list) != 2 || list[0].Refills != 1 || list[1].Refills != 1 {
		t.Fatalf("%v %v", got, err)
	}
	p.next = []probe.Period{{Group: 7, End: boot + 300*ms, Count: 1}}
	if got, _, _ = source.Take(); got["/a"][0].Refills != 1 {
		t.Errorf("the third refill: %v", got)
	}
	source.Note([]plan.Result{refill(310*ms, plan.Applied, true)})
	*clock = 10 * time.Second
	if _, _, _ = source.Take(); len(source.wrote) != 0 {
		t.Errorf("a refill whose period is not recorded is kept: %v", source.wrote)
	}
	source.Note([]plan.Result{refill(10*time.Second, plan.Applied, true)})
	if err := source.Record(false); err != nil || len(source.wrote) != 0 {
		t.Errorf("after the end: %v %v", source.wrote, err)
	}
}

// TestWhyNoPeriods: who asks is told why.
func TestWhyNoPeriods(t *testing.T) {
	for _, c := range []struct {
		probe     Probe
		why, want string
	}{
		{nil, "--poll was given", "--poll was given"},
		{&taped{refused: probe.ErrNoPeriods}, "no such field", "no such field"},
		{&taped{refused: errors.New("EPERM")}, "", "EPERM"},
	} {
		if err := NewPeriods(c.probe, c.why, nil).Record(true); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestTwoReaders: the page and the flight recorder each get every period,
// and the kernel records while one of them wants it.
func TestTwoReaders(t *testing.T) {
	p := &taped{pods: []workload.Pod{container("/a", 7)}}
	source, clock := recordingOf(p)
	if err := source.Fly(true); err != nil || !p.on {
		t.Fatal(err)
	}
	*clock = time.Second
	ms := time.Millisecond
	source.Note([]plan.Result{{Change: plan.Change{Cgroup: workload.ID{Path: "/a", Inode: 7}, Refill: true},
		Outcome: plan.Applied, At: began.Add(520 * ms)}})
	p.next = []probe.Period{{Group: 7, End: boot + 500*ms, Used: 30 * ms, Count: 1}}
	if err := source.Record(true); err != nil { // the page comes
		t.Fatal(err)
	}
	page := func(want int) {
		t.Helper()
		if got, _, err := source.Take(); err != nil || len(got["/a"]) != want {
			t.Errorf("the page has %v, %v; want %d", got, err, want)
		}
	}
	recorder := func(want ...flight.Period) {
		t.Helper()
		got, _, err := source.Flown(nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("the flight recorder: %v (-want +got):\n%s", err, diff)
		}
	}
	one := flight.Period{Cgroup: "/a", End: began.Add(500 * ms).UnixMilli(), Used: 30_000, Count: 1}
	page(1)
	recorder(one)
	p.next = []probe.Period{{Group: 7, End: boot + 600*ms, Used: 60 * ms, Lost: 20 * ms, Throttles: 2, Quota: 50 * ms,
		Count: 2}}
	recorder(flight.Period{Cgroup: "/a", End: began.Add(600 * ms).UnixMilli(), Used: 60_000, Quota: 50_000,
		Throttled: 20_000, Throttles: 2, Refills: 1, Count: 2})
	page(1)
	if err := source.Record(false); err != nil || !p.on {
		t.Errorf("the page has gone, and the kernel records no more: %v", err)
	}
	p.next = []probe.Period{{Group: 7, End: boot + 500*ms, Used: 30 * ms, Count: 1}}
	recorder(one)
	if source.ended != nil {
		t.Errorf("periods are kept for a page that has gone: %v", source.ended)
	}
	if err := source.Fly(false); err != nil || p.on {
		t.Errorf("nobody asks, and the kernel records: %v", err)
	}
}

// TestLateReaders: a reader that does not come is bounded, and what it misses is counted.
func TestLateReaders(t *testing.T) {
	p := &taped{pods: []workload.Pod{container("/a", 7)}}
	source, _ := recordingOf(p)
	if err := errors.Join(source.Fly(true), source.Record(true)); err != nil {
		t.Fatal(err)
	}
	for range mostFlown + 3 {
		p.next = append(p.next, probe.Period{Group: 7, Count: 1})
	}
	ended, lost, err := source.Take()
	if want := int64(mostFlown + 3 - mostWaiting + 3); len(ended["/a"]) != mostWaiting || lost != want || err != nil {
		t.Errorf("%d periods for the page, %d lost, want %d; %v", len(ended["/a"]), lost, want, err)
	}
	if got, _, _ := source.Flown(nil); len(got) != mostFlown {
		t.Errorf("%d periods for the flight recorder", len(got))
	}
}
