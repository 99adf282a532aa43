package flight

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// Keys of a file's metadata, besides SchemaKey.
const (
	minutesKey = "plimsoll.minutes"  // that are covered, or a part of them, as runs of Unix minutes
	coveredKey = "plimsoll.recorded" // what is covered, as runs of Unix ms; older files have minutes only
	lostKey    = "plimsoll.lost_periods"
)

// ErrDamaged says that bytes are not a file of this package.
var ErrDamaged = errors.New("damaged record")

// VersionError says that a file has another schema.
type VersionError struct{ Schema string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the record has schema %.60q, this program reads %q", e.Schema, Schema)
}

// Encoder writes files. It keeps its buffers for the next one: its methods are not to be called at the same time.
type Encoder struct {
	w *parquet.GenericWriter[Minute]
}

// pageBytes bounds what the writer collects of a column before it compresses it.
const pageBytes = 256 << 10

// NewEncoder makes an encoder.
func NewEncoder(e Effort) *Encoder {
	return &Encoder{parquet.NewGenericWriter[Minute](io.Discard, parquet.Compression(newCodec(e)),
		parquet.PageBufferSize(pageBytes),
		parquet.KeyValueMetadata(SchemaKey, Schema), parquet.CreatedBy("plimsoll", "1", ""))}
}

// Merge writes batches as one file. It holds one of them at a time.
func (e *Encoder) Merge(to io.Writer, parts iter.Seq[Batch]) error {
	e.w.Reset(to)
	var covered Spans
	var lost int64
	for b := range parts {
		if _, err := e.w.Write(b.Rows); err != nil {
			return fmt.Errorf("encode the record: %w", err)
		}
		covered, lost = Union(covered, b.Covered), lost+b.Lost
	}
	e.w.SetKeyValueMetadata(minutesKey, covered.minutes().spell(minuteMs))
	e.w.SetKeyValueMetadata(coveredKey, covered.spell(1))
	e.w.SetKeyValueMetadata(lostKey, strconv.FormatInt(lost, 10))
	if err := e.w.Close(); err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	return nil
}

// Decode reads a file. An error is ErrDamaged or a VersionError. What was damaged with care can make the library
// allocate as much memory as it likes: package disk compares a checksum before.
func Decode(from io.ReaderAt, size int64) (b Batch, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's, of a file that was damaged with care
			b, err = Batch{}, fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	f, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return Batch{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if schema, ok := f.Lookup(SchemaKey); !ok || schema != Schema {
		return Batch{}, &VersionError{schema}
	}
	if n := f.NumRows(); n < 0 || n > maxRows {
		return Batch{}, fmt.Errorf("%w: %d rows", ErrDamaged, n)
	}
	if b, err = metadata(f); err != nil {
		return Batch{}, err
	}
	if b.Rows, err = rows(f); err != nil {
		return Batch{}, err
	}
	return b, nil
}

// maxRows is of the largest file: 4,096 groups in ten minutes, and some that come and go.
const maxRows = 1 << 16

func metadata(f *parquet.File) (b Batch, err error) {
	lost, _ := f.Lookup(lostKey)
	if b.Lost, err = strconv.ParseInt(lost, 10, 64); err != nil || b.Lost < 0 {
		return b, fmt.Errorf("%w: metadata %s: %.40q", ErrDamaged, lostKey, lost)
	}
	if covered, exact := f.Lookup(coveredKey); exact {
		b.Covered, err = parseSpans(coveredKey, covered, 1)
		return b, err
	}
	minutes, _ := f.Lookup(minutesKey)
	b.Covered, err = parseSpans(minutesKey, minutes, minuteMs)
	return b, err
}

func rows(f *parquet.File) ([]Minute, error) {
	r := parquet.NewGenericReader[Minute](f)
	defer r.Close()
	list := make([]Minute, 0, f.NumRows())
	buffer := make([]Minute, 64)
	for {
		n, err := r.Read(buffer)
		for i := range buffer[:n] {
			if fault := buffer[i].check(); fault != nil {
				return nil, fault
			}
		}
		list = append(list, buffer[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		case n == 0 || len(list) > maxRows:
			return nil, fmt.Errorf("%w: its rows do not end", ErrDamaged)
		}
	}
}

// check says what of a row cannot be.
func (m *Minute) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s of a row of %.100q", ErrDamaged, what, m.Cgroup) }
	switch {
	case m.PeriodUs < 1000 || m.First < 0 || m.Start%minuteMs != 0:
		return bad("the time")
	case len(m.Used) == 0 || len(m.Used) > maxPlaces+1:
		return bad("the number of places")
	case len(m.ThrottledMs) > len(m.Used) || len(m.QuotaAt) != len(m.QuotaUs):
		return bad("the length of a list")
	}
	for _, list := range [][]int32{m.RefillAt, m.QuotaAt} {
		for _, at := range list {
			if at < 0 || int(at) >= len(m.Used) {
				return bad("a place")
			}
		}
	}
	return nil
}
