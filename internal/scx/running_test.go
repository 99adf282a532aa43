package scx

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
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

// brokenLink is a link that cannot be closed.
type brokenLink struct{ link.Link }

func (brokenLink) Close() error { return errors.New("broken link") }

// TestFailedSwapIsTheReason: after a swap that leaves no scheduler in force, the status gives the error of the swap.
func TestFailedSwapIsTheReason(t *testing.T) {
	loaded := func() *Loaded { return &Loaded{parts: &ebpf.Collection{}} }
	r := &Running{now: &Attachment{Name: "old", link: brokenLink{}, loaded: loaded()}, guard: &guard{}}
	if err := r.exchange(nil, loaded(), loaded(), 0); err == nil || r.guard.why() != err.Error() ||
		!strings.Contains(r.guard.why(), "broken link") {
		t.Errorf("the error is %v, the reason is %q", err, r.guard.why())
	}
}
