package report

import (
	"fmt"
	"io"
	"runtime"
	"testing"
)

// TestGarbageOfStatus: the text of a container leaves little garbage. The garbage of a status was collected several
// times while it was written, and each collection stops the thread that refills.
func TestGarbageOfStatus(t *testing.T) {
	// An encoder for each container would be 23 kB and more. It is 1 kB, and 10 with the race detector, which has pools
	// lose some of what they keep.
	const containers, most = 1000, 15_000
	s := sample()
	c := s.Containers[0]
	for s.Containers = nil; len(s.Containers) < containers; {
		c.Cgroup = fmt.Sprintf("/pods/%04d", len(s.Containers))
		s.Containers = append(s.Containers, c)
	}
	write := func() {
		if err := WriteJSON(io.Discard, s); err != nil {
			t.Fatal(err)
		}
	}
	write() // what the encoder knows of types stays
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	write()
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / containers; each > most {
		t.Errorf("%d bytes a container, %d at most", each, most)
	}
}
