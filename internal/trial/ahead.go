package trial

import (
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
)

// foresight tells of pools that are going to run dry, as the programs in the kernel do (probe/bpf/ahead.h): at each tick,
// once a filling, and of quotas only that last for some ticks. There throttles begin at ticks too, so that all are told of 4 ms
// before; here they begin at any time, and are told of 2 to 6 ms before.
type foresight struct {
	reported map[uint64]filling
	due      time.Time // when the agent wants to be called next; zero: not
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

// known says whether a pool was told of since it was filled.
func (f *foresight) known(now time.Time, t sim.Throttle) bool {
	last, ok := f.reported[t.Group.Inode]
	if ok && last.expires.Equal(t.Expires) && t.Left <= last.left+rise && now.Before(last.lasts) {
		return true
	}
	f.reported[t.Group.Inode] = filling{t.Expires, t.Left, t.Dry}
	return false
}

// lookAhead is the tick.
func (w *World) lookAhead() {
	now := w.Kernel.Now()
	for _, t := range w.Kernel.Foreseen(horizon) {
		if t.Bandwidth.Quota >= least && !w.foresight.known(now, t) {
			w.bring(t, true)
		}
	}
	w.Kernel.At(now.Add(tick), w.lookAhead)
}

// bring takes a throttle to the agent, as soon as a program in the kernel and a thread that waits for it can.
func (w *World) bring(t sim.Throttle, ahead bool) {
	if w.suppressed[t.Group.Inode] {
		return
	}
	w.Kernel.At(w.Kernel.Now().Add(w.wakes()), func() {
		w.answer(policy.Throttle{Inode: t.Group.Inode, At: t.At, Bandwidth: t.Bandwidth, Handed: t.Handed,
			Expires: t.Expires, Counted: true, Used: t.Used, Left: t.Left, Ahead: ahead, Dry: t.Dry})
	})
}

// wakes is how long a thread takes to wake up.
func (w *World) wakes() time.Duration {
	return 50*time.Microsecond + time.Duration(w.rng.ExpFloat64()*float64(100*time.Microsecond))
}

// answer has the agent answer, and calls it again when it wants that.
func (w *World) answer(throttles ...policy.Throttle) {
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
