// Package disk keeps the flight recorder's files: a ring that is bounded in bytes and hours.
//
// # Problem
//
// The record is written always, on a disk that others need. The disk may be full, slow or failing, and power may go at
// any time. A Parquet file has its footer at the end: what was not closed cannot be read.
//
// # Approach
//
// Each minute is encoded in memory and becomes a file of its own: written whole to a temporary name, fsync, rename,
// fsync of the folder. So a power cut costs the minute that was being collected, and the one that was being written.
// Ten such files are then written as one, which saves nine footers (a third of a small node's record), and are removed
// after that one is there. A file's name has the numbers of the first and the last minute that it is made of: where a
// crash left both, the longer range counts, and no list of files has to be kept true. The name also has a checksum,
// which a reader compares first.
//
// Reading a minute again costs as much as writing it twice: the last ten are kept in memory, up to 10 MiB, which is
// some 2,500 rows of periods of 100 ms. They are read only where there is more, or after a restart, one at a time.
//
// Before a file is written the oldest go, until it fits. A file that cannot be written is dropped and counted; the next
// minute tries again. Whoever has minutes to write gives them to a queue (Writer) and never waits.
//
// The thread that writes has no low priority of its own: the collector of garbage stops all threads of the agent, and
// one that the kernel keeps waiting at nice 19 on a full node would have the refills wait for it.
//
// # Known limits
//
// A file that is damaged when it is read to be merged is left out of the merged one, and counted. Where the clock is
// set back by more than the bound in hours, files look young until it has caught up:
// the bound in bytes holds all the same.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/atomicfile"
	"plimsoll/internal/flight"
)

// Options bound a ring.
type Options struct {
	Dir      string
	MaxBytes int64
	MaxAge   time.Duration
}

// The bounds that a ring has unless told otherwise.
const (
	DefaultBytes = 500 << 20
	DefaultAge   = 48 * time.Hour
)

// Ring is the folder, for the one process that writes to it. Its methods are not to be called at the same time.
type Ring struct {
	o       Options
	files   []File // by their numbers
	bytes   int64
	next    uint64
	encoder *flight.Encoder
	buffer  bytes.Buffer
	damaged int64
	kept    map[uint64]flight.Batch // minutes that are not merged yet, by number: what is not here is read again
	memory  int                     // of kept, in bytes
}

const (
	mergeAt   = 10
	maxKept   = 10 << 20 // bytes: ten minutes of 250 containers with periods of 100 ms
	rowBytes  = 500      // of a row without its places
	temporary = atomicfile.Suffix
)

// OpenRing makes the folder where there is none, and removes what a crash has left: the ring's temporary files, and its
// files that are in a longer one. The folder may have files of others.
func OpenRing(o Options) (*Ring, error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("the record's folder: %w", err)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("the record's folder: %w", err)
	}
	for _, e := range entries {
		name, left := strings.CutSuffix(e.Name(), temporary)
		if _, ours := parse(name); !left || !ours || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(o.Dir, e.Name())); err != nil {
			return nil, fmt.Errorf("the record's folder: %w", err)
		}
	}
	list, double, err := List(o.Dir)
	if err != nil {
		return nil, err
	}
	r := &Ring{o: o, files: list, encoder: flight.NewEncoder(flight.Quick), next: 1, kept: map[uint64]flight.Batch{}}
	for _, f := range double {
		if err := os.Remove(f.Path); err != nil {
			return nil, fmt.Errorf("the record's folder: %w", err)
		}
		r.next = max(r.next, f.Last+1)
	}
	for _, f := range list {
		r.bytes += f.Bytes
		r.next = max(r.next, f.Last+1)
	}
	return r, nil
}

// Bytes and Files are what the ring has; Damaged counts files that could not be read when they were merged.
func (r *Ring) Bytes() int64   { return r.bytes }
func (r *Ring) Files() int     { return len(r.files) }
func (r *Ring) Damaged() int64 { return r.damaged }

// Write writes a batch as the newest file, for which the oldest make room.
func (r *Ring) Write(b flight.Batch, now time.Time) error {
	f := File{First: r.next, Last: r.next}
	if err := r.put(&f, slices.Values([]flight.Batch{b}), now); err != nil {
		return err
	}
	r.next++
	r.files = append(r.files, f)
	if size := memory(b); r.memory+size <= maxKept {
		r.kept[f.First] = b
		r.memory += size
	}
	return r.merge(now)
}

// memory is about what a batch takes, in bytes.
func memory(b flight.Batch) (n int) {
	for i := range b.Rows {
		m := &b.Rows[i]
		n += rowBytes + 4*(cap(m.Used)+cap(m.ThrottledMs)+cap(m.RefillAt)+cap(m.QuotaAt)) + 8*cap(m.QuotaUs)
	}
	return n
}

// put writes a file of batches.
func (r *Ring) put(f *File, parts iter.Seq[flight.Batch], now time.Time) error {
	r.buffer.Reset()
	err := r.encoder.Merge(&r.buffer, func(yield func(flight.Batch) bool) {
		for b := range parts {
			if f.hold(b); !yield(b) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if f.From.IsZero() {
		return errors.New("write the record: nothing was recorded")
	}
	f.Bytes = int64(r.buffer.Len())
	if f.Bytes > r.o.MaxBytes {
		return fmt.Errorf("write the record: a file of %d bytes is above the bound of %d for all", f.Bytes,
			r.o.MaxBytes)
	}
	if f.First == f.Last { // one that is made of others takes the room of these
		if err := r.evict(f.Bytes, now); err != nil {
			return err
		}
	}
	f.Sum = castagnoli(r.buffer.Bytes())
	f.Path = filepath.Join(r.o.Dir, f.name())
	if err := atomicfile.Write(f.Path, r.buffer.Bytes(), 0o640); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	r.bytes += f.Bytes
	return nil
}

// hold extends a file's time to that of a batch, in whole minutes: of its rows, and of the time in which all slept.
func (f *File) hold(b flight.Batch) {
	if len(b.Rows)+len(b.Covered) == 0 {
		return
	}
	const minute = int64(time.Minute / time.Millisecond)
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range b.Rows {
		first, last = min(first, b.Rows[i].Start), max(last, b.Rows[i].Start+minute)
	}
	if n := len(b.Covered); n > 0 {
		first, last = min(first, b.Covered[0].From), max(last, b.Covered[n-1].To+minute-1)
	}
	from, to := time.UnixMilli(first-first%minute).UTC(), time.UnixMilli(last-last%minute).UTC()
	if f.From.IsZero() || from.Before(f.From) {
		f.From = from
	}
	if to.After(f.To) {
		f.To = to
	}
}

// evict removes the oldest files: those that are too old, and as many as make room for so many bytes.
func (r *Ring) evict(room int64, now time.Time) error {
	for len(r.files) > 0 {
		f := r.files[0]
		if r.bytes+room <= r.o.MaxBytes && f.To.After(now.Add(-r.o.MaxAge)) {
			return nil
		}
		if err := r.remove(f); err != nil {
			return err
		}
		r.files = r.files[1:]
	}
	return nil
}

func (r *Ring) remove(f File) error {
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old record: %w", err)
	}
	r.bytes -= f.Bytes
	return nil
}

// merge makes one file of the last ten, once there are ten of one minute each.
func (r *Ring) merge(now time.Time) error {
	at, size := r.unmerged()
	if at < 0 {
		return nil
	}
	if err := r.evict(size, now); err != nil { // before, for the parts must not go while they are merged
		return err
	}
	if at, _ = r.unmerged(); at < 0 {
		return nil // they were the oldest
	}
	parts := slices.Clone(r.files[at:])
	whole := File{First: parts[0].First, Last: parts[len(parts)-1].Last}
	quick := r.encoder
	r.encoder = flight.NewEncoder(flight.Small) // its memory is not kept
	err := r.put(&whole, r.read(parts), now)
	if r.encoder = quick; err != nil {
		return fmt.Errorf("make one file of %d: %w", len(parts), err)
	}
	for _, f := range parts {
		if err := r.remove(f); err != nil {
			return err
		}
	}
	r.files = append(r.files[:at], whole)
	clear(r.kept)
	r.memory = 0
	return nil
}

// unmerged is where the last ten files begin, where each of them is of one minute, and their size;
// -1 where they are not.
func (r *Ring) unmerged() (at int, size int64) {
	at = len(r.files) - mergeAt
	if at < 0 || slices.ContainsFunc(r.files[at:], func(f File) bool { return f.First != f.Last }) {
		return -1, 0
	}
	for _, f := range r.files[at:] {
		size += f.Bytes
	}
	return at, size
}

// read returns the minutes of files, each of which is read as its turn comes.
func (r *Ring) read(parts []File) iter.Seq[flight.Batch] {
	return func(yield func(flight.Batch) bool) {
		for _, f := range parts {
			b, kept := r.kept[f.First]
			if !kept {
				var err error
				if b, err = Read(f); err != nil {
					r.damaged++
					continue
				}
			}
			if !yield(b) {
				return
			}
		}
	}
}
