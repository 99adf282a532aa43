package flight

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC)

const half = 50_000 // us of a period of 100 ms

// at is one period of a group with a limit of half a CPU that ended so many ms after t0.
func at(ms int64, used int64) Period {
	return Period{Cgroup: "/a", End: t0.UnixMilli() + ms, Used: used, Quota: half, Count: 1}
}

// TestPlaces: the end of the first period of a minute gives the places of all others.
func TestPlaces(t *testing.T) {
	late := at(1037, 300)
	late.Count = 3
	throttled := at(137, 50_000)
	throttled.Throttled, throttled.Throttles, throttled.Refills, throttled.Quota = 12_340, 2, 2, 2*half
	for name, c := range map[string]struct {
		list []Period
		want Minute
	}{
		"each period": {[]Period{at(37, 100), at(137, 200), at(237, 300)},
			Minute{First: 37, Periods: 3, UsedUs: 600, PeakUs: 300, Used: []float32{10, 20, 30}}},
		"the group slept": {[]Period{at(37, 100), at(337, 200)},
			Minute{First: 37, Periods: 2, UsedUs: 300, PeakUs: 200, Used: []float32{10, 0, 0, 20}}},
		"a late timer": {[]Period{at(37, 100), at(180, 200), at(230, 300)},
			Minute{First: 37, Periods: 3, UsedUs: 600, PeakUs: 300, Used: []float32{10, 20, 30}}},
		"begun in the middle": {[]Period{at(1037, 100)},
			Minute{First: 37, Periods: 1, UsedUs: 100, PeakUs: 100, Used: []float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10}}},
		"three at once": {[]Period{at(37, 100), late},
			Minute{First: 37, Periods: 4, UsedUs: 400, PeakUs: 100,
				Used: []float32{10, 0, 0, 0, 0, 0, 0, 0, 10, 10, 10}}},
		"two in one place": {[]Period{at(37, 100), at(60, 200)},
			Minute{First: 37, Periods: 2, UsedUs: 300, PeakUs: 200, Used: []float32{30}}},
		"throttled": {[]Period{at(37, 100), throttled, at(237, 100)},
			Minute{First: 37, Periods: 3, UsedUs: 50_200, PeakUs: 50_000, ThrottledUs: 12_340,
				Throttles: 2, Refills: 2, Used: []float32{10, 4992, 10}, ThrottledMs: []int32{0, 12},
				RefillAt: []int32{1, 1},
				QuotaAt:  []int32{0, 1, 2}, QuotaUs: []int64{half, 2 * half, half}}},
	} {
		b := NewBuilder(t0)
		if n := b.Add(c.list); n != 0 {
			t.Errorf("%s: %d dropped", name, n)
		}
		got, ok := b.Close(t0.Add(time.Minute), true)
		c.want.Cgroup, c.want.Start, c.want.PeriodUs, c.want.LimitUs = "/a", t0.UnixMilli(), 100_000, -1
		if c.want.QuotaAt == nil {
			first := int32(0)
			for c.want.Used[first] == 0 {
				first++
			}
			c.want.QuotaAt, c.want.QuotaUs = []int32{first}, []int64{half}
		}
		if !ok || len(got.Rows) != 1 {
			t.Fatalf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(c.want, got.Rows[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// told has a builder told the time each second up to an instant, as the recorder does, which takes nothing out.
func told(t *testing.T, b *Builder, from, to time.Time) {
	t.Helper()
	for ; from.Before(to); from = from.Add(time.Second) {
		if _, ok := b.Close(from, false); ok {
			t.Fatalf("a minute is over at %v", from)
		}
	}
}

// TestClose: a minute is given once, two seconds after its end, with what is known of its group.
func TestClose(t *testing.T) {
	b := NewBuilder(t0.Add(time.Second))
	b.Know(map[string]Known{"/a": {Namespace: "n", Pod: "p", Container: "c", Limit: 50 * time.Millisecond,
		Period: 100 * time.Millisecond}})
	b.Add([]Period{at(37, 100), at(60_037, 100), {Cgroup: "/x", End: t0.UnixMilli() + 5, Count: 1}})
	if b.Strays() != 1 {
		t.Errorf("%d strays, want that of /x", b.Strays())
	}
	told(t, b, t0.Add(time.Second), t0.Add(62*time.Second)) // before, the ring may have more of the minute
	got, ok := b.Close(t0.Add(62*time.Second), false)
	if !ok || len(got.Rows) != 2 || got.Periods() != 2 {
		t.Fatalf("%v %+v", ok, got)
	}
	if m := got.Rows[0]; m.Name() != "n/p/c" || m.LimitUs != half || m.Start != t0.UnixMilli() {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff(covered(time.Second, time.Minute), got.Covered); diff != "" {
		t.Errorf("covered (-want +got):\n%s", diff)
	}
	b.Know(map[string]Known{}) // the container has gone
	told(t, b, t0.Add(63*time.Second), t0.Add(122*time.Second))
	got, ok = b.Close(t0.Add(122*time.Second), false)
	if !ok || len(got.Rows) != 1 || got.Rows[0].Name() != "n/p/c" {
		t.Errorf("a container that has gone keeps its name: %+v", got.Rows)
	}
	told(t, b, t0.Add(123*time.Second), t0.Add(20*time.Minute)) // minutes without periods are no file
	b.Add([]Period{at(20*60_000, 100)})
	got, ok = b.Close(t0.Add(20*time.Minute+500*time.Millisecond), true)
	if diff := cmp.Diff(covered(2*time.Minute, 20*time.Minute+500*time.Millisecond), got.Covered); !ok || diff != "" {
		t.Errorf("up to the end, also where all slept (-want +got):\n%s", diff)
	}
}

// TestQuietEnd: time in which all slept is given as the agent ends, though no row is.
func TestQuietEnd(t *testing.T) {
	b := NewBuilder(t0)
	told(t, b, t0, t0.Add(20*time.Minute))
	got, ok := b.Close(t0.Add(20*time.Minute), true)
	if diff := cmp.Diff(Batch{Covered: covered(0, 20*time.Minute)}, got); !ok || diff != "" {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
}

// TestSilence: time in which nobody told the time was not recorded.
func TestSilence(t *testing.T) {
	b := NewBuilder(t0)
	told(t, b, t0, t0.Add(20*time.Second))
	told(t, b, t0.Add(50*time.Second), t0.Add(55*time.Second))
	b.Add([]Period{at(55_000, 100)})
	got, _ := b.Close(t0.Add(55*time.Second), true)
	if diff := cmp.Diff(covered(0, 19*time.Second, 50*time.Second, 55*time.Second), got.Covered); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestClockSetBack: minutes of the future are given at once, and recording goes on.
func TestClockSetBack(t *testing.T) {
	b := NewBuilder(t0)
	b.Add([]Period{at(37, 100)})
	now := t0.Add(-time.Hour)
	if got, ok := b.Close(now, false); !ok || len(got.Rows) != 1 {
		t.Fatalf("%v %+v", ok, got)
	}
	b.Add([]Period{at(-3600_000+37, 100)})
	told(t, b, now.Add(time.Second), now.Add(62*time.Second))
	got, ok := b.Close(now.Add(62*time.Second), false)
	if want := covered(-time.Hour, -time.Hour+time.Minute); !ok || len(got.Rows) != 1 || !cmp.Equal(want, got.Covered) {
		t.Errorf("%v %+v", ok, got)
	}
}

// TestClockSetBackWithinAMinute: what comes after is in a row of its own, each period at its place. A small step back
// makes no row.
func TestClockSetBackWithinAMinute(t *testing.T) {
	b := NewBuilder(t0)
	b.Know(map[string]Known{"/a": {Container: "a", Period: 100 * time.Millisecond}})
	for i := range int64(400) {
		b.Add([]Period{at(37+i*100, 100)})
	}
	b.Add([]Period{at(39_200, 100)}) // 0.7 s earlier than the one before
	for i := range int64(500) {
		b.Add([]Period{at(10_012+i*100, 200)}) // 30 s
	}
	first, ok := b.Close(t0.Add(10*time.Second), false)
	second, _ := b.Close(t0.Add(time.Minute), true)
	if !ok || len(first.Rows) != 1 || len(second.Rows) != 1 {
		t.Fatalf("%+v, then %+v", first.Rows, second.Rows)
	}
	x, y := &first.Rows[0], &second.Rows[0]
	if x.Name() != "a" || len(x.Used) != 400 || x.Used[399] != 20 || x.Periods != 401 {
		t.Errorf("%d places, %d periods, the last used %v", len(x.Used), x.Periods, x.Used[len(x.Used)-1])
	}
	if y.Start != x.Start || y.First != 12 || len(y.Used) != 600 || y.Used[100] != 20 || y.Used[99] != 0 ||
		y.Periods != 500 {
		t.Errorf("%+v", y)
	}
}

// TestBuilderIsBounded: what does not fit is counted.
func TestBuilderIsBounded(t *testing.T) {
	b := NewBuilder(t0)
	var list []Period
	for i := range maxGroups + 3 {
		p := at(37, 1)
		p.Cgroup, p.Count = strings.Repeat("x", i), 2
		list = append(list, p)
	}
	known := map[string]Known{}
	for i := range list {
		known[list[i].Cgroup] = Known{Period: 100 * time.Millisecond}
	}
	if n := b.Add(list); n != 0 { // they wait to be named
		t.Errorf("%d dropped, want none", n)
	}
	b.Know(known)
	if n := b.Add(nil); n != 6 {
		t.Errorf("%d dropped, want 6", n)
	}
	stray := at(37, 1)
	if n := b.Add(slices.Repeat([]Period{stray}, maxHeld+5)); n != 5 || b.Strays() != maxHeld {
		t.Errorf("%d dropped, want 5; %d wait", n, b.Strays())
	}
}

// TestStrays: what comes of a group before it is named is in its row, with its own period. A group that
// goes before it is named has one with the usual period.
func TestStrays(t *testing.T) {
	b := NewBuilder(t0)
	short := func(ms int64) Period {
		return Period{Cgroup: "/a", End: t0.UnixMilli() + ms, Used: 1000, Quota: 5000, Count: 1}
	}
	gone := at(5, 100)
	gone.Cgroup = "/gone"
	b.Add([]Period{short(7), short(17), gone})
	b.Know(map[string]Known{"/a": {}}) // its limit has not been read yet
	b.Add([]Period{short(27)})
	if early, late := b.Ends(t0.Add(61*time.Second), false), b.Ends(t0.Add(62*time.Second), false); early || !late {
		t.Errorf("its minute ends after 61 s: %v, after 62 s: %v", early, late)
	}
	b.Know(map[string]Known{"/a": {Limit: 5 * time.Millisecond, Period: 10 * time.Millisecond}})
	b.Add([]Period{short(37)})
	got, _ := b.Close(t0.Add(time.Minute), true)
	want := []Minute{{Cgroup: "/a", Start: t0.UnixMilli(), First: 7, PeriodUs: 10_000, LimitUs: 5000, Periods: 4,
		UsedUs: 4000, PeakUs: 1000, Used: []float32{100, 100, 100, 100}, QuotaAt: []int32{0}, QuotaUs: []int64{5000}},
		{Cgroup: "/gone", Start: t0.UnixMilli(), First: 5, PeriodUs: 100_000, LimitUs: -1, Periods: 1, UsedUs: 100,
			PeakUs: 100, Used: []float32{10}, QuotaAt: []int32{0}, QuotaUs: []int64{half}}}
	if diff := cmp.Diff(want, got.Rows); diff != "" || b.Strays() != 0 {
		t.Errorf("%d strays (-want +got):\n%s", b.Strays(), diff)
	}
}

// TestPeriodOfPartsOfAMillisecond: the kernel makes a period that is too short for its timer longer by 147/128.
func TestPeriodOfPartsOfAMillisecond(t *testing.T) {
	b := NewBuilder(t0)
	b.Know(map[string]Known{"/a": {Limit: time.Millisecond, Period: 11_480 * time.Microsecond}})
	for i := range int64(1000) {
		b.Add([]Period{at(3+i*11_480/1000, 100)})
	}
	got, _ := b.Close(t0.Add(time.Minute), true)
	if m := got.Rows[0]; m.PeriodUs != 11_480 || m.LimitUs != 1000 || len(m.Used) != 1000 || m.Used[500] != 10 {
		t.Errorf("%d us, limit %d us, %d places, want 1000", m.PeriodUs, m.LimitUs, len(m.Used))
	}
}

// TestPeriodThatChanges: a row whose places are of the old period keeps the limit of that period, and ends as the new
// one is known.
func TestPeriodThatChanges(t *testing.T) {
	b := NewBuilder(t0)
	b.Know(map[string]Known{"/a": {Limit: 50 * time.Millisecond, Period: 100 * time.Millisecond}})
	b.Add([]Period{at(37, 100), at(60_037, 100)})
	b.Know(map[string]Known{"/a": {Limit: 5 * time.Millisecond, Period: 10 * time.Millisecond}})
	b.Add([]Period{at(62_003, 100), at(62_013, 200)})
	b.Know(map[string]Known{"/a": {}}) // its limit cannot be read for a moment
	b.Know(map[string]Known{"/a": {Limit: 6 * time.Millisecond, Period: 10 * time.Millisecond}})
	b.Add([]Period{at(62_023, 300)})
	var got [][4]int64
	batch, _ := b.Close(t0.Add(2*time.Minute), true)
	for _, m := range batch.Rows {
		got = append(got, [4]int64{m.Start - t0.UnixMilli(), int64(m.PeriodUs), m.LimitUs, m.UsedUs})
	}
	want := [][4]int64{{0, 100_000, half, 100}, {60_000, 100_000, half, 100}, {60_000, 10_000, 6000, 600}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("begin, period, limit and use of each row (-want +got):\n%s", diff)
	}
}

func TestRound(t *testing.T) {
	for us, want := range map[int64]float32{0: 0, 4: 0, 5: 1, 1_270: 127, 1_280: 128, 1_290: 130, 50_000: 4992,
		50_240: 5056, 1 << 40: 0x66 << 30} {
		if got := round(us); got != want {
			t.Errorf("%d us: %v, want %v", us, got, want)
		}
	}
	for us := int64(1_250); us < 2_000_000; us += 777 {
		if got := int64(round(us)) * usedUnit; max(got-us, us-got)*125 > us+625 {
			t.Fatalf("%d us: %d is off by more than 0.8 %%", us, got)
		}
	}
}

func TestContainerID(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for path, want := range map[string]string{"/kubepods.slice/cri-containerd-" + id + ".scope": id,
		"/docker/" + id: id, "/a/docker-" + id[1:] + ".scope": "",
		"/lab/a": "", "": "", "/" + strings.Repeat("xy", 32): ""} {
		if got := ContainerID(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
