package scx

import (
	"testing"
	"time"
)

// TestFailedSwapKeepsTheGuard: a scheduler whose successor is refused before anything has changed is watched on, for
// the rest of its probation and no longer. It is refused on every kernel: the object calls a function that none has.
func TestFailedSwapKeepsTheGuard(t *testing.T) {
	o, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.spec.Programs {
		for i := range p.Instructions {
			if p.Instructions[i].IsKfuncCall() {
				p.Instructions[i] = p.Instructions[i].WithReference("scx_bpf_none")
			}
		}
	}
	const most = 20 * time.Second // longer than the test: no scheduler is removed
	now := &Attachment{}
	h := &Running{object: o, now: now, guard: protect(now, most, time.Now().Add(probation), raise(most))}
	defer func() { h.guard.stop() }()
	before := h.guard
	if _, err := h.Swap(o, most); err == nil {
		t.Fatal("swapped")
	}
	if h.guard == before || h.guard.over.Load() || !h.guard.until.Equal(before.until) || h.guard.most != most {
		t.Errorf("after a swap that failed the guard does not continue: %+v", h.guard)
	}
	h.guard.stop()
	h.guard.until = time.Now()
	before = h.guard
	if _, err := h.Swap(o, most); err == nil || h.guard != before {
		t.Errorf("%v, and watched after its probation", err)
	}
}
