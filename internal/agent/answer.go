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
	out := a.state.AnswerThrottles(in, throttles, a.subscription.budget.Open(now))
	a.note()
	begin := a.Clock()
	results := a.write(a.ledger.Plan(now, out.Intents))
	a.subscription.budget.Spend(len(results), a.Clock().Sub(begin))
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
