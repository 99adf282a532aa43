package policy

import (
	"testing"
	"time"
)

const ms = time.Millisecond

var t0 = time.Unix(1000, 0)

func ptr(d time.Duration) *time.Duration { return &d }

// TestHoldTellsWhoWrote walks one knob through what other writers do to it.
func TestHoldTellsWhoWrote(t *testing.T) {
	const limit, ours = 50 * ms, 150 * ms
	for _, c := range []struct {
		name     string
		start    ownership
		disk     time.Duration
		declared *time.Duration
		want     Event
		base     time.Duration
		foreign  bool
	}{
		{"first sight", ownership{}, limit, nil, noEvent, limit, false},
		{"first sight of what is declared", ownership{}, limit, ptr(limit), noEvent, limit, false},
		{"first sight of a raise that a dead agent left", ownership{}, ours, ptr(limit), Deviation, limit, true},
		{"a plain resize", ownership{known: true, base: limit}, 80 * ms, nil, Resized, 80 * ms, false},
		{"ours stands", ownership{known: true, base: limit, ours: true, wrote: ours}, ours, nil, noEvent, limit, false},
		{"the owner puts its limit back", ownership{known: true, base: limit, ours: true, wrote: ours}, limit, nil, Reset, limit, false},
		{"a foreign value over ours", ownership{known: true, base: limit, ours: true, wrote: ours}, 80 * ms, nil, Foreign, limit, true},
		{"a declared resize over ours", ownership{known: true, base: limit, ours: true, wrote: ours}, 80 * ms, ptr(80 * ms), Resized, 80 * ms, false},
		{"a resize to exactly our value", ownership{known: true, base: limit, ours: true, wrote: ours}, ours, ptr(ours), Resized, ours, false},
		{"declared anew, not yet written", ownership{known: true, base: limit, ours: true, wrote: ours}, ours, ptr(80 * ms), Rebased, 80 * ms, false},
		{"not what is declared, nothing of ours", ownership{known: true, base: limit}, 80 * ms, ptr(limit), Foreign, limit, true},
		{"foreign stays", ownership{known: true, base: limit, foreign: true}, 80 * ms, nil, noEvent, limit, true},
		{"foreign goes back to the limit", ownership{known: true, base: limit, foreign: true}, limit, nil, Resized, limit, false},
		{"foreign becomes the declared limit", ownership{known: true, base: limit, foreign: true}, 80 * ms, ptr(80 * ms), Resized, 80 * ms, false},
	} {
		h := c.start
		got := h.observe(t0, c.disk, c.declared)
		if c.foreign && got != noEvent {
			t.Errorf("%s: said %q at once", c.name, got)
		}
		if c.foreign {
			got = h.observe(t0.Add(settling), c.disk, c.declared)
		}
		if got != c.want || h.base != c.base || h.foreign != c.foreign {
			t.Errorf("%s: %q base %v foreign %v, want %q %v %v", c.name, got, h.base, h.foreign, c.want, c.base, c.foreign)
		}
		if again := h.observe(t0.Add(time.Minute), c.disk, c.declared); again != noEvent {
			t.Errorf("%s: said %q a second time", c.name, again)
		}
	}
}

// TestHoldWaitsForTheOwner: a limit that is written a moment before or after it is declared is no foreign one.
func TestHoldWaitsForTheOwner(t *testing.T) {
	h := ownership{known: true, base: 50 * ms, ours: true, wrote: 150 * ms}
	if got := h.observe(t0, 80*ms, ptr(50*ms)); got != noEvent || !h.foreign {
		t.Fatalf("%q, foreign %v: it is to be left alone and not yet reported", got, h.foreign)
	}
	if got := h.observe(t0.Add(300*ms), 80*ms, ptr(80*ms)); got != Resized || h.foreign || h.base != 80*ms {
		t.Errorf("%q, foreign %v, base %v, want a resize to 80ms", got, h.foreign, h.base)
	}
}

func TestHoldWaitsLongerEachTimeItIsReset(t *testing.T) {
	h := ownership{known: true, base: 50 * ms}
	now := t0
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		h.learn(150 * ms)
		h.observe(now, 50*ms, nil)
		if h.retry.Ready(now.Add(want-1)) || !h.retry.Ready(now.Add(want)) {
			t.Errorf("it does not wait for %v", want)
		}
		now = now.Add(want)
	}
	h.learn(150 * ms)
	now = now.Add(2*maxGap + time.Second)
	h.observe(now, 50*ms, nil)
	if h.retry.Ready(now.Add(firstGap-1)) || !h.retry.Ready(now.Add(firstGap)) {
		t.Errorf("after a calm time it does not wait for %v", firstGap)
	}
}
