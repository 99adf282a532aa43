package lease

import (
	"fmt"
	"time"
)

// line is how a heartbeat stands in its file: always of one length, so that it is overwritten in place.
const line = "plimsoll-heartbeat 1 %020d %010d %020d\n"

// String spells a heartbeat as a line of its file.
func (b Beat) String() string { return fmt.Sprintf(line, b.At, b.By.PID, b.By.Start) }

// parse reads a line of the file. Another text, or half a line, is no heartbeat.
func parse(text string) (Beat, bool) {
	var b Beat
	_, err := fmt.Sscanf(text, line, &b.At, &b.By.PID, &b.By.Start)
	return b, err == nil && text == b.String()
}

// gap is how soon after a heartbeat the next one may be sent. An idle agent takes a turn each second or a little
// sooner, and every such turn is to send one.
const gap = 750 * time.Millisecond

// Heart sends heartbeats without ever waiting: who calls it is in a hurry, and a disk or a service manager may hang.
type Heart struct {
	clock func() time.Duration
	last  time.Time
	sinks []chan time.Duration
	done  chan struct{}
}

// Sink takes the time of a heartbeat somewhere. It may take long: heartbeats in the meantime are left out.
type Sink func(at time.Duration) error

// NewHeart makes a heart that sends to some sinks. The clock is CLOCK_MONOTONIC. failed is told when a sink fails that
// did not fail before.
func NewHeart(clock func() time.Duration, failed func(error), sinks ...Sink) *Heart {
	h := &Heart{clock: clock, done: make(chan struct{})}
	for _, sink := range sinks {
		beats := make(chan time.Duration, 1)
		h.sinks = append(h.sinks, beats)
		go h.serve(beats, sink, failed)
	}
	return h
}

func (h *Heart) serve(beats <-chan time.Duration, sink Sink, failed func(error)) {
	bad := false
	for {
		select {
		case <-h.done:
			return
		case at := <-beats:
			err := sink(at)
			if err != nil && !bad {
				failed(err)
			}
			bad = err != nil
		}
	}
}

// Beat sends a heartbeat, unless one was sent a moment ago. Only one goroutine at a time may call it.
func (h *Heart) Beat(now time.Time) {
	if !h.last.IsZero() && now.Sub(h.last) < gap {
		return
	}
	h.last = now
	at := h.clock()
	for _, sink := range h.sinks {
		select {
		case sink <- at:
		default: // the sink is at an earlier one
		}
	}
}

// Close ends it. A sink that hangs is not waited for.
func (h *Heart) Close() { close(h.done) }
