package probe

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/cgrouptest"
)

// A group that is muted is counted and not told; unmuted, it is told again.
func TestMuted(t *testing.T) {
	p := open(t, Options{})
	h := listen(t, p, nil)
	g := cgrouptest.New(t)
	watch(t, p, g)
	id := inode(t, g)
	if err := p.Mute(id, true); err != nil {
		t.Fatal(err)
	}
	limit(t, g, 5*ms, 50*ms)
	g.Spin(1)
	within(t, 10*time.Second, "throttles are counted", func() bool { return totals(t, p, g).Begins >= 5 })
	if n := len(h.begins(id)); n != 0 || p.Lost() != 0 || totals(t, p, g).Dropped != 0 {
		t.Errorf("%d told, %d lost, %+v", n, p.Lost(), totals(t, p, g))
	}
	for range 2 { // the second changes nothing
		if err := p.Mute(id, false); err != nil {
			t.Fatal(err)
		}
	}
	within(t, 10*time.Second, "throttles are told", func() bool { return len(h.begins(id)) >= 3 })
}

// A group that is muted while it is not watched is told of when it is, and nothing stays of it.
func TestMutedUnwatched(t *testing.T) {
	p := open(t, Options{})
	h := listen(t, p, nil)
	g := cgrouptest.New(t)
	id := inode(t, g)
	if err := p.Mute(id, true); err != nil {
		t.Fatal(err)
	}
	var left uint8
	if err := p.objects.Muted.Lookup(id, &left); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("it is muted, and nobody will forget it: %v", err)
	}
	watch(t, p, g)
	limit(t, g, 5*ms, 50*ms)
	g.Spin(1)
	within(t, 10*time.Second, "throttles are told", func() bool { return len(h.begins(id)) >= 3 })
}
