package policy

import "time"

// WriteBudget is how many writes can be afforded: each takes a mutex that all of the kernel has in common.
type WriteBudget struct{ Left, Full int }

// affords says whether one more write can be paid. A group whose limit is too low leaves half to others.
func (p *WriteBudget) affords(limitTooLow bool) bool {
	return p.Left > 0 && (!limitTooLow || 2*p.Left > p.Full)
}

// WriteAccount is how much time may go into writes that end throttles: each holds a mutex that all of the kernel has in
// common, and walks all groups (kernel/sched/core.c, tg_set_cfs_bandwidth and __cfs_schedulable), so what it costs
// grows with the number of groups and is measured.
type WriteAccount struct {
	left time.Duration
	at   time.Time
	cost time.Duration // of one write, of late
}

const (
	budgetFull  = 20 * time.Millisecond
	budgetShare = 50 // it fills with a fiftieth of the time
	costMemory  = 16 // the cost is the mean of about so many writes
)

// Open is what can be afforded now.
func (p *WriteAccount) Open(now time.Time) WriteBudget {
	if p.at.IsZero() {
		p.left, p.cost = budgetFull, 50*time.Microsecond
	}
	p.left, p.at = min(budgetFull, p.left+now.Sub(p.at)/budgetShare), now
	return WriteBudget{Left: int(p.left / p.cost), Full: int(budgetFull / p.cost)}
}

// Spend takes what writes took.
func (p *WriteAccount) Spend(writes int, took time.Duration) {
	if writes == 0 {
		return
	}
	each := min(took/time.Duration(writes), budgetFull)          // longer is not the write's: the process, or the machine, stood still
	p.left = max(-budgetFull, p.left-each*time.Duration(writes)) // a start takes more than there is (refill.go)
	p.cost = max(time.Microsecond, p.cost+(each-p.cost)/costMemory)
}
