package host

import (
	"sync"
	"testing"

	"plimsoll/internal/sysfs"
)

// TestLayoutOfTwo: an agent and a dry run beside it read the topology at the same time.
func TestLayoutOfTwo(t *testing.T) {
	l := &Layout{Host: sysfs.NewHost("/")}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for range 3 {
				if on, err := l.Topology(); err != nil || len(on.Places) == 0 {
					t.Errorf("%+v, %v", on, err)
				}
			}
		})
	}
	readers.Wait()
}
