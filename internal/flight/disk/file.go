package disk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/flight"
)

// File is one file of a ring. Its name has all but its size.
type File struct {
	Path        string
	First, Last uint64    // the numbers of the minutes that it is made of, in the order of writing
	From, To    time.Time // of its rows, and of the time around them in which all groups slept
	Sum         uint32    // CRC-32C of its content
	Bytes       int64
}

const (
	suffix = ".parquet"
	stamp  = "20060102T1504Z"
)

// name is as "0000000041-0000000050-20261125T0310Z-20261125T0320Z-1a2b3c4d.parquet": sorted by name,
// files are in order.
func (f File) name() string {
	return fmt.Sprintf("%010d-%010d-%s-%s-%08x%s", f.First, f.Last, f.From.UTC().Format(stamp),
		f.To.UTC().Format(stamp), f.Sum, suffix)
}

// parse reads a name; false for what is no file of a ring.
func parse(name string) (f File, ok bool) {
	base, found := strings.CutSuffix(name, suffix)
	parts := strings.Split(base, "-")
	if !found || len(parts) != 5 {
		return f, false
	}
	var err [5]error
	f.First, err[0] = strconv.ParseUint(parts[0], 10, 63)
	f.Last, err[1] = strconv.ParseUint(parts[1], 10, 63)
	f.From, err[2] = time.Parse(stamp, parts[2])
	f.To, err[3] = time.Parse(stamp, parts[3])
	sum, bad := strconv.ParseUint(parts[4], 16, 32)
	f.Sum, err[4] = uint32(sum), bad
	return f, errors.Join(err[:]...) == nil && f.First <= f.Last && f.From.Before(f.To)
}

// List lists the files of a folder in the order in which they were written. double are those that are in a longer one:
// a reader leaves them out. One that is gone when its size is read is in the list: a longer one may have come since.
func List(dir string) (list, double []File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list the record: %w", err)
	}
	for _, e := range entries {
		f, ok := parse(e.Name())
		if !ok {
			continue
		}
		switch info, err := e.Info(); {
		case err == nil && !info.Mode().IsRegular():
			continue
		case err == nil:
			f.Bytes = info.Size()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("list the record: %w", err)
		}
		f.Path = filepath.Join(dir, e.Name())
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b File) int { // of two that begin together, the longer one first
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(b.Last, a.Last))
	})
	end := uint64(0)
	list = slices.DeleteFunc(list, func(f File) bool {
		if f.Last <= end {
			double = append(double, f)
			return true
		}
		end = f.Last
		return false
	})
	return list, double, nil
}

// maxFile bounds what is read into memory. Ten minutes of 4,096 groups whose every period differs are half of it.
const maxFile = 128 << 20

// castagnoli is the polynomial that processors have instructions for.
func castagnoli(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// Read reads a file. Its checksum is compared first: a library that reads what is damaged
// may ask for any amount of memory.
func Read(f File) (flight.Batch, error) {
	in, err := os.Open(f.Path)
	if err != nil {
		return flight.Batch{}, fmt.Errorf("read the record: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err != nil {
		return flight.Batch{}, fmt.Errorf("read the record: %w", err)
	}
	name := filepath.Base(f.Path)
	if sum := castagnoli(data); sum != f.Sum {
		return flight.Batch{}, fmt.Errorf("%s: %w: its checksum is %08x", name, flight.ErrDamaged, sum)
	}
	b, err := flight.Decode(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return b, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// ReadAs reads a file by its path, which has its checksum in its name.
func ReadAs(path string) (flight.Batch, error) {
	f, ok := parse(filepath.Base(path))
	if !ok {
		return flight.Batch{}, fmt.Errorf("%s is not named as a file of the record", path)
	}
	f.Path = path
	return Read(f)
}

// Range is what a folder has of a time.
type Range struct {
	Rows    []flight.Minute // in the order in which they were written
	Covered flight.Spans    // of its minutes, in which periods were recorded
	Lost    int64           // periods that are missing in files of this time
	Files   int
	Skipped []error // files that cannot be read
}

// attempts bounds how often Select begins: files go once a minute, where one is written.
const attempts = 5

// Select reads the rows of the minutes that touch a time, for which keep is true. Keep may drop what is not needed of a
// row. Where a file is gone when its turn comes, all is read again: it has made room, or is in a longer one that came
// after the list.
func Select(dir string, from, to time.Time, keep func(*flight.Minute) bool) (r Range, err error) {
	for range attempts {
		var gone bool
		if r, gone, err = selectOnce(dir, from, to, keep); err != nil || !gone {
			break
		}
	}
	return r, err
}

// selectOnce is one attempt. It leaves out files that are gone.
func selectOnce(dir string, from, to time.Time, keep func(*flight.Minute) bool) (r Range, gone bool, err error) {
	list, _, err := List(dir)
	if err != nil {
		return Range{}, false, err
	}
	first, last := from.Add(-time.Minute).UnixMilli(), to.UnixMilli()
	within := func(start int64) bool { return start > first && start < last }
	for _, f := range list {
		if !f.To.After(from) || !f.From.Before(to) {
			continue
		}
		b, err := Read(f)
		if errors.Is(err, fs.ErrNotExist) {
			gone = true
			continue
		}
		if err != nil {
			r.Skipped = append(r.Skipped, err)
			continue
		}
		r.Files++
		r.Lost += b.Lost
		for i := range b.Rows {
			if m := &b.Rows[i]; within(m.Start) && keep(m) {
				r.Rows = append(r.Rows, *m)
			}
		}
		r.Covered = flight.Union(r.Covered, b.Covered)
	}
	r.Covered = r.Covered.Within(from.Truncate(time.Minute).UnixMilli(),
		to.Add(time.Minute-time.Millisecond).Truncate(time.Minute).UnixMilli())
	return r, gone, nil
}
