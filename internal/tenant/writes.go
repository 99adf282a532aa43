package tenant

import "time"

// Sharing the writes that end throttles.
//
// Problem: each write holds a mutex that all of the kernel has in common, and walks all groups (kernel/sched/core.c,
// tg_set_cfs_bandwidth and __cfs_schedulable). So writes may take a part of the time and no more, and what one costs
// grows with the number of groups and is measured. First come, first served, that part goes to whoever is throttled
// most often: a tenant with 500 containers that are throttled in every period leaves nothing to one that is throttled
// once a second.
//
// Approach: each tenant that has asked of late has a share, which fills with an equal part of the time that writes
// may take, and holds an equal part of half of the budget. What fills a full share goes to the common half, from
// which whoever has used up its share takes, first come, first served. So among n tenants each one has, whatever the
// others do,
//
//	time / part / n        of time for writes in any time, and besides that
//	budget / 2 / n         at once, when it has asked for less before;
//
// and all of them together have time / part + budget at most, a write each, and the shares that new tenants come
// with. (A share is only ever lowered by its own tenant's writes, and fills by a n-th. All that fills comes out of
// time / part.) A tenant alone has all of it.
//
// A write that took longer than was thought is charged to what paid it, which then may be in debt: up to eight times
// what writes cost of late. What is longer is not the write's: the process, or the machine, stood still.
//
// A share that is full, and was not asked for longer than a share takes to fill, is forgotten, and is full when its
// tenant comes back: it would be by then. So tenants that ask for nothing do not make the others' shares smaller.
//
// Starts of containers have shares of their own, five times as large: they need many writes, once (policy/refill.go).
// They take nothing from others, and a tenant whose containers are started over and over takes from its own starts.
//
// A group whose limit is too low leaves half of its tenant's share to the tenant's other groups, and half of the
// common one.
//
// Known limits: a new tenant comes with a full share. Where nothing tells of namespaces, each pod is a tenant.

const (
	budgetFull = 20 * time.Millisecond
	budgetPart = 50 // writes take a fiftieth of the time
	startPart  = 10 // and those of starts a tenth
	costMemory = 16 // the cost is the mean of about so many writes
	costMost   = 8  // so many times the cost is charged for a write at most
	firstCost  = 50 * time.Microsecond

	fillEvery = time.Millisecond
	forgotten = time.Second // a share is full after budgetFull / 2 * budgetPart, half of that
)

// Writes is the account of all writes that end throttles.
type Writes struct {
	ordinary, starts account
	cost             time.Duration    // of one write, of late
	paid             []*time.Duration // what paid the writes that have not been measured yet
}

// Need says what a write is for.
type Need int

// The needs.
const (
	Ordinary Need = iota
	TooLow        // of a group whose limit is too low
	Start         // of a container in its start
)

// Afford says whether a tenant can afford one more write, and charges it with what writes cost of late.
func (w *Writes) Afford(now time.Time, tenant string, n Need) bool {
	from := w.payer(now, tenant, n, 0)
	if from == nil {
		return false
	}
	*from -= w.cost
	w.paid = append(w.paid, from)
	return true
}

// Affords says whether a tenant could afford one more write after so many others. Where the common half can pay, as at
// most times, no share is looked at: to fill those of a hundred tenants takes longer than the rest.
func (w *Writes) Affords(now time.Time, tenant string, n Need, others int) bool {
	if n != Start && w.ordinary.common > reserved(n)+time.Duration(others)*w.cost {
		return true
	}
	return w.payer(now, tenant, n, others) != nil
}

// reserved is what a write for such a need leaves in the common half.
func reserved(n Need) time.Duration {
	if n == TooLow {
		return budgetFull / 4
	}
	return 0
}

func (w *Writes) payer(now time.Time, tenant string, n Need, others int) *time.Duration {
	if w.cost == 0 {
		w.cost = firstCost
	}
	a, part := &w.ordinary, time.Duration(budgetPart)
	if n == Start {
		a, part = &w.starts, startPart
	}
	return a.payer(now, part, tenant, n, time.Duration(others)*w.cost)
}

// Refused says that the last write that was afforded is not made. It stays paid: to find that out took about as long.
func (w *Writes) Refused() { w.paid = w.paid[:len(w.paid)-1] }

// Took says how long all the writes took that were afforded since it was called last; writes is how many there were
// in fact.
func (w *Writes) Took(writes int, took time.Duration) {
	if len(w.paid) == 0 {
		return
	}
	took = min(took, time.Duration(writes)*costMost*w.cost)
	each := took / time.Duration(len(w.paid))
	for _, from := range w.paid {
		*from += w.cost - each
	}
	w.paid = w.paid[:0]
	if writes > 0 {
		w.cost = max(time.Microsecond, w.cost+(took/time.Duration(writes)-w.cost)/costMemory)
	}
}

// account is one budget, divided.
type account struct {
	common time.Duration
	shares map[string]*share
	at     time.Time
}

type share struct {
	left  time.Duration
	asked time.Time
}

// payer is what can pay a write of a tenant's after others that cost so much; nil: nothing.
func (a *account) payer(now time.Time, part time.Duration, tenant string, n Need,
	others time.Duration) *time.Duration {
	a.fill(now, part)
	s := a.shares[tenant]
	if s == nil {
		s = &share{left: budgetFull / 2 / time.Duration(len(a.shares)+1)}
		a.shares[tenant] = s
	}
	s.asked = now
	own := time.Duration(0)
	if n == TooLow {
		own = a.most() / 2
	}
	if s.left > own+others {
		return &s.left
	}
	if others -= max(0, s.left-own); a.common > reserved(n)+max(0, others) {
		return &a.common
	}
	return nil
}

// most is what a share holds at most.
func (a *account) most() time.Duration { return budgetFull / 2 / time.Duration(max(1, len(a.shares))) }

// fill adds what the time since the last call is worth.
func (a *account) fill(now time.Time, part time.Duration) {
	if a.shares == nil {
		a.shares, a.common, a.at = map[string]*share{}, budgetFull/2, now
	}
	passed := now.Sub(a.at)
	if passed < fillEvery {
		return
	}
	a.at = now
	worth, n := passed/part, time.Duration(max(1, len(a.shares)))
	if len(a.shares) == 0 {
		a.common += worth
	}
	most := a.most()
	for tenant, s := range a.shares {
		s.left += worth / n
		if s.left < most {
			continue
		}
		a.common += s.left - most
		s.left = most
		if now.Sub(s.asked) >= forgotten {
			delete(a.shares, tenant)
		}
	}
	a.common = min(a.common, budgetFull/2)
}
