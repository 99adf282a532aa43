package view

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// used is a period of a group with 50 ms in 100.
func used(us int32, more func(*recent.Period)) recent.Period {
	p := recent.Period{Used: us, Quota: 50_000}
	if more != nil {
		more(&p)
	}
	return p
}

func throttledFor(us int32) func(*recent.Period) {
	return func(p *recent.Period) { p.Throttles, p.Lost = 1, us }
}

// bursting adds to the burst of a period.
func bursting(us int32) func(*recent.Period) {
	return func(p *recent.Period) { p.Burst += us }
}

// TestTokens: they are not known until both ways to begin agree, and then they are what the kernel's arithmetic says.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		name    string
		burst   time.Duration
		periods []recent.Period
		want    []int32 // -1: not known
	}{
		{"saved", 50 * ms, []recent.Period{used(30_000, nil), used(10_000, nil), used(60_000, nil), used(90_000, nil)},
			[]int32{-1, 50_000, 40_000, 0}},
		{"a throttle shows that there are none", 50 * ms,
			[]recent.Period{used(70_000, throttledFor(1)), used(20_000, nil)}, []int32{0, 30_000}},
		{"not known while all is used", 50 * ms, []recent.Period{used(50_000, nil), used(50_000, nil)},
			[]int32{-1, -1}},
		{"no burst", 0, []recent.Period{used(10_000, nil), used(10_000, nil)}, []int32{0, 0}},
		{"a refill grants a quota", 50 * ms, []recent.Period{used(50_000, throttledFor(1)),
			used(90_000, func(p *recent.Period) { p.Refills = 1 })}, []int32{0, 10_000}},
		{"and a raise of the quota too", 50 * ms, []recent.Period{used(0, nil), used(0, nil),
			used(100_000, func(p *recent.Period) { p.Quota = 100_000 })},
			[]int32{50_000, 50_000, 50_000}},
		{"while there was no burst there were none, whatever is in force now", 0,
			[]recent.Period{used(10_000, nil), used(0, bursting(50_000)), used(60_000, bursting(50_000))},
			[]int32{0, 50_000, 40_000}},
		{"what was saved under a larger burst is lost with it", 50 * ms,
			[]recent.Period{used(0, nil), used(0, nil), used(40_000, bursting(-30_000))},
			[]int32{50_000, 50_000, 20_000}},
		{"not known while the burst is not", 0, []recent.Period{used(0, nil), used(0, bursting(recent.UnknownBurst)),
			used(10_000, bursting(50_000)), used(10_000, bursting(50_000))},
			[]int32{0, -1, -1, 50_000}},
	} {
		var strip Strip
		for i := range c.periods {
			c.periods[i].Burst += recent.Us(c.burst)
		}
		got := strip.Add(Row{Period: 100 * ms, Burst: 400 * ms}, c.periods)
		if diff := cmp.Diff(c.want, got.Tokens); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestStripRemembers: two halves of a strip are the whole.
func TestStripRemembers(t *testing.T) {
	list := []recent.Period{used(0, nil), used(0, nil), used(80_000, nil), used(60_000, nil), used(50_000, nil)}
	for i := range list {
		list[i].Burst = 50_000
	}
	row := Row{Period: 100 * ms, Burst: 50 * ms}
	var one, two Strip
	whole := one.Add(row, list)
	two.Add(row, list[:3])
	if rest := two.Add(row, list[3:]); !reflect.DeepEqual(rest.Tokens, whole.Tokens[3:]) {
		t.Errorf("%v, then %v", whole.Tokens, rest.Tokens)
	}
}

// TestAdvice: a burst helps against peaks, a limit against a lack, and what the limit hid is a bound.
func TestAdvice(t *testing.T) {
	limit := 50 * ms
	row := Row{Limit: &limit, Period: 100 * ms}
	find := func(list []Alternative, text string) Alternative {
		for _, a := range list {
			if a.Text == text {
				return a
			}
		}
		t.Fatalf("no %q in %+v", text, list)
		return Alternative{}
	}
	var peaks, hidden []recent.Period
	for range 25 { // a peak of 80 ms in 400, which the limit never held back as a burst was in force
		peaks = append(peaks, used(80_000, nil), used(10_000, nil), used(10_000, nil), used(10_000, nil))
		hidden = append(hidden, used(50_000, throttledFor(40_000)), used(30_000, nil), used(0, nil), used(0, nil))
	}
	list := advice(Row{Limit: &limit, Period: 100 * ms, Burst: 50 * ms}, peaks)
	if a := find(list, "the limit alone"); a.Throttled != [2]int{25, 25} || a.Delay[0] == 0 || a.Now {
		t.Errorf("peaks, the limit alone: %+v", a)
	}
	if a := find(list, "a burst of the limit"); a.Throttled != [2]int{0, 0} || !a.Now || a.Delay != [2]float64{} {
		t.Errorf("peaks, with a burst: %+v", a)
	}
	if a := find(list, "a limit of 1 CPU"); a.Throttled != [2]int{0, 0} || a.Limit != 100*ms {
		t.Errorf("peaks, with twice the limit: %+v", a)
	}
	list = advice(row, hidden)
	if a := find(list, "the limit alone"); a.Throttled != [2]int{25, 25} || !a.Now {
		t.Errorf("what is in force is what was recorded: %+v", a)
	}
	if a := find(list, "a limit of 0.75 CPUs"); a.Throttled != [2]int{0, 25} {
		t.Errorf("a demand that the limit hid is a bound: %+v", a)
	}
	if d := demand(100*ms, hidden); !d.Censored || d.Low != 0.2 || d.High != 0.3 {
		t.Errorf("%+v", d)
	}
	if d := demand(100*ms, peaks); d.Censored || d.Low != d.High {
		t.Errorf("%+v", d)
	}
	if a := find(advice(Row{Limit: &limit, Period: 100 * ms, Burst: 50 * ms}, hidden),
		"a burst of the limit"); a.Throttled != [2]int{} || !a.Now {
		t.Errorf("what was recorded without a burst is not what the burst does: %+v", a)
	}
	refilled := append([]recent.Period{used(90_000, func(p *recent.Period) { p.Refills = 1 })}, hidden...)
	if a := find(advice(row, refilled), "the limit alone"); a.Throttled[0] == a.Throttled[1] {
		t.Errorf("with refills what was recorded is not what the limit does alone: %+v", a)
	}
	if a := find(advice(Row{Limit: &limit, Period: 100 * ms, Burst: 20 * ms}, peaks),
		"the burst that is in force"); !a.Now || a.Burst != 20*ms {
		t.Errorf("%+v", a)
	}
}

// TestUnmeasured: why there are no periods.
func TestUnmeasured(t *testing.T) {
	plain := web(func(c *report.Container) { c.Totals.Events = nil })
	row := func(c report.Container) Row { return Row{ID: c.Cgroup, Limit: finite(new(time.Duration), c.Limit)} }
	missing, polled := status(0, plain), status(0, plain)
	missing.Events.Missing = []report.MissingPart{{Part: "periods", Why: "5.10 has no such field"}}
	polled.Events = report.Events{Why: "--poll was given"}
	free := web(func(c *report.Container) { c.Limit = cpu.Unlimited })
	for _, c := range []struct {
		s    report.Status
		row  Row
		want string
	}{{missing, row(plain), "5.10 has no such field"}, {polled, row(plain), "--poll was given"},
		{status(0, plain), row(plain), "while somebody looks"},
		{status(0, free), row(free), "no limit"}, {status(0, web(nil)), row(web(nil)), ""}, {status(0), row(plain),
			""}} {
		if got := Notes(c.s, []Row{c.row})[0].Unmeasured; !strings.Contains(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestOwnLimitIsNotBlamedOnNeighbours: who waits for its own limit has no neighbours, also where some were in the way
// for a moment, or where the agent names them by mistake. Where they were in the way they are named.
func TestOwnLimitIsNotBlamedOnNeighbours(t *testing.T) {
	near := []report.Neighbour{{Name: "ingest", Cgroup: "/ingest", Time: time.Second}}
	for _, c := range []struct {
		limit, behind time.Duration
		want          int
	}{{10 * time.Second, 0, 0}, {10 * time.Second, 100 * ms, 0}, {10 * time.Second, time.Second, 1}, {0, 100 * ms, 1},
		{0, 0, 0}} {
		w := waited(&report.Waited{Neighbours: near, Waits: []report.Wait{{Cause: report.CauseOwnLimit, Time: c.limit},
			{Cause: report.CauseNeighbour, Time: c.behind}}})
		if len(w.Neighbours) != c.want {
			t.Errorf("%v by its limit, %v behind others: blamed on %+v", c.limit, c.behind, w.Neighbours)
		}
	}
}

// snapshot is one with a container that was recorded.
func snapshot() Snapshot {
	var tr Tracker
	tr.Add(status(0, web(nil)), recordingSince(0), nil)
	v := tr.Add(status(2*time.Second, web(lost(time.Second, 10))), recordingSince(0), nil)
	list := []recent.Period{used(30_000, nil), used(50_000, throttledFor(20_000))}
	return Snapshot{Made: v.Now, View: v,
		Containers: []Kept{{ID: v.Rows[0].ID, Note: Note{Waited: &Waited{Wanted: 5, Causes: []WaitedFor{}}},
			Periods: recent.Append(nil, list)}}}
}

func packed(t testing.TB, s Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	if err := errors.Join(s.WriteJSON(zip), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotComesBack(t *testing.T) {
	want := snapshot()
	got, err := ReadSnapshot(bytes.NewReader(packed(t, want)), MaxSnapshotBytes)
	if err != nil {
		t.Fatal(err)
	}
	if got.View.Recorded == nil || !got.View.Recorded.Equal(want.Made) {
		t.Errorf("it does not say when it was made: %v", got.View.Recorded)
	}
	d, ok := got.Detail(want.View.Rows[0].ID)
	if !ok || len(d.Periods.End) != 2 || d.Periods.Lost[1] != 20_000 || d.Waited == nil || d.Waited.Wanted != 5 ||
		len(d.Advice) == 0 {
		t.Errorf("%+v, %v", d, ok)
	}
	if _, ok := got.Detail("/nobody"); ok {
		t.Error("nobody has a detail")
	}
	got.View.Recorded = nil
	if diff := cmp.Diff(want.View, got.View); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBadSnapshots: each is refused with what is wrong, and with a hint.
func TestBadSnapshots(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.Bytes()
	}
	good := packed(t, snapshot())
	broken := bytes.Clone(good)
	broken[len(broken)-6] ^= 1 // of the checksum
	damaged := snapshot()
	damaged.Containers[0].Periods = []byte{9, 9, 9}
	huge := zip(`{"schema":"` + SnapshotSchema + `","x":"` + strings.Repeat("a", 1<<16) + `"}`)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "not compressed by gzip"},
		"plain JSON":    {[]byte(`{"schema":"plimsoll.snapshot/v1"}`), "not compressed by gzip"},
		"not JSON":      {zip("hello"), "not a snapshot"},
		"another thing": {zip(`{"schema":"plimsoll.status/v1"}`), `its schema is "plimsoll.status/v1"`},
		"newer":         {zip(`{"schema":"plimsoll.snapshot/v2"}`), `format "v2"`},
		"cut":           {good[:len(good)-20], "not complete"},
		"checksum":      {broken, "damaged"},
		"periods":       {packed(t, damaged), "damaged periods"},
		"too large":     {huge, "too large"},
	} {
		_, err := ReadSnapshot(bytes.NewReader(c.data), 1<<15)
		var bad *FileError
		if !errors.As(err, &bad) || !strings.Contains(bad.Error(), c.want) || bad.Hint() == "" {
			t.Errorf("%s: %v, want %q and a hint", name, err, c.want)
		}
	}
}

func FuzzReadSnapshot(f *testing.F) {
	f.Add(packed(f, snapshot()))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadSnapshot(bytes.NewReader(data), 1<<20)
		if err != nil {
			var bad *FileError
			if !errors.As(err, &bad) {
				t.Errorf("%v is no error for a person", err)
			}
			return
		}
		for _, r := range s.View.Rows {
			s.Detail(r.ID)
		}
		if _, err := json.Marshal(s.View); err != nil {
			t.Error(err)
		}
	})
}

// TestRowsAreCompared: a row differs in each of its fields.
func TestRowsAreCompared(t *testing.T) {
	full := func() *Row {
		r := &Row{}
		v := reflect.ValueOf(r).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer {
				f.Set(reflect.New(f.Type().Elem()))
			}
		}
		return r
	}
	if !full().Same(full()) {
		t.Error("equal rows are not the same")
	}
	for i := range reflect.TypeFor[Row]().NumField() {
		r := full()
		f := reflect.ValueOf(r).Elem().Field(i)
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Type() == reflect.TypeFor[report.RequestWindow]() {
			f = f.FieldByName("Answered")
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Float64:
			f.SetFloat(1)
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.Set(reflect.ValueOf(t0))
		}
		if r.Same(full()) || full().Same(r) {
			t.Errorf("a change of %s is not seen", reflect.TypeFor[Row]().Field(i).Name)
		}
	}
}
