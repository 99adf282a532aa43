package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/flight"
)

var t0 = time.Date(2026, 11, 25, 3, 10, 0, 0, time.UTC)

// minute is the batch of a minute of so many containers, each with noise, which does not compress.
func minute(n, containers int) flight.Batch {
	start := t0.Add(time.Duration(n) * time.Minute).UnixMilli()
	b := flight.Batch{Covered: flight.Spans{{From: start, To: start + 60_000}}, Lost: 1}
	x := uint32(n + 1)
	for c := range containers {
		m := flight.Minute{Cgroup: fmt.Sprintf("/lab/%d", c), Container: fmt.Sprint(c), Start: start, PeriodUs: 100_000,
			LimitUs: 50_000, Periods: 600}
		for range 600 {
			x = x*1664525 + 1013904223
			m.Used = append(m.Used, float32(x>>20))
			m.UsedUs += int64(x>>20) * 10
		}
		b.Rows = append(b.Rows, m)
	}
	return b
}

func open(t testing.TB, o Options) *Ring {
	t.Helper()
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultBytes
	}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultAge
	}
	r, err := OpenRing(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write writes minutes from one up to another.
func write(t testing.TB, r *Ring, from, to, containers int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := r.Write(minute(n, containers), t0.Add(time.Duration(n+1)*time.Minute)); err != nil {
			t.Fatalf("minute %d: %v", n, err)
		}
	}
}

// onDisk is what a folder has: file names, and bytes.
func onDisk(t testing.TB, dir string) (names []string, bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		names, bytes = append(names, e.Name()), bytes+info.Size()
	}
	return names, bytes
}

func all(*flight.Minute) bool { return true }

func selected(t testing.TB, dir string, from, to int) Range {
	t.Helper()
	r, err := Select(dir, t0.Add(time.Duration(from)*time.Minute), t0.Add(time.Duration(to)*time.Minute), all)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTenMinutesAreOneFile: a minute is a file at once, ten become one, and all rows come back, in order.
func TestTenMinutesAreOneFile(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	write(t, r, 0, 12, 2)
	names, bytes := onDisk(t, dir)
	want := []string{"0000000001-0000000010-20261125T0310Z-20261125T0320Z.parquet",
		"0000000011-0000000011-20261125T0320Z-20261125T0321Z.parquet",
		"0000000012-0000000012-20261125T0321Z-20261125T0322Z.parquet"}
	for i, name := range names {
		names[i] = regexp.MustCompile("-[0-9a-f]{8}[.]").ReplaceAllString(name, ".")
	}
	if diff := cmp.Diff(want, names); diff != "" || bytes != r.Bytes() || r.Files() != 3 {
		t.Errorf("%d bytes, want %d; %d files (-want +got):\n%s", r.Bytes(), bytes, r.Files(), diff)
	}
	got := selected(t, dir, 0, 12)
	if len(got.Rows) != 24 || got.Covered.Length() != 12*time.Minute || got.Lost != 12 || len(got.Skipped) > 0 {
		t.Fatalf("%d rows, %v, %d lost, %v", len(got.Rows), got.Covered, got.Lost, got.Skipped)
	}
	for i, m := range got.Rows {
		if diff := cmp.Diff(minute(i/2, 2).Rows[i%2].Used, m.Used); diff != "" {
			t.Fatalf("row %d (-want +got):\n%s", i, diff)
		}
	}
	again := open(t, Options{Dir: dir})
	if again.Files() != 3 || again.Bytes() != bytes {
		t.Errorf("after a restart: %d files, %d bytes", again.Files(), again.Bytes())
	}
	write(t, again, 12, 13, 2)
	if names, _ := onDisk(t, dir); len(names) != 4 || !strings.HasPrefix(names[3], "0000000013-0000000013") {
		t.Errorf("a restart goes on with the next number: %v", names)
	}
}

// TestSelect: the minutes that touch the time, of the containers that are meant.
func TestSelect(t *testing.T) {
	dir := t.TempDir()
	write(t, open(t, Options{Dir: dir}), 0, 12, 2)
	for _, c := range []struct {
		from, to time.Duration
		rows     int
		files    int
	}{{0, time.Minute, 2, 1}, {90 * time.Second, 100 * time.Second, 2, 1}, {9 * time.Minute, 11 * time.Minute, 4, 2},
		{-time.Hour, 0, 0, 0}, {12 * time.Minute, time.Hour, 0, 0}} {
		r, err := Select(dir, t0.Add(c.from), t0.Add(c.to), all)
		if err != nil || len(r.Rows) != c.rows || r.Files != c.files ||
			r.Covered.Length() != time.Duration(c.rows/2)*time.Minute {
			t.Errorf("%v to %v: %d rows of %d files, %v, %v; want %d of %d", c.from, c.to, len(r.Rows), r.Files,
				r.Covered, err, c.rows, c.files)
		}
	}
	one, err := Select(dir, t0, t0.Add(time.Hour), func(m *flight.Minute) bool { return m.Cgroup == "/lab/1" })
	if err != nil || len(one.Rows) != 12 || one.Covered.Length() != 12*time.Minute {
		t.Errorf("%d rows of one container, %v, %v", len(one.Rows), one.Covered, err)
	}
}

// TestSelectDuringAMerge: minutes that become one file while they are read are all there, and once.
func TestSelectDuringAMerge(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	write(t, r, 0, 9, 2)
	got, err := Select(dir, t0, t0.Add(10*time.Minute), func(*flight.Minute) bool {
		if r.Files() == 9 {
			write(t, r, 9, 10, 2)
		}
		return true
	})
	if err != nil || r.Files() != 1 || len(got.Rows) != 20 || got.Files != 1 ||
		got.Covered.Length() != 10*time.Minute {
		t.Errorf("%d rows of %d files, %v, %v", len(got.Rows), got.Files, got.Covered, err)
	}
}

// TestSelectOfASleep: of a time in which all groups slept the file of the minute after it says that it was recorded.
func TestSelectOfASleep(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	write(t, r, 0, 1, 2)
	b := minute(300, 2)
	b.Covered[0].From = t0.Add(time.Minute + 500*time.Millisecond).UnixMilli()
	if err := r.Write(b, t0.Add(301*time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []int{301, 309} { // at last in a file of ten
		write(t, r, 301, to, 2)
		if got := selected(t, dir, 60, 120); len(got.Rows) != 0 || got.Covered.Length() != time.Hour || got.Files != 1 {
			t.Errorf("%d rows of %d files, %v", len(got.Rows), got.Files, got.Covered)
		}
	}
	if names, _ := onDisk(t, dir); len(names) != 1 || !strings.Contains(names[0], "-20261125T0310Z-20261125T0819Z-") {
		t.Errorf("%v", names)
	}
}

// TestRingIsBounded: after each write the folder is within its bytes and its hours, and the newest is there.
func TestRingIsBounded(t *testing.T) {
	dir, most := t.TempDir(), int64(600_000)
	r := open(t, Options{Dir: dir, MaxBytes: most})
	for n := range 160 {
		write(t, r, n, n+1, 4)
		names, bytes := onDisk(t, dir)
		if bytes > most || bytes != r.Bytes() {
			t.Fatalf("minute %d: %d bytes on disk, %d by the ring's account, want %d at most", n, bytes, r.Bytes(),
				most)
		}
		if got := selected(t, dir, n, n+1); len(got.Rows) != 4 {
			t.Fatalf("minute %d: %d rows; %v", n, len(got.Rows), names)
		}
	}
	if _, bytes := onDisk(t, dir); bytes < most/2 {
		t.Errorf("only %d of %d bytes are used, and a merge makes room for ten minutes", bytes, most)
	}
	old := t.TempDir()
	r = open(t, Options{Dir: old, MaxAge: 30 * time.Minute})
	write(t, r, 0, 60, 1)
	got := selected(t, old, 0, 60)
	if n := len(got.Rows); n < 30 || n > 40 || got.Rows[n-1].Start != t0.Add(59*time.Minute).UnixMilli() {
		t.Errorf("%d minutes are kept, want 30, and the rest of ten", n)
	}
	if err := open(t, Options{Dir: t.TempDir(), MaxBytes: 1000}).Write(minute(0, 4), t0); err == nil {
		t.Error("a file above the bound was written")
	}
}

// TestCrash: whatever a crash leaves, the rows of the minutes that were written are read once.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	write(t, r, 0, 9, 2)
	kept := map[string][]byte{}
	names, _ := onDisk(t, dir)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = data
	}
	write(t, r, 9, 10, 2)
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range kept { // the merged file is there, and its parts are not removed yet
		put(name, data)
	}
	put("0000000011-0000000011-20261125T0320Z-20261125T0321Z-00000000.parquet.new", []byte("PAR1"))
	put("README", []byte("somebody's"))
	if got := selected(t, dir, 0, 20); len(got.Rows) != 20 || len(got.Skipped) > 0 {
		t.Errorf("%d rows, want 20; %v", len(got.Rows), got.Skipped)
	}
	r = open(t, Options{Dir: dir})
	if names, _ := onDisk(t, dir); len(names) != 2 || names[1] != "README" || r.Files() != 1 {
		t.Errorf("after a restart: %v", names)
	}
}

// TestCutFile: a file that is cut short is left out with a message, also where it would be merged,
// and the others are read.
func TestCutFile(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	write(t, r, 0, 9, 2)
	names, _ := onDisk(t, dir)
	if err := os.Truncate(filepath.Join(dir, names[4]), 500); err != nil {
		t.Fatal(err)
	}
	got := selected(t, dir, 0, 9)
	if len(got.Rows) != 16 || got.Covered.Length() != 8*time.Minute || len(got.Skipped) != 1 ||
		!errors.Is(got.Skipped[0], flight.ErrDamaged) ||
		!strings.Contains(got.Skipped[0].Error(), names[4]) {
		t.Errorf("%d rows, %v, %v", len(got.Rows), got.Covered, got.Skipped)
	}
	r = open(t, Options{Dir: dir}) // which has no minute in memory
	write(t, r, 9, 10, 2)
	if got := selected(t, dir, 0, 10); len(got.Rows) != 18 || r.Damaged() != 1 || r.Files() != 1 {
		t.Errorf("merged: %d rows, %d damaged, %d files", len(got.Rows), r.Damaged(), r.Files())
	}
}

// TestDamagedFile: whatever byte of a file is changed, it is left out.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	write(t, open(t, Options{Dir: dir}), 0, 1, 2)
	names, _ := onDisk(t, dir)
	path := filepath.Join(dir, names[0])
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += 37 {
		data[at] ^= 0x10
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := selected(t, dir, 0, 1); len(got.Rows) != 0 || len(got.Skipped) != 1 ||
			!errors.Is(got.Skipped[0], flight.ErrDamaged) {
			t.Fatalf("byte %d: %d rows, %v", at, len(got.Rows), got.Skipped)
		}
		data[at] ^= 0x10
	}
}

// TestMergeFromMemory: minutes that are still in memory are not read again, up to the bound; others are.
func TestMergeFromMemory(t *testing.T) {
	many := maxKept/9/memory(minute(0, 1)) + 1
	for containers, want := range map[int]int{2: 20, many: 9 * many} {
		dir := t.TempDir()
		r := open(t, Options{Dir: dir})
		write(t, r, 0, 9, containers)
		names, _ := onDisk(t, dir)
		if err := os.Truncate(filepath.Join(dir, names[8]), 500); err != nil {
			t.Fatal(err)
		}
		write(t, r, 9, 10, containers)
		if got := selected(t, dir, 0, 10); len(got.Rows) != want || r.memory != 0 || len(r.kept) != 0 {
			t.Errorf("%d containers: %d rows, want %d; %d bytes are kept", containers, len(got.Rows), want, r.memory)
		}
	}
}

// TestShortPeriodsAreNotKept: a minute of few rows with many places is too much to keep, and is merged all the same.
func TestShortPeriodsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	long := minute(0, 100)
	for i := range long.Rows {
		m := &long.Rows[i]
		m.PeriodUs, m.Used, m.UsedUs = 1000, make([]float32, 60_000), 0
	}
	if err := r.Write(long, t0.Add(time.Minute)); err != nil || len(r.kept) != 0 || r.memory != 0 {
		t.Errorf("%v; %d minutes of %d bytes are kept", err, len(r.kept), r.memory)
	}
	refilled := minute(1, 1)
	refilled.Rows[0].RefillAt = make([]int32, maxKept/4)
	if got := memory(refilled); got <= maxKept {
		t.Errorf("%d bytes with %d refills", got, maxKept/4)
	}
	write(t, r, 1, 10, 1)
	if got := selected(t, dir, 0, 10); len(got.Rows) != 109 || got.Files != 1 || len(got.Rows[0].Used) != 60_000 {
		t.Errorf("%d rows of %d files", len(got.Rows), got.Files)
	}
}

// TestWriterNeverBlocks: who gives more than the disk takes goes on, and what is dropped is counted.
func TestWriterNeverBlocks(t *testing.T) {
	w := NewWriter(Options{Dir: t.TempDir(), MaxBytes: DefaultBytes, MaxAge: DefaultAge},
		func() time.Time { return t0 }, slog.New(slog.DiscardHandler))
	for n := range queueLen + 3 { // nobody writes: the disk hangs
		w.Offer(minute(n, 2))
	}
	if got := w.State().Dropped; got != 3*2*600 {
		t.Errorf("%d periods dropped, want those of three minutes", got)
	}
}

// TestWriterEnds: what waits as the context ends is written.
func TestWriterEnds(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(Options{Dir: dir, MaxBytes: DefaultBytes, MaxAge: DefaultAge}, func() time.Time { return t0 },
		slog.New(slog.DiscardHandler))
	for n := range 3 {
		w.Offer(minute(n, 2))
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	w.Run(ctx)
	if s := w.State(); s.Written != 3*2*600 || s.Files != 3 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}
