package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/flight"
)

// TestQuietNight: what agents write of times without a row is read, also once it is merged.
func TestQuietNight(t *testing.T) {
	dir := t.TempDir()
	r := open(t, Options{Dir: dir})
	for n := range int64(mergeAt + 1) {
		start := t0.UnixMilli() + n*60_000 + 1
		quiet := flight.Batch{Covered: flight.Spans{{From: start, To: start + 59_998}}}
		if err := r.Write(quiet, t0.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		got := selected(t, dir, int(n), int(n+1))
		if diff := cmp.Diff(quiet.Covered, got.Covered); diff != "" || len(got.Rows)+len(got.Skipped) > 0 {
			t.Errorf("minute %d: %d rows, %v (-want +got):\n%s", n, len(got.Rows), got.Skipped, diff)
		}
	}
	const all = (mergeAt + 1) * 59_998 * time.Millisecond
	if got := selected(t, dir, 0, mergeAt+1); got.Files != 2 || got.Covered.Length() != all {
		t.Errorf("%d files of %v", got.Files, got.Covered)
	}
	if err := r.Write(flight.Batch{}, t0.Add(time.Hour)); err == nil {
		t.Error("a file of nothing is written")
	}
}

// TestFilesOfOthers: of a folder that has more than the ring, what a crash has left of the ring goes, and nothing else.
// Its name may have any letters.
func TestFilesOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	ours := File{First: 1, Last: 1, From: t0, To: t0.Add(time.Minute)}.name() + temporary
	for _, name := range []string{"site.new", "x.new/y", "a.parquet.new", ours} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, open(t, Options{Dir: dir}), 0, 1, 1)
	names, _ := onDisk(t, dir)
	if want := []string{"a.parquet.new", "site.new", "x.new"}; len(names) != 4 || !slices.Equal(names[1:], want) {
		t.Errorf("%q, want one file of the ring and %q", names, want)
	}
}

// TestListWhileFilesGo: a file that is gone when its size is read is in the list, and no error.
func TestListWhileFilesGo(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(t.TempDir(), "whole")
	path := filepath.Join(dir, File{First: 1, Last: 1, From: t0, To: t0.Add(time.Minute)}.name())
	if err := os.WriteFile(whole, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	done := make(chan error)
	go func() {
		var err error
		for err == nil && !ended.Load() {
			err = errors.Join(os.Link(whole, path), os.Remove(path)) // it is never empty
		}
		done <- err
	}()
	begun := time.Now()
	for gone := false; !gone && !t.Failed(); {
		list, _, err := List(dir)
		gone = len(list) == 1 && list[0].Bytes == 0
		if err != nil || time.Since(begun) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	}
	ended.Store(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	f := File{First: 41, Last: 50, From: t0, To: t0.Add(10 * time.Minute), Sum: 0xabc}
	if got, ok := parse(f.name()); !ok || got != f {
		t.Errorf("%s: %+v", f.name(), got)
	}
	for _, name := range []string{"", "a.parquet", "1-2-3-4.parquet", "2-1-20261125T0310Z-20261125T0320Z-0.parquet",
		"1-2-20261125T0320Z-20261125T0320Z-0.parquet", "1-2-20261125T0310Z-20261125T0320Z.parquet",
		"1-2-20261125T0310Z-20261125T0320Z-x.parquet",
		"1-2-20261125T0310Z-20261125T0320Z-0.parquet.new", "-1-2-20261125T0310Z-20261125T0320Z-0.parquet"} {
		if f, ok := parse(name); ok {
			t.Errorf("%q is taken for %+v", name, f)
		}
	}
}

// FuzzNames: a name that is taken is that of the file that it is taken for.
func FuzzNames(f *testing.F) {
	f.Add("0000000041-0000000050-20261125T0310Z-20261125T0320Z-1a2b3c4d.parquet")
	f.Fuzz(func(t *testing.T, name string) {
		file, ok := parse(name)
		if !ok {
			return
		}
		if again, ok := parse(file.name()); !ok || again != file {
			t.Errorf("%q: %+v, then %+v", name, file, again)
		}
	})
}
