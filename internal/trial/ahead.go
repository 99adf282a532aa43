package trial

import (
	"time"

	"plimsoll/internal/bandwidth"
)

// foresight reports pools that will run dry, as the programs in the kernel do (probe/bpf/ahead.h): at each tick, once a
// filling, and only for quotas that last for some ticks. There throttles begin at ticks too, so that all are reported 4
// ms before; here they begin at any time, and are reported 2 to 6 ms before.
type foresight struct {
	reported map[uint64]filling
	due      time.Time // when the agent is to be called next; zero: not
}

type filling struct {
	expires time.Time
	left    time.Duration
	lasts   time.Time // until then
}

const (
	tick    = 4 * time.Millisecond
	horizon = tick + 2*time.Millisecond
	least   = 20 * time.Millisecond
	rise    = 5 * time.Millisecond
)

// known says whether a pool was reported since it was filled.
func (f *foresight) known(now time.Time, t bandwidth.Throttle) bool {
	last, ok := f.reported[t.Inode]
	if ok && last.expires.Equal(t.Expires) && t.Left <= last.left+rise && now.Before(last.lasts) {
		return true
	}
	f.reported[t.Inode] = filling{t.Expires, t.Left, t.Dry}
	return false
}

// checkAhead is the tick at which the programs check for throttles to come.
func (w *World) checkAhead() {
	now := w.Kernel.Now()
	for _, t := range w.Kernel.Foreseen(horizon) {
		if t.Bandwidth.Quota >= least && !w.foresight.known(now, t) {
			w.bring(t)
		}
	}
	w.Kernel.At(now.Add(tick), w.checkAhead)
}

// bring sends a throttle to the agent, after the delay of an event and of the thread that waits for it.
func (w *World) bring(t bandwidth.Throttle) {
	if w.suppressed[t.Inode] {
		return
	}
	w.Kernel.At(w.Kernel.Now().Add(w.wakes()), func() { w.answer(t) })
}

// wakes is how long a thread takes to wake up.
func (w *World) wakes() time.Duration {
	return 50*time.Microsecond + time.Duration(w.rng.ExpFloat64()*float64(100*time.Microsecond))
}

// answer passes throttles to the agent, and calls the agent again at the time that it returns.
func (w *World) answer(throttles ...bandwidth.Throttle) {
	w.answers += len(throttles)
	next := w.Agent.AnswerThrottles(throttles)
	select {
	case <-w.Agent.Wanted(): // a turn of the loop
		w.Kernel.At(w.Kernel.Now().Add(w.wakes()), func() { w.noteOverdue(w.Agent.Tick(w.Kernel.Now())) })
	default:
	}
	if next.IsZero() || next.Equal(w.foresight.due) {
		return
	}
	w.foresight.due = next
	w.Kernel.At(next.Add(w.wakes()), func() {
		w.foresight.due = time.Time{}
		w.answer()
	})
}
