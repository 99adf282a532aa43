package agent

import (
	"slices"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// Where there are throttle events, each throttle is answered in the millisecond in which it begins by a turn for the
// groups concerned alone, on the thread that reads the events. The ordinary turns go on beside: they size what is to stand
// for longer, and need to look only at groups with an event of late.

// AnswerThrottles answers throttle events, and those that were put off and are due. It says when it is to be called at
// the latest without any; zero: not at all.
func (a *Agent) AnswerThrottles(throttles []policy.Throttle) (next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.subscription.active { // the groups that are subscribed to are not known any more
		a.subscription.foreseen = nil
		return time.Time{}
	}
	now := a.Clock()
	a.answerThrottles(now, a.subscription.due(now, throttles))
	a.judge(a.Clock()) // after the writes: it reads
	return a.subscription.next()
}

// answerThrottles takes a turn for the groups that were throttled a moment ago, and for them alone.
func (a *Agent) answerThrottles(now time.Time, throttles []policy.Throttle) {
	pods := a.concerned(now, throttles)
	if len(pods) == 0 {
		return
	}
	in := policy.Input{Now: now, Rules: a.Rules, Subscribed: true, Held: a.held(), BurstCut: a.risk.Cut(),
		Node: a.node.Measure(now, a.Host, a.Strategy.SharePoolThresholdPercent)}
	for _, p := range pods {
		if pod, ok := a.reader.ReadPod(now, *p); ok {
			in.Pods = append(in.Pods, a.seePod(now, pod))
		}
	}
	out := a.state.AnswerThrottles(in, throttles, a.subscription.budget.open(now))
	a.note()
	begin := a.Clock()
	results := a.write(a.ledger.Plan(now, out.Intents))
	a.subscription.budget.spend(len(results), a.Clock().Sub(begin))
	a.record.Results(results)
	a.booked(now, out, results)
	a.refilled(begin, throttles, results)
	a.subscription.foreseen = append(a.subscription.foreseen, out.Later...)
	a.scheduleAnswered(now, out)
}

// concerned lists the pods that are to be answered at once, and has the groups with an event read. Where nothing is refilled the
// answer is a raise, which is a matter for the whole node.
func (a *Agent) concerned(now time.Time, throttles []policy.Throttle) []*workload.Pod {
	var pods []*workload.Pod
	for _, t := range throttles {
		p := a.subscription.pods[t.Inode]
		if p == nil {
			continue // it has gone since
		}
		refills := a.Rules.Refill
		for _, id := range p.IDs() {
			if g := a.groups[id]; g != nil && id.Inode == t.Inode {
				a.throttled(now, g, t)
				refills = refills && a.state.Refills(now, id)
			}
		}
		if !refills {
			a.subscription.waiting = append(a.subscription.waiting, t)
			a.wake()
		} else if !slices.Contains(pods, p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// throttled takes that a group was throttled, or is about to be.
func (a *Agent) throttled(now time.Time, g *group, t policy.Throttle) {
	g.Due, g.Watched = now, true
	a.reader.KeepOpen(g.Group.Group, true)
	g.MarkDue()
	if g.refill != nil {
		a.effect(now, g, g.refill.Throttled(t))
	}
	if !t.Ahead {
		g.Throttled(t.At)
	}
	if g.Disk != t.Bandwidth {
		g.DiskAt = time.Time{}
	}
}

// scheduleAnswered sets when the groups are to be looked at next.
func (a *Agent) scheduleAnswered(now time.Time, out policy.Output) {
	for _, v := range out.Views {
		g := a.groups[v.Cgroup]
		if g == nil {
			continue
		}
		g.Due = a.reader.InStep(now, observe.LookEvery)
		if at, ok := out.Looks[v.Cgroup]; ok {
			g.Due = at
		}
		if g.Due.Before(a.next) {
			a.next = g.Due
			signal(a.sooner)
		}
	}
}

// writeBudget is how much time may go into writes that end throttles: each holds a mutex that all of the kernel has in
// common, and walks all groups (kernel/sched/core.c, tg_set_cfs_bandwidth and __cfs_schedulable), so what it costs
// grows with the number of groups and is measured.
type writeBudget struct {
	left time.Duration
	at   time.Time
	cost time.Duration // of one write, of late
}

const (
	budgetFull  = 20 * time.Millisecond
	budgetShare = 50 // it fills with a fiftieth of the time
	costMemory  = 16 // the cost is the mean of about so many writes
)

func (p *writeBudget) open(now time.Time) policy.WriteBudget {
	if p.at.IsZero() {
		p.left, p.cost = budgetFull, 50*time.Microsecond
	}
	p.left, p.at = min(budgetFull, p.left+now.Sub(p.at)/budgetShare), now
	return policy.WriteBudget{Left: int(p.left / p.cost), Full: int(budgetFull / p.cost)}
}

func (p *writeBudget) spend(writes int, took time.Duration) {
	if writes == 0 {
		return
	}
	each := min(took/time.Duration(writes), budgetFull)          // longer is not the write's: the process, or the machine, stood still
	p.left = max(-budgetFull, p.left-each*time.Duration(writes)) // a start takes more than there is (policy/refill.go)
	p.cost = max(time.Microsecond, p.cost+(each-p.cost)/costMemory)
}
