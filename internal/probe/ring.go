package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// maxBatch is how many events Read returns at most.
const maxBatch = 256

// Ring is a ring of events that programs fill: those of a Probe, or others that tell of throttles in the same words.
type Ring struct {
	reader *ringbuf.Reader
	record ringbuf.Record
	batch  []Event
	broken atomic.Int64
}

// OpenRing reads a map of type BPF_MAP_TYPE_RINGBUF.
func OpenRing(events *ebpf.Map) (*Ring, error) {
	reader, err := ringbuf.NewReader(events)
	if err != nil {
		return nil, fmt.Errorf("open the ring of events: %w", err)
	}
	return &Ring{reader: reader}, nil
}

// Read waits for events and returns all that are there, in order: none at an instant, or up to a millisecond after it, if that
// is not zero; io.EOF after Close. The slice is used again by the next Read or Poll.
func (r *Ring) Read(until time.Time) ([]Event, error) {
	r.batch = r.batch[:0]
	if !until.IsZero() {
		until = until.Add(time.Millisecond - 1) // the poller waits for whole milliseconds
	}
	r.reader.SetDeadline(until)
	for len(r.batch) == 0 || r.record.Remaining > 0 && len(r.batch) < maxBatch {
		err := r.next()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return r.batch, nil
		case errors.Is(err, os.ErrClosed) && len(r.batch) > 0:
			return r.batch, nil
		case errors.Is(err, os.ErrClosed):
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("read events: %w", err)
		}
	}
	return r.batch, nil
}

// Poll returns the events that are there, in order, and waits for none. A Ring is either read or polled.
func (r *Ring) Poll() ([]Event, error) {
	r.batch = r.batch[:0]
	r.reader.SetDeadline(time.Unix(1, 0)) // long ago
	for {
		switch err := r.next(); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return r.batch, nil
		case err != nil:
			return r.batch, fmt.Errorf("poll events: %w", err)
		}
	}
}

func (r *Ring) next() error {
	if err := r.reader.ReadInto(&r.record); err != nil {
		return err
	}
	e, err := decode(r.record.RawSample)
	if err != nil {
		r.broken.Add(1)
		return nil
	}
	r.batch = append(r.batch, e)
	return nil
}

// Broken counts the records that could not be decoded.
func (r *Ring) Broken() int64 { return r.broken.Load() }

// Close ends Read.
func (r *Ring) Close() error { return r.reader.Close() }
