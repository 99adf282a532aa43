package flight

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Encode writes a batch as one file.
func (e *Encoder) Encode(to io.Writer, b Batch) error { return e.Merge(to, slices.Values([]Batch{b})) }

func encoded(t testing.TB, b Batch) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := NewEncoder(Small).Encode(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func decode(data []byte) (Batch, error) { return Decode(bytes.NewReader(data), int64(len(data))) }

// sampleBatch has every column, an empty list of each kind, and runs of minutes.
func sampleBatch() Batch {
	b := fleet(rand.New(rand.NewPCG(1, 2)), mix(), 60, 2) // more rows than are read at once
	b.Rows[0].RefillAt, b.Rows[0].Refills = []int32{3, 3, 7}, 3
	b.Rows[1].Requests = &Requests{Answered: 1200, P50Us: 4000, P90Us: 9000, P99Us: 105_000, UnthrottledP99Us: 15_000,
		ResponseUs: 9_000_000, ThrottledUs: 3_000_000}
	b.Rows[2].Requests = &Requests{} // nothing came, and that was measured
	b.Rows[2].Waits = &Waits{Wanted: 9, Received: 1, OwnLimit: 2, PodLimit: 3, Neighbour: 4, Kernel: 5, Interrupts: 6,
		Hypervisor: 7, IdleWakeup: 8, OwnThreads: 10, Unnamed: 11}
	b.Covered = covered(0, 2*time.Minute, 7*time.Minute, 8*time.Minute)
	b.Lost = 42
	return b
}

func TestDecodeIsReverse(t *testing.T) {
	want := sampleBatch()
	got, err := decode(encoded(t, want))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestMerge: batches make one file, and none is held in memory once it is written.
func TestMerge(t *testing.T) {
	const parts, rows, places = 8, 300, 6000 // of periods of 10 ms
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var out bytes.Buffer
	before, most := heap(), int64(0)
	err := NewEncoder(Quick).Merge(&out, func(yield func(Batch) bool) {
		for n := range int64(parts) {
			start := t0.UnixMilli() + n*minuteMs
			b := Batch{Covered: Spans{{start, start + minuteMs}}, Lost: 1}
			for range rows {
				b.Rows = append(b.Rows, Minute{Cgroup: "/a", Start: start, PeriodUs: 10_000,
					Used: make([]float32, places)})
			}
			if !yield(b) {
				return
			}
			most = max(most, heap()-before)
		}
	})
	if bound := int64(parts / 2 * rows * places * 4); err != nil || most > bound {
		t.Errorf("%v; %d bytes are held, want %d at most", err, most, bound)
	}
	got, err := decode(out.Bytes())
	if err != nil || len(got.Rows) != parts*rows || got.Lost != parts || got.Covered.Length() != parts*time.Minute {
		t.Errorf("%d rows, %v, %d lost, %v", len(got.Rows), got.Covered, got.Lost, err)
	}
}

// TestDecodeOfAnOlderFile: a file of this version from before a column was added has all the others.
func TestDecodeOfAnOlderFile(t *testing.T) {
	data, err := os.ReadFile("testdata/before-requests.parquet")
	if err != nil {
		t.Fatal(err)
	}
	want := sampleBatch()
	want.Rows = want.Rows[:3]
	for i := range want.Rows {
		want.Rows[i].Requests, want.Rows[i].Waits = nil, nil
	}
	got, err := decode(data)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestEncoderIsReused: the second file has nothing of the first.
func TestEncoderIsReused(t *testing.T) {
	e, b := NewEncoder(Quick), sampleBatch()
	var first, second bytes.Buffer
	if err := errors.Join(e.Encode(&first, b), e.Encode(&second, Batch{Rows: b.Rows[:1]})); err != nil {
		t.Fatal(err)
	}
	got, err := decode(second.Bytes())
	if err != nil || len(got.Rows) != 1 || got.Lost != 0 || len(got.Covered) != 0 {
		t.Errorf("%v: %d rows, %d lost, covered %v", err, len(got.Rows), got.Lost, got.Covered)
	}
}

// TestDecodeRefuses: a file that is cut anywhere, has a changed byte,
// or is of another version is an error and no panic.
func TestDecodeRefuses(t *testing.T) {
	data := encoded(t, sampleBatch())
	for n := 0; n < len(data); n += 1 + n/50 {
		if _, err := decode(data[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d of %d bytes: %v", n, len(data), err)
		}
	}
	old := bytes.Replace(data, []byte(Schema), []byte("plimsoll.record/v9"), 1)
	var version *VersionError
	if _, err := decode(old); !errors.As(err, &version) || version.Schema != "plimsoll.record/v9" {
		t.Errorf("another version: %v", err)
	}
	good := Minute{PeriodUs: 1000, Used: []float32{1}}
	for name, change := range map[string]func(*Minute){
		"no period":     func(m *Minute) { m.PeriodUs = 0 },
		"no minute":     func(m *Minute) { m.Start = 1 },
		"no places":     func(m *Minute) { m.Used = nil },
		"throttled":     func(m *Minute) { m.ThrottledMs = []int32{0, 1} },
		"quota":         func(m *Minute) { m.QuotaUs = []int64{0} },
		"place beyond":  func(m *Minute) { m.RefillAt = []int32{1} },
		"place below 0": func(m *Minute) { m.RefillAt = []int32{-1} },
	} {
		m := good
		change(&m)
		if _, err := decode(encoded(t, Batch{Rows: []Minute{m}})); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := decode(encoded(t, Batch{Rows: []Minute{good}})); err != nil {
		t.Errorf("the good one: %v", err)
	}
}
