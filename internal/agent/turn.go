package agent

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// Turn is what one tick did.
type Turn struct {
	Results []plan.Result
	Next    time.Time // when the next group is due
}

// Tick takes one turn: who is there, what happened to them, what is to be done, what became of it.
func (a *Agent) Tick(now time.Time) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Turned(now) // a sign of life of the loop, and of nobody else's turns
	return a.tick(now)
}

// tick takes one turn. Only its third line writes.
func (a *Agent) tick(now time.Time) Turn {
	world := a.read(now)
	decided := a.decide(now, world)
	results := a.do(now, world, decided, a.plan(now, decided))
	a.tell(now, decided, results)
	a.next = a.cpus.Next(now, a.schedule(now, decided.bandwidth))
	return Turn{Results: results, Next: a.next}
}

// Plan is a dry run of a turn: it returns what a turn would write. An agent made with DryRunOptions has no writer, and its
// Plan is called in place of Tick.
func (a *Agent) Plan(now time.Time) (changes []plan.Change, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	decided := a.decide(now, a.read(now))
	changes = a.plan(now, decided)
	a.note()
	a.tell(now, decided, nil)
	return changes, a.cpus.Next(now, a.schedule(now, decided.bandwidth))
}

// observed is what is known of the machine in one turn.
type observed struct {
	pods  []workload.Pod
	input policy.Input
	gone  []*observe.Group // no longer there, or no longer looked after
}

// read finds out what runs, what became of earlier writes, and what the groups hold that are due.
func (a *Agent) read(now time.Time) observed {
	w := observed{pods: a.discover(now)}
	a.judge(now)
	a.undone(now)
	a.overrule(now)
	w.input, w.gone = a.look(now, w.pods)
	return w
}

// decided is what the deciders intend.
type decided struct {
	bandwidth  policy.Output
	colocation ledger.Want
	cpus       ledger.Want
}

// decide asks all deciders.
func (a *Agent) decide(now time.Time, w observed) decided {
	return decided{
		bandwidth:  a.state.Decide(w.input),
		colocation: a.colocation.Decide(now, w.pods, a.Strategy.Colocation, !a.DryRun && !a.held()),
		cpus:       a.cpus.Decide(now, w.pods),
	}
}

// plan makes changes of what was decided.
func (a *Agent) plan(now time.Time, d decided) []plan.Change {
	return a.ledger.PlanAll(now, ledger.Want{Intents: d.bandwidth.Intents}, d.colocation, d.cpus)
}

// do writes: what is left in groups that are no longer looked after, and the changes.
func (a *Agent) do(now time.Time, w observed, d decided, changes []plan.Change) []plan.Result {
	a.Writer.SetHold(a.held())
	a.note()
	a.leave(now, w.gone)
	results := a.write(changes)
	if d.cpus.Of != nil {
		results = append(results, a.cpus.Protect(a.Writer, !a.held())...)
	}
	return results
}

// write carries changes out, and has the ledger and the deciders learn what became of them.
func (a *Agent) write(changes []plan.Change) []plan.Result {
	begin := a.Clock()
	results := a.Writer.Do(changes)
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	a.reader.Learn(results)
	return results
}

// tell records what was decided and done.
func (a *Agent) tell(now time.Time, d decided, results []plan.Result) {
	of := map[string][]plan.Result{}
	for _, r := range results {
		decider := a.decider(plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob})
		of[decider] = append(of[decider], r)
	}
	a.record.Results(results)
	a.booked(now, d.bandwidth, of[forBandwidth])
	a.record.WholeTurn(d.bandwidth, a.Clock().Sub(now))
	a.colocation.Done(d.colocation, of[forColocation])
	a.cpus.Done(now, d.cpus, of[forCPUs])
	for _, r := range of[forBandwidth] {
		if r.Change.Knob == plan.Quota && r.Change.From == plan.Time(cpu.Unlimited) { // it was lifted: now its CPUs may go
			a.cpus.Again()
		}
	}
}

// The deciders.
const (
	forBandwidth  = "bandwidth"
	forColocation = "colocation"
	forCPUs       = "exclusive CPUs"
)

// decider is for whom a file is written.
func (a *Agent) decider(key plan.Key) string {
	switch {
	case a.colocation.Claims(key):
		return forColocation
	case a.cpus.Of(key):
		return forCPUs
	}
	return forBandwidth
}

// booked has what was decided of bandwidth, and written for that, recorded, and the groups read as often as that asks for.
func (a *Agent) booked(now time.Time, out policy.Output, results []plan.Result) {
	a.record.Decided(now, out, results)
	for _, v := range out.Views {
		a.attend(v)
	}
}

// discover takes the snapshot of what runs. When it fails the last one is kept, and the failure is reported.
func (a *Agent) discover(now time.Time) []workload.Pod {
	pods, err := a.Discover.Pods()
	switch {
	case err != nil && a.failed == nil:
		a.Log.Warn("discovery fails: the last snapshot is kept", "error", err)
	case err == nil && a.failed != nil:
		a.Log.Info("discovery works again")
	}
	a.failed = err
	for _, path := range a.Discover.Touched() {
		if g := a.at(path); g != nil {
			g.Stale(now)
		}
	}
	return pods
}

// look reads the groups that are due, and makes of all groups what the policy decides on. It also returns those that are gone.
func (a *Agent) look(now time.Time, pods []workload.Pod) (in policy.Input, gone []*observe.Group) {
	if a.subscription.stale || !workload.Same(pods, a.snapshot) {
		a.snapshot, a.subscription.stale = pods, false
		a.reader.Renew()
		a.watch(pods)
	}
	in = policy.Input{Now: now, Rules: a.Rules, Node: a.node.Measure(now, a.Host, a.Strategy.SharePoolThresholdPercent),
		Subscribed: a.subscription.active, Missed: a.missed(), Held: a.held(), Throttles: a.subscription.take()}
	a.measureRisk(now)
	in.BurstCut = a.risk.Cut()
	a.reader.Subscribed = a.subscription.active
	world := a.reader.Read(now, pods, a.asked)
	for _, p := range world.Pods {
		in.Pods = append(in.Pods, a.seePod(now, p))
	}
	for _, g := range world.Gone {
		in.Gone = append(in.Gone, g.ID)
		delete(a.groups, g.ID)
	}
	return in, world.Gone
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
	share := a.share(g.Path)
	group := policy.Group{ID: g.ID, Unlimited: share.Unlimited, CPUs: len(share.CPUs), Strategy: g.Strategy, Request: g.Request, Class: g.Class,
		Deprioritized: a.colocation.Deprioritized(g.Group.Group), Paused: g.Paused, Disk: g.Disk, Ready: g.Ready, Quiet: g.Quiet, Reading: g.Reading, Looked: g.Looked,
		Starting: g.Starts}
	a.see(now, g, &group)
	return group
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
