package preempt

import "golang.org/x/sys/unix"

// loan is a thread's priority that another thread has for a while.
type loan struct {
	to     int             // the thread of the long work that has the state; 0: none has it
	before *unix.SchedAttr // what that thread had; nil: nothing is lent
}

// thread is this goroutine's, as long as it is tied to it.
func thread() int { return unix.Gettid() }

// lend lends the priority of this thread. Where that is not permitted, or would not be more than the other thread has,
// there is no loan.
func (l *loan) lend() {
	if l.to == 0 || l.before != nil {
		return
	}
	mine, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	before, err := unix.SchedGetAttr(l.to, 0)
	if err != nil || !above(mine, before) {
		return
	}
	lent := *mine
	lent.Flags |= unix.SCHED_FLAG_RESET_ON_FORK // threads that it starts are ordinary ones
	if unix.SchedSetAttr(l.to, &lent, 0) == nil {
		l.before = before
	}
}

// giveBack ends the loan. It is called by the thread that has it.
func (l *loan) giveBack() {
	if l.before != nil {
		_ = unix.SchedSetAttr(l.to, l.before, 0) // less than before is always permitted
	}
	*l = loan{}
}

// above says whether one thread goes before another.
func above(a, b *unix.SchedAttr) bool {
	if realtime(a) != realtime(b) {
		return realtime(a)
	}
	return a.Priority > b.Priority || !realtime(a) && a.Nice < b.Nice
}

func realtime(a *unix.SchedAttr) bool {
	return a.Policy == unix.SCHED_FIFO || a.Policy == unix.SCHED_RR
}
