package agent

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
	"time"
)

// Turn is what one tick did.
type Turn struct {
	Results []plan.Result
	Notes   []note
	Next    time.Time // when the next group is due
}

// Tick takes one turn: who is there, what happened to them, what is to be done, what became of it.
func (a *Agent) Tick(now time.Time) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.account.lastTurn = now // a sign of life of the loop, and of nobody else's turns
	return a.tick(now)
}

func (a *Agent) tick(now time.Time) Turn {
	pods := a.discover(now)
	a.judge(now)
	a.undone(now)
	a.overrule(now)
	owned := a.reserve(now, pods)
	in := a.look(now, pods)
	a.releaseUnclaimed(now)
	notes := a.note()
	out := a.state.Decide(in)
	results := a.carryOut(now, out)
	a.bookTurn(now, out, results)
	results = append(results, a.colocate(now, pods)...)
	results = append(results, owned...)
	a.next = a.reservations.next(now, a.schedule(now, out))
	return Turn{Results: results, Notes: notes, Next: a.next}
}

// carryOut makes changes of what was decided, writes them and books what became of them.
func (a *Agent) carryOut(now time.Time, out policy.Output) []plan.Result {
	changes := a.ledger.Plan(now, out.Intents)
	begin := a.Clock()
	results := a.Writer.Do(changes)
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	return results
}

// discover takes the snapshot of what runs. When it fails the last one stands, and the failure is said.
func (a *Agent) discover(now time.Time) []workload.Pod {
	pods, err := a.Discover.Pods()
	switch {
	case err != nil && a.failed == nil:
		a.Log.Warn("discovery fails: what was found last stands", "error", err)
	case err == nil && a.failed != nil:
		a.Log.Info("discovery works again")
	}
	a.failed = err
	for _, path := range a.Discover.Touched() {
		if g := a.groups[a.paths[path]]; g != nil {
			g.stale(now)
		}
	}
	a.Writer.SetHold(a.held())
	return pods
}

// look reads the groups that are due, and makes of all groups what the policy decides on.
func (a *Agent) look(now time.Time, pods []workload.Pod) policy.Input {
	if a.subscription.stale || !workload.Same(pods, a.snapshot) {
		a.snapshot, a.idlePods, a.subscription.stale = pods, make([]*group, len(pods)), false
		a.keepFew(pods)
		a.watch(pods)
	}
	a.sweeps = a.sweepsIn(len(pods), a.asked)
	in := policy.Input{Now: now, Rules: a.Rules, Node: a.node.measure(now, a.Host, a.Strategy.SharePoolThresholdPercent),
		Subscribed: a.subscription.active, Missed: a.missed(), Held: a.held(), Throttles: a.subscription.take()}
	a.measureRisk(now)
	in.BurstCut = a.risk.cut
	a.turn++
	a.present = 0
	for i := range pods {
		if a.skipsIdle(now, i, len(pods[i].Containers)) {
			continue
		}
		if pod, ok := a.lookPod(now, pods[i]); ok {
			in.Pods = append(in.Pods, pod)
		}
		a.backOffIdle(now, i, &pods[i])
	}
	in.Gone = a.drop(now)
	return in
}

func (a *Agent) lookPod(now time.Time, p workload.Pod) (policy.Pod, bool) {
	pod := policy.Pod{Own: p.Own}
	outermost := p.Path
	if p.Path != "" {
		first := workload.Container{ID: p.ID, Name: p.Name, Request: p.Request, Declared: p.Declared, Runtime: "pod"}
		if len(p.Containers) > 0 {
			first.Strategy = p.Containers[0].Strategy
		}
		g, ok := a.lookGroup(now, first, levelPod, p.Name)
		if !ok {
			return pod, false
		}
		pod.Group = g
	}
	pod.Containers = make([]policy.Group, 0, len(p.Containers))
	for _, c := range p.Containers {
		if g, ok := a.lookGroup(now, c, levelContainer, p.Name); ok {
			pod.Containers = append(pod.Containers, g)
		}
		if outermost == "" {
			outermost = c.Path
		}
	}
	pod.Ceiling = a.ceiling(now, outermost)
	if a.lost(pod) { // as before a resize: neither a burst nor a raise is in the way of the limit
		pod.Paused = true
		for i := range pod.Containers {
			pod.Containers[i].Paused = true
		}
	}
	return pod, len(pod.Containers) > 0
}

// drop forgets groups that are gone, and puts back what stands of ours in those that are only no longer looked after.
func (a *Agent) drop(now time.Time) []workload.ID {
	a.retryRestores(now)
	if a.present == len(a.groups) {
		return nil
	}
	var list []workload.ID
	dropped := map[workload.ID]bool{}
	for id, g := range a.groups {
		if g.seen == a.turn || a.skipped(g) {
			continue
		}
		list, dropped[id] = append(list, id), true
		delete(a.groups, id)
		if a.paths[id.Path] == id {
			delete(a.paths, id.Path)
			a.forgetFiles(id.Path)
		}
		a.account.left(g)
		a.ledger.Drop(id, plan.Quota, plan.Burst)
	}
	if len(dropped) > 0 {
		a.queueRestores(now, func(e journal.Entry) bool { return dropped[e.ID] && ofLeaver(e) })
	}
	return list
}

// schedule sets when each group that was looked at is due again, and returns the earliest time.
func (a *Agent) schedule(now time.Time, out policy.Output) time.Time {
	next := now.Add(idleEvery)
	for id, g := range a.groups {
		if g.top != nil && g.top.skipped == a.turn {
			continue // due with its pod
		}
		if g.looked {
			d := a.interval(g)
			a.holdFiles(g, d <= cappedEvery && g.top == nil)
			g.due = a.inStep(now, d)
		}
		if at, ok := out.Looks[id]; ok && at.Before(g.due) {
			g.due = at
		}
		if g.late.After(now) && g.late.Before(g.due) {
			g.due = g.late
		}
		if g.due.Before(next) {
			next = g.due
		}
	}
	return next
}

// leastGap is how soon after a look the next one may be.
const leastGap = lookEvery / 9

// inStep is when a group is due that was looked at now: after d, or a little earlier, at an instant that all groups
// have in common. So a group that is looked at at an instant of its own is in step again after it, and groups do not
// each ask for turns of their own.
func (a *Agent) inStep(now time.Time, d time.Duration) time.Time {
	step := lookEvery
	if d >= cappedEvery {
		step = cappedEvery
	}
	due := now.Add(d)
	due = due.Add(-(due.Sub(a.started) % step))
	if due.Sub(now) < leastGap {
		due = due.Add(step)
	}
	return due
}
