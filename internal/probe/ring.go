package probe

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// maxBatch is how many events Read returns at most.
const maxBatch = 256

// Ring is a ring of events that programs fill: those of a Probe, or others that report throttles in the same format.
type Ring struct {
	reader  *ringbuf.Reader
	record  ringbuf.Record
	batch   []Event
	broken  atomic.Int64
	blocker *blocker
	reading sync.Mutex // locked by Read
	closed  atomic.Bool
}

// OpenRing reads a map of type BPF_MAP_TYPE_RINGBUF, which is not to be closed before the Ring.
func OpenRing(events *ebpf.Map) (*Ring, error) {
	reader, err := ringbuf.NewReader(events)
	if err != nil {
		return nil, fmt.Errorf("open the ring of events: %w", err)
	}
	blocker, err := newBlocker(events.FD())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the ring of events: %w", err), reader.Close())
	}
	return &Ring{reader: reader, blocker: blocker}, nil
}

// Read waits for events and returns all that are there, in order: none at an instant, if that is not zero; io.EOF after
// Close. The slice is used again by the next Read or Poll.
func (r *Ring) Read(until time.Time) (list []Event, err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	defer func() {
		if err != nil {
			r.blocker.back() // there may be no next wait
		}
	}()
	for {
		if r.closed.Load() {
			return nil, io.EOF
		}
		list, err := r.drain(maxBatch)
		if err != nil || len(list) > 0 || !until.IsZero() && !time.Now().Before(until) {
			return list, err
		}
		if err := r.blocker.wait(until); err != nil {
			return nil, fmt.Errorf("wait for events: %w", err)
		}
	}
}

// Poll returns the events that are there, in order, and waits for none. A Ring is either read or polled.
func (r *Ring) Poll() ([]Event, error) { return r.drain(math.MaxInt) }

// drain returns the events that are there, or the first of very many.
func (r *Ring) drain(most int) ([]Event, error) {
	r.batch = r.batch[:0]
	r.reader.SetDeadline(time.Unix(1, 0)) // long ago
	for len(r.batch) < most {
		switch err := r.next(); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return r.batch, nil
		case err != nil:
			return r.batch, fmt.Errorf("read events: %w", err)
		}
	}
	return r.batch, nil
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
func (r *Ring) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	woken := r.blocker.wake()
	r.reading.Lock()
	defer r.reading.Unlock()
	return errors.Join(woken, r.blocker.close(), r.reader.Close())
}
