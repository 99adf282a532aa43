package responsetime

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const us, ms = time.Microsecond, time.Millisecond

// bucketOf is bucket of bpf/state.h, by floating point.
func bucketOf(d time.Duration) int {
	if d < 1<<first {
		return 0
	}
	power := math.Floor(math.Log2(float64(d)))
	part := math.Floor((float64(d)/math.Pow(2, power) - 1) * octave)
	return min(Buckets-1, int(power-first)*octave+int(part)+1)
}

func histogram(times ...time.Duration) (h Histogram) {
	for _, d := range times {
		h[bucketOf(d)]++
	}
	return h
}

// repeat is n times d.
func repeat(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// TestBuckets: the buckets follow each other without a gap, and the middle is off by Error at most.
func TestBuckets(t *testing.T) {
	var end time.Duration
	for i := range Buckets {
		low, high := bounds(i)
		if low != end || high <= low || bucketOf(low) != i || bucketOf(high-1) != i {
			t.Fatalf("bucket %d: %d to %d, after %d; %d and %d lie in it", i, low, high, end, bucketOf(low), bucketOf(high-1))
		}
		end = high
		for _, d := range []time.Duration{low, high - 1} {
			if off := math.Abs(float64(Middle(i)-d)) / float64(d); i > 0 && off > Error {
				t.Errorf("bucket %d: %v stands for %v, off by %.3f", i, Middle(i), d, off)
			}
		}
	}
	if Error > 0.05 || end < 100*time.Second {
		t.Errorf("an error of %.3f, up to %v", Error, end)
	}
}

// TestQuantiles: against the sorted times, by the nearest rank.
func TestQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 9, 10, 99, 100, 101, 5000} {
		var times []time.Duration
		for range n {
			times = append(times, time.Duration(math.Exp(rng.NormFloat64()*2)*float64(ms)))
		}
		q := histogram(times...).quantiles()
		slices.Sort(times)
		for _, c := range []struct {
			part int
			got  *time.Duration
			from int // requests that it takes
		}{{50, q.P50, 2}, {90, q.P90, 10}, {99, q.P99, 100}} {
			if (c.got != nil) != (n >= c.from) {
				t.Errorf("p%d of %d requests: %v", c.part, n, c.got)
				continue
			}
			if c.got == nil {
				continue
			}
			want := times[(n*c.part+99)/100-1]
			if off := math.Abs(float64(*c.got-want)) / float64(want); off > Error {
				t.Errorf("p%d of %d requests: %v, want %v", c.part, n, *c.got, want)
			}
		}
	}
	if q := (Histogram{}).quantiles(); q != nil {
		t.Errorf("of nothing: %+v", q)
	}
	if q := histogram(repeat(10, 300)...).quantiles(); *q.P50 != 0 {
		t.Errorf("below a microsecond: %v", *q.P50)
	}
}

// TestJudge: what is told, and what is withheld.
func TestJudge(t *testing.T) {
	good := func(n int) Counts {
		return Counts{Response: histogram(repeat(n, 10*ms)...), FirstByte: histogram(repeat(n, 2*ms)...), Throttled: histogram(repeat(n, 4*ms)...),
			Total: time.Duration(n) * 10 * ms, Kept: time.Duration(n) * 4 * ms}
	}
	for name, c := range map[string]struct {
		counts   func(*Counts)
		n        int
		withheld string
	}{
		"none":                      {nil, 0, ""},
		"some":                      {nil, 1000, ""},
		"as many in doubt as may":   {func(c *Counts) { c.Doubtful = 5 }, 995, ""},
		"one more":                  {func(c *Counts) { c.Doubtful = 6 }, 994, "around 6 of 1000"},
		"all in doubt":              {func(c *Counts) { c.Doubtful = 400 }, 0, "around 400 of 400"},
		"one of few":                {func(c *Counts) { c.Doubtful = 1 }, 9, "around 1 of 10"},
		"overtaken now and then":    {func(c *Counts) { c.Overtaken = 2 }, 998, ""},
		"overtaken often":           {func(c *Counts) { c.Overtaken = 50 }, 950, "around 50 of 1000"},
		"doubt and overtaken":       {func(c *Counts) { c.Doubtful, c.Overtaken = 3, 3 }, 994, "around 6 of 1000"},
		"connections kept for long": {func(c *Counts) { c.Opening = 100 }, 900, ""},
		"a handshake for each":      {func(c *Counts) { c.Opening = 500 }, 500, "500 of 1000 exchanges open a connection"},
	} {
		counts := good(c.n)
		if c.counts != nil {
			c.counts(&counts)
		}
		r := Judge(counts, 10*time.Second)
		all := counts.Answered()
		if (r.Withheld != "") != (c.withheld != "") || !strings.Contains(r.Withheld, c.withheld) || r.N != int64(all) {
			t.Errorf("%s: %+v", name, r)
		}
		if told := r.Response != nil || r.FirstByte != nil || r.Throttled != nil || r.Upload != nil || r.ThrottledShare != nil || r.PerSecond > 0; told != (c.withheld == "" && c.n > 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	r := Judge(good(1000), 10*time.Second)
	if r.PerSecond != 100 || *r.ThrottledShare != 0.4 || *r.Response.P50 <= *r.FirstByte.P50 || r.Upload != nil || r.Error != Error {
		t.Errorf("%+v", r)
	}
}

// TestSince: a bucket's count that turned over is a difference all the same.
func TestSince(t *testing.T) {
	before := Counts{Doubtful: 1, Opening: 1, Overtaken: 1, Clockless: 1, Total: ms, ClocklessTime: us, Kept: us}
	before.Response[3], before.Response[4] = math.MaxUint32, 5
	after := Counts{Doubtful: 3, Opening: 4, Overtaken: 6, Clockless: 7, Total: 3 * ms, ClocklessTime: 7 * us, Kept: 5 * us}
	after.Response[3], after.Response[4], after.Upload[9] = 1, 5, 2
	want := Counts{Doubtful: 2, Opening: 3, Overtaken: 5, Clockless: 6, Total: 2 * ms, ClocklessTime: 6 * us, Kept: 4 * us}
	want.Response[3], want.Upload[9] = 2, 2
	if got := after.Since(before); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestThrottledPart: requests that were not throttled count too, those whose group was not known at their arrival do not.
func TestThrottledPart(t *testing.T) {
	c := Counts{Response: histogram(repeat(100, 10*ms)...), Throttled: histogram(repeat(30, 4*ms)...), Total: time.Second, Clockless: 20,
		ClocklessTime: 200 * ms, Kept: 120 * ms}
	r := Judge(c, time.Second)
	if r.Throttled == nil || r.Throttled.N != 80 || *r.Throttled.P50 != 0 || (*r.Throttled.P90-4*ms).Abs() > 4*ms/32 || *r.ThrottledShare != 0.15 {
		t.Errorf("%+v", r.Throttled)
	}
	c.Clockless, c.Throttled, c.ClocklessTime, c.Kept = 100, Histogram{}, c.Total, 0
	if r := Judge(c, time.Second); r.Throttled != nil || r.ThrottledShare != nil {
		t.Errorf("without a clock: %+v", r.Throttled)
	}
}
