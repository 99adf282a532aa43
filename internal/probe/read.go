package probe

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Read waits for events and returns all that are there, in order. At the instant until, if it is not zero, it returns
// none; io.EOF after Close. Ends do not wake the reader: they come with the next begin. The next Read reuses the slice.
// With Options.Realtime it ties the calling goroutine to its thread, so that one goroutine must do all the reading.
func (p *Probe) Read(until time.Time) ([]Event, error) {
	p.prioritize()
	list, err := p.ring.Read(until)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("probe: %w", err)
	}
	return list, err
}

// prioritize gives the thread of the first Read the highest priority that is allowed. A refill that waits for the very
// CPUs that are short of time comes too late.
func (p *Probe) prioritize() {
	if p.priority.Load() != nil {
		return
	}
	got := "plain"
	if p.realtime {
		runtime.LockOSThread()
		// Threads that are started from this one are ordinary again.
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		if err := unix.SchedSetAttr(0, &attr, 0); err == nil {
			got = "fifo"
		} else if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20); err == nil {
			got = "nice -20"
		}
	}
	p.priority.Store(&got)
}

// Priority is what the reading thread got: "fifo", "nice -20" or "plain"; "" before the first Read.
func (p *Probe) Priority() string {
	if s := p.priority.Load(); s != nil {
		return *s
	}
	return ""
}
