package probe

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/cgrouptest"
)

// Throttles of a group whose events are suppressed are counted; then its events come again.
func TestSuppressed(t *testing.T) {
	p := open(t, Options{})
	h := subscribe(t, p, nil)
	g := cgrouptest.New(t)
	g.Prevail()
	watch(t, p, g)
	id := inode(t, g)
	if err := p.SuppressEvents(id, true); err != nil {
		t.Fatal(err)
	}
	limit(t, g, 5*ms, 50*ms)
	g.Spin(1)
	within(t, 10*time.Second, "throttles are counted", func() bool { return totals(t, p, g).Begins >= 5 })
	if n := len(h.begins(id)); n != 0 || p.Lost() != 0 || totals(t, p, g).Dropped != 0 {
		t.Errorf("%d reported, %d lost, %+v", n, p.Lost(), totals(t, p, g))
	}
	for range 2 { // the second changes nothing
		if err := p.SuppressEvents(id, false); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 10*time.Second, "throttles are reported", func() bool { return len(h.begins(id)) >= 3 })
}

// Events that are suppressed of a group that is not watched come when it is, and nothing stays of it.
func TestSuppressedUnwatched(t *testing.T) {
	p := open(t, Options{})
	h := subscribe(t, p, nil)
	g := cgrouptest.New(t)
	g.Prevail()
	id := inode(t, g)
	if err := p.SuppressEvents(id, true); err != nil {
		t.Fatal(err)
	}
	var left kernelOrder
	if err := p.objects.Orders.Lookup(id, &left); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("its events are suppressed, and it is not forgotten: %v", err)
	}
	watch(t, p, g)
	limit(t, g, 5*ms, 50*ms)
	g.Spin(1)
	within(t, 10*time.Second, "throttles are reported", func() bool { return len(h.begins(id)) >= 3 })
}
