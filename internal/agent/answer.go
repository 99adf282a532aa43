package agent

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/observe"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// With throttle events, a throttle is answered in the millisecond in which it begins, by a turn for its pod only, on
// the thread that reads the events. Ordinary turns decide on bursts and raises, and read groups with a recent event.

// overdue is how late the loop's turn may be while an answered throttle still is a heartbeat. The loop gives raises
// back: where it hangs, answers show nothing.
const overdue = time.Second

// AnswerThrottles answers throttle events, and postponed ones that are due. It returns when to call it next at the
// latest; zero: when the next event arrives.
func (a *Agent) AnswerThrottles(throttles []bandwidth.Throttle) (next time.Time) {
	a.mu.LockShort() // a turn that is under way yields
	defer a.mu.UnlockShort()
	if !a.subscription.active { // the subscription has ended
		a.subscription.foreseen = nil
		return time.Time{}
	}
	now := a.Clock()
	a.answerThrottles(now, a.subscription.foreseen.Due(now, throttles))
	a.judge(a.Clock()) // after the writes: it reads
	if now = a.Clock(); now.Before(a.next.Add(overdue)) {
		a.Beat(now)
	}
	return a.subscription.next()
}

// answerThrottles takes a turn for the pods of the throttled groups only.
func (a *Agent) answerThrottles(now time.Time, throttles []bandwidth.Throttle) {
	pods := a.concerned(now, throttles)
	if len(pods) == 0 {
		return
	}
	in := a.input(now)
	for _, p := range pods {
		if pod, ok := a.reader.ReadPod(now, *p); ok {
			in.Pods = append(in.Pods, a.seePod(now, pod))
		}
	}
	out := a.state.AnswerThrottles(in, throttles)
	begin := a.Clock()
	results := a.write(a.ledger.Plan(now, out.Intents))
	a.state.Wrote(len(results), a.Clock().Sub(begin))
	a.record.Results(results)
	a.recordBandwidth(now, out, results, false)
	a.refilled(throttles, results)
	a.subscription.foreseen = append(a.subscription.foreseen, out.Later...)
	a.scheduleAnswered(now, out)
	for _, p := range pods { // for a turn that is under way
		last := a.answered[p]
		for _, r := range results {
			if a.subscription.pods[r.Change.Cgroup.Inode] == p {
				last = r.At
			}
		}
		a.answered[p] = last
	}
}

// concerned lists the pods to answer at once, and makes groups with an event due, but those that are refused unseen.
// Where a group cannot be refilled, the answer is a raise, which the next turn decides with the whole node in view.
func (a *Agent) concerned(now time.Time, throttles []bandwidth.Throttle) []*workload.Pod {
	var pods []*workload.Pod
	batch := map[string]int{}
	for _, t := range throttles {
		p := a.subscription.pods[t.Inode]
		if p == nil {
			continue // the group is gone
		}
		refills, refused := a.Rules.Refill, false
		for _, id := range p.IDs() {
			if g := a.groups[id]; g != nil && id.Inode == t.Inode {
				a.throttled(now, g, t) // first: it may show that refills have no effect
				refills = refills && a.state.Refills(now, id)
				if refused = refills && a.state.Refuse(now, id, t, batch); refused {
					a.record.Decided(policy.KindRefusedWrites, 1)
				} else {
					g.Due, g.Watched = now, true
					a.reader.Answered(g.Group)
					g.MarkDue()
				}
			}
		}
		if !refills {
			a.subscription.waiting = append(a.subscription.waiting, t)
			a.wake()
		} else if !refused && !slices.Contains(pods, p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// throttled records that a group was throttled or is about to be.
func (a *Agent) throttled(now time.Time, g *group, t bandwidth.Throttle) {
	if g.refill != nil {
		a.effect(now, g, g.refill.Throttled(t))
	}
	if !t.Ahead {
		g.Throttled(t.At)
	}
	if g.Disk != t.Bandwidth || !g.Ready { // who is throttled has processes
		g.DiskAt = time.Time{}
	}
}

// scheduleAnswered sets when the groups are read next.
func (a *Agent) scheduleAnswered(now time.Time, out policy.Output) {
	for _, v := range out.Views {
		g := a.groups[v.Cgroup]
		if g == nil {
			continue
		}
		g.Due, g.Looked = cmp.Or(out.Looks[v.Cgroup], a.reader.InStep(now, observe.LookEvery)), false // decided on
		if g.Due.Before(a.next) {
			a.next = g.Due
			signal(a.sooner)
		}
	}
}
