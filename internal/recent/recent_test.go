package recent

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// busy is a container that is throttled in one of five periods.
func busy(r *rand.Rand, from time.Time, n int) []Period {
	list := make([]Period, n)
	for i := range list {
		p := Period{End: from.Add(time.Duration(i+1) * 100 * time.Millisecond).UnixMilli(), Quota: 50_000,
			Used: int32(r.ExpFloat64() * 30_000)}
		if p.Used > p.Quota {
			p.Used, p.Throttles, p.Lost = p.Quota+int32(r.IntN(2000)), 1, int32(r.IntN(60_000))
		}
		list[i] = p
	}
	return list
}

func TestDecodeIsReverse(t *testing.T) {
	extreme := []Period{{End: 1, Used: math.MaxInt32, Quota: math.MaxInt32, Burst: math.MaxInt32, Lost: math.MaxInt32,
		Throttles: math.MaxUint16, Refills: math.MaxUint16},
		{End: math.MaxInt64 / 2, Burst: UnknownBurst}, {End: 0, Quota: 1, Burst: UnknownBurst}, {End: 1, Quota: 1}}
	for _, list := range [][]Period{{}, extreme, busy(rand.New(rand.NewPCG(1, 2)), t0, 1000)} {
		got, err := Decode([]Period{}, Append(nil, list))
		if diff := cmp.Diff(list, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := Append(nil, []Period{{End: 5, Used: 7}})
	for name, data := range map[string][]byte{"empty": nil, "cut": good[:len(good)-1], "longer": append(good, 0),
		"huge count": {0xff, 0xff, 0xff, 0xff, 0x7f},
		"no quota":   {1, 10, 0, 0, 0, 1, 1, 0, 0, 0}, "no burst": {1, 10, 0, 0, 1, 5, 0, 0, 0, 0},
		"place beyond": {1, 10, 0, 0, 2, 5, 0, 0, 0, 0},
		"wide uses":    {1, 10, 0, 0, 1, 5, 0, 1, 1, 0, 0, 32, 0, 0, 0, 0},
		"lost out of range": {1, 10, 0, 0, 1, 5, 0, 1, 1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x1f, 0,
			0}, "count only": {3, 1, 1}} {
		if got, err := Decode(nil, data); !errors.Is(err, ErrDamaged) || len(got) > 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, busy(rand.New(rand.NewPCG(1, 2)), t0, 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Decode(nil, data)
		if err != nil {
			return
		}
		again, err := Decode(nil, Append(nil, list))
		if diff := cmp.Diff(list, again); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// TestStoreKeeps: what is in blocks comes back, rounded, and in order; what is too old does not.
func TestStoreKeeps(t *testing.T) {
	s := New(0)
	list := busy(rand.New(rand.NewPCG(1, 2)), t0, 12_000) // 20 minutes
	for i := 0; i < len(list); i += 7 {
		s.Add("/a", list[i:min(i+7, len(list))])
	}
	now := t0.Add(20 * time.Minute)
	s.Expire(now)
	got := s.Periods("/a", now.Add(-Keep))
	if want := list[3000:]; len(got) != len(want) {
		t.Fatalf("%d periods of the last 15 minutes, want %d", len(got), len(want))
	}
	for i, want := range list[3000:] {
		p := got[i]
		if abs(p.Used-want.Used) > grain/2 || abs(p.Lost-want.Lost) > grain/2 {
			t.Fatalf("period %d: %+v, want %+v within %d us", i, p, want, grain/2)
		}
		p.Used, p.Lost = want.Used, want.Lost
		if p != want {
			t.Fatalf("period %d: %+v, want %+v", i, p, want)
		}
	}
	latest := s.Periods("/a", now.Add(-3*time.Second))
	if diff := cmp.Diff(list[len(list)-30:], latest); diff != "" {
		t.Errorf("the last 3 s are exact (-want +got):\n%s", diff)
	}
	if s.Periods("/b", t0) != nil {
		t.Error("an unknown group has periods")
	}
	s.Add("/a", list[:5]) // from the past
	if n := len(s.Periods("/a", now.Add(-Keep))); n != 9000 {
		t.Errorf("%d periods after a step back of the clock", n)
	}
	s.Expire(now.Add(2 * Keep))
	if len(s.groups) != 0 || s.bytes != 0 {
		t.Errorf("all is too old, and %d groups are kept: %d bytes", len(s.groups), s.bytes)
	}
}

// TestRest: a group that has had no periods for a while takes little memory, and goes on as before.
func TestRest(t *testing.T) {
	s := New(0)
	list := busy(rand.New(rand.NewPCG(7, 8)), t0, 300)
	s.Add("/a", list[:200])
	last := time.UnixMilli(list[199].End)
	if s.Expire(last.Add(resting)); s.bytes < 200*periodBytes {
		t.Fatalf("%d bytes of 200 periods that are at hand", s.bytes)
	}
	if s.Expire(last.Add(resting + time.Millisecond)); s.bytes > 1200 {
		t.Errorf("%d bytes of a group that rests", s.bytes)
	}
	s.Add("/a", list[100:]) // of which a hundred are known
	got := s.Periods("/a", t0)
	if len(got) != 300 {
		t.Fatalf("%d periods, want 300", len(got))
	}
	for i, p := range got {
		if p.End != list[i].End || abs(p.Used-list[i].Used) > grain/2 {
			t.Fatalf("period %d: %+v, want %+v", i, p, list[i])
		}
	}
	if s.Expire(last.Add(Keep + time.Minute)); s.bytes != 0 || len(s.groups) != 0 {
		t.Errorf("all is too old, and %d groups are kept: %d bytes", len(s.groups), s.bytes)
	}
}

// TestStoreIsBounded: above the bound the oldest blocks of all go, and the latest stay.
func TestStoreIsBounded(t *testing.T) {
	s, r := New(200_000), rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"/a", "/b", "/c", "/d"} {
		s.Add(name, busy(r, t0, 9000))
	}
	now := t0.Add(15 * time.Minute)
	if s.bytes <= 80_000 {
		t.Fatalf("only %d bytes: the test is about too many", s.bytes)
	}
	s.most = 80_000
	s.Expire(now)
	if s.bytes > 80_000 {
		t.Errorf("%d bytes, want 80,000 at most", s.bytes)
	}
	for name := range s.groups {
		if n := len(s.Periods(name, now.Add(-25*time.Second))); n != 250 {
			t.Errorf("%s: %d of the last 250 periods are left", name, n)
		}
	}
	if len(s.groups) != 4 {
		t.Errorf("%d groups are left", len(s.groups))
	}
}

// TestMemory: 1,000 containers that are never idle take 30 MiB for 15 minutes, by the store's own account, which is
// what the heap says.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, r := New(1<<30), rand.New(rand.NewPCG(5, 6))
	for n := range 100 { // of which all are alike
		s.Add("/kubepods/burstable/pod"+strconv.Itoa(n), busy(r, t0, 9000))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap := int(after.HeapAlloc) - int(before.HeapAlloc)
	t.Logf("%d bytes by its own account, %d of the heap; %.2f bytes a period", s.bytes, heap, float64(heap)/900_000)
	if 10*s.bytes > MaxBytes {
		t.Errorf("1,000 containers take %d bytes, want %d", 10*s.bytes, MaxBytes)
	}
	if heap > s.bytes*12/10+1<<21 {
		t.Errorf("%d bytes of the heap, the store counts %d", heap, s.bytes)
	}
	runtime.KeepAlive(s)
}

func BenchmarkPack(b *testing.B) {
	s, list := New(1<<40), busy(rand.New(rand.NewPCG(5, 6)), t0, 9000)
	for b.Loop() {
		s.Add("/a", list)
		clear(s.groups)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/9000, "ns/period")
}

func abs(n int32) int32 { return max(n, -n) }
