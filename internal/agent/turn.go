package agent

import (
	"plimsoll/internal/journal"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/workload"
	"time"
)

// Turn is what one tick did.
type Turn struct {
	Results []plan.Result
	Notes   []record.Note
	Next    time.Time // when the next group is due
}

// Tick takes one turn: who is there, what happened to them, what is to be done, what became of it.
func (a *Agent) Tick(now time.Time) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Turned(now) // a sign of life of the loop, and of nobody else's turns
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
	a.booked(now, out, results)
	a.record.WholeTurn(out, a.Clock().Sub(now))
	results = append(results, a.colocate(now, pods)...)
	results = append(results, owned...)
	a.next = a.reservations.next(now, a.schedule(now, out))
	return Turn{Results: results, Notes: notes, Next: a.next}
}

// carryOut makes changes of what was decided, and writes them.
func (a *Agent) carryOut(now time.Time, out policy.Output) []plan.Result {
	return a.write(a.ledger.Plan(now, out.Intents))
}

// write carries changes out, and books what became of them.
func (a *Agent) write(changes []plan.Change) []plan.Result {
	begin := a.Clock()
	results := a.Writer.Do(changes)
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	return results
}

// booked has what was decided and written recorded, and the groups read as often as that asks for.
func (a *Agent) booked(now time.Time, out policy.Output, results []plan.Result) {
	a.record.Decided(now, out, results)
	for _, v := range out.Views {
		a.attend(v)
	}
	a.carriedOut(results)
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
		if g := a.at(path); g != nil {
			g.Stale(now)
		}
	}
	a.Writer.SetHold(a.held())
	return pods
}

// look reads the groups that are due, and makes of all groups what the policy decides on.
func (a *Agent) look(now time.Time, pods []workload.Pod) policy.Input {
	if a.subscription.stale || !workload.Same(pods, a.snapshot) {
		a.snapshot, a.subscription.stale = pods, false
		a.reader.Renew()
		a.watch(pods)
	}
	in := policy.Input{Now: now, Rules: a.Rules, Node: a.node.Measure(now, a.Host, a.Strategy.SharePoolThresholdPercent),
		Subscribed: a.subscription.active, Missed: a.missed(), Held: a.held(), Throttles: a.subscription.take()}
	a.measureRisk(now)
	in.BurstCut = a.risk.cut
	a.reader.Subscribed = a.subscription.active
	world := a.reader.Read(now, pods, a.asked)
	for _, p := range world.Pods {
		in.Pods = append(in.Pods, a.seePod(now, p))
	}
	in.Gone = a.drop(now, world.Gone)
	return in
}

// seePod makes of a pod that was read what the policy decides on.
func (a *Agent) seePod(now time.Time, p observe.Pod) policy.Pod {
	pod := policy.Pod{Own: p.Own, Ceiling: p.Ceiling, Containers: make([]policy.Group, 0, len(p.Containers))}
	if p.Group != nil {
		pod.Group = a.seeGroup(now, p.Group)
	}
	for _, g := range p.Containers {
		pod.Containers = append(pod.Containers, a.seeGroup(now, g))
	}
	for _, s := range p.Scopes {
		pod.Scopes = append(pod.Scopes, policy.Scope{Group: a.seeGroup(now, s.Group), Of: s.Of})
	}
	if a.lost(pod) { // as before a resize: neither a burst nor a raise is in the way of the limit
		pod.Paused = true
		for i := range pod.Containers {
			pod.Containers[i].Paused = true
		}
		for i := range pod.Scopes {
			pod.Scopes[i].Paused = true
		}
	}
	return pod
}

func (a *Agent) seeGroup(now time.Time, read *observe.Group) policy.Group {
	g := a.of(read)
	share := a.reservations.shares[g.Path]
	group := policy.Group{ID: g.ID, Unlimited: share.Unlimited, CPUs: len(share.CPUs), Strategy: g.Strategy, Request: g.Request, Class: g.Class,
		Deprioritized: a.deprioritized(g), Paused: g.Paused, Disk: g.Disk, Ready: g.Ready, Quiet: g.Quiet, Reading: g.Reading, Looked: g.Looked,
		Starting: g.Starts}
	a.see(now, g, &group)
	return group
}

// drop forgets groups that are gone, and puts back what stands of ours in those that are only no longer looked after.
func (a *Agent) drop(now time.Time, gone []*observe.Group) []workload.ID {
	a.retryRestores(now)
	var list []workload.ID
	dropped := map[workload.ID]bool{}
	for _, g := range gone {
		list, dropped[g.ID] = append(list, g.ID), true
		delete(a.groups, g.ID)
		a.record.Drop(g.ID)
	}
	if len(dropped) > 0 {
		for id := range dropped {
			a.ledger.Drop(id, plan.Quota, plan.Burst)
		}
		a.putBackIn(now, func(e journal.Entry) bool { return dropped[e.ID] && ofLeaver(e) })
	}
	return list
}

// schedule sets when each group that was read is due again, and returns the earliest time.
func (a *Agent) schedule(now time.Time, out policy.Output) time.Time {
	return a.reader.Schedule(now, func(g *observe.Group) time.Time {
		at := out.Looks[g.ID]
		if known := a.groups[g.ID]; known != nil && known.late.After(now) {
			at = sooner(at, known.late)
		}
		return at
	})
}
