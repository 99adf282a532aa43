package probe

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

const inf = ^uint64(0)

// record is what the kernel writes: group, at, since, kind and CPU, then the facts.
func record(list ...uint64) []byte {
	var raw []byte
	for _, v := range list {
		raw = binary.LittleEndian.AppendUint64(raw, v)
	}
	return raw
}

func TestDecode(t *testing.T) {
	begin, end, dry := uint64(1), uint64(2), uint64(3)
	for _, c := range []struct {
		name string
		raw  []byte
		want Event
	}{
		{"begin", record(7, 2000, 1000, begin|3<<32, 20e6, 100e6, 5e6, 9, 21e6, 4000, 12, 19e6, 800), Event{
			Group: 7, Kind: Begin, CPU: 3, At: 2000, Since: 1000,
			Facts: Facts{Quota: 20 * time.Millisecond, Period: 100 * time.Millisecond, Burst: 5 * time.Millisecond,
				Runtime: 9,
				Snap:    21 * time.Millisecond, Expires: 4000, Periods: 12, Used: 19 * time.Millisecond, OnCPUs: 800},
		}},
		{"unlimited since, and an old kernel", record(7, 2, 1, begin, inf, 100e6, 0, 0, inf, 0, 0, inf, 0), Event{
			Group: 7, Kind: Begin, At: 2, Since: 1, Facts: Facts{Quota: cpu.Unlimited, Period: 100 * time.Millisecond,
				Snap: NoSnap, Used: NoUse},
		}},
		{"end", record(7, 2, 1, end|1<<32, 0, 0, 0, 0, 0, 0, 0, 0, 0),
			Event{Group: 7, Kind: End, CPU: 1, At: 2, Since: 1}},
		{"dry", record(7, 1000, 2000, dry, 20e6, 100e6, 0, 0, 20e6, 4000, 1, 0, 0), Event{
			Group: 7, Kind: Dry, At: 1000, Since: 2000,
			Facts: Facts{Quota: 20 * time.Millisecond, Period: 100 * time.Millisecond, Snap: 20 * time.Millisecond,
				Expires: 4000, Periods: 1},
		}},
	} {
		got, err := decode(c.raw)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := record(7, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	if _, err := decode(good); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"nothing":                nil,
		"short":                  good[:len(good)-1],
		"long":                   append(good[:len(good):len(good)], 0),
		"kind 0":                 record(7, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"kind 9":                 record(7, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"time of 600 a":          record(7, 1<<63, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"quota below INF":        record(7, 2, 1, 1, inf-1, 0, 0, 0, 0, 0, 0, 0, 0),
		"period of INF":          record(7, 2, 1, 1, 0, inf, 0, 0, 0, 0, 0, 0, 0),
		"negative periods":       record(7, 2, 1, 1, 0, 0, 0, 0, 0, 0, inf, 0, 0),
		"use below INF":          record(7, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, inf-1, 0),
		"runtime of CPUs at INF": record(7, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, inf),
	} {
		if e, err := decode(raw); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// For any bytes in the ring, decoding gives an error or the event in them.
func FuzzDecode(f *testing.F) {
	f.Add(record(7, 2000, 1000, 1|3<<32, 20e6, 100e6, 5e6, 9, 21e6, 4000, 12, 19e6, 800))
	f.Add(record(7, 2, 1, 1, inf, 100e6, 0, 0, inf, 0, 0, inf, 0))
	f.Add(record(7, 2, 1, 2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decode(raw)
		if err != nil {
			if diff := cmp.Diff(Event{}, e); diff != "" {
				t.Errorf("an error and an event: %v\n%s", err, diff)
			}
			return
		}
		quota := uint64(e.Facts.Quota)
		if e.Facts.Quota == cpu.Unlimited {
			quota = inf
		}
		again := record(e.Group, uint64(e.At), uint64(e.Since), uint64(e.Kind)|uint64(e.CPU)<<32, quota,
			uint64(e.Facts.Period), uint64(e.Facts.Burst), uint64(e.Facts.Runtime), uint64(e.Facts.Snap),
			uint64(e.Facts.Expires), uint64(e.Facts.Periods), uint64(e.Facts.Used), uint64(e.Facts.OnCPUs))
		if diff := cmp.Diff(raw, again); diff != "" {
			t.Error(diff)
		}
	})
}
