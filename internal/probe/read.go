package probe

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/capability"
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

// realtimePriority is low: before all ordinary threads and what is lent to them, and after whatever else is real time.
const realtimePriority, lentPriority = 2, 1

// prioritize gives the thread of the first Read the highest priority that is allowed. A refill that waits for the very
// CPUs that are short of time comes too late.
func (p *Probe) prioritize() {
	if p.priority.Load() != nil {
		return
	}
	got := priority{got: "plain"}
	if p.realtime {
		runtime.LockOSThread()
		had, _ := unix.SchedGetAttr(0, 0)
		// Threads that are started from this one are ordinary again.
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: realtimePriority,
			Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		err := unix.SchedSetAttr(0, &attr, 0)
		switch {
		case err == nil:
			got.got = "fifo"
			p.ring.blocker.lend = newLender(had)
		case unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) == nil:
			got.got = "nice -20"
		}
		got.why = notRealtime(err)
	}
	p.priority.Store(&got)
}

// notRealtime says why a thread was refused real-time priority (kernel/sched/syscalls.c, user_check_sched_setscheduler
// and __sched_setscheduler); "" for no error.
func notRealtime(err error) string {
	missing, _ := capability.Missing(capability.Nice) // not known: it is not named
	switch {
	case err == nil:
		return ""
	case len(missing) > 0:
		return "real-time priority takes " + missing.String()
	}
	return fmt.Sprintf("real-time priority is refused: %v; CONFIG_RT_GROUP_SCHED without cpu.rt_runtime_us for this "+
		"control group, or seccomp", err)
}

// priority is what the reading thread got, and why it is not real time although that was asked for.
type priority struct{ got, why string }

// Priority is what the reading thread got: "fifo", "nice -20" or "plain"; "" before the first Read. Why says what
// refused "fifo" where it was asked for.
func (p *Probe) Priority() (got, why string) {
	if s := p.priority.Load(); s != nil {
		return s.got, s.why
	}
	return "", ""
}
