package agent

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// Turn is the result of one turn.
type Turn struct {
	Results []plan.Result
	Next    time.Time // when the next group is due
}

// Tick takes one turn of the loop.
//
// A turn over many groups takes long, and yields to AnswerThrottles again and again. For a pod that was answered
// meanwhile the answer counts: an older reading is not recorded (policy.State.Decide), a decision from before a refill
// is not carried out in the same period (refilledSince), and the answer says when the pod is read again (booked).
func (a *Agent) Tick(now time.Time) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Turned(now) // only turns of the loop count for the health check
	turn := a.tick(now)
	a.Beat(a.Clock()) // with the lock: a write that hangs keeps it, and ends the heartbeat
	return turn
}

// tick takes one turn. Only do writes.
func (a *Agent) tick(now time.Time) Turn {
	world := a.read(now)
	decided := a.decide(now, world)
	results := a.do(now, world, decided, a.plan(now, decided))
	a.tell(now, decided, results)
	a.next = a.cpus.Next(now, a.schedule(now, decided.bandwidth))
	return Turn{Results: results, Next: a.next}
}

// Plan is a dry run of a turn: it returns what a turn would write. An agent made with DryRunOptions has no writer, and
// its Plan is called in place of Tick.
func (a *Agent) Plan(now time.Time) (changes []plan.Change, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	decided := a.decide(now, a.read(now))
	changes = a.plan(now, decided)
	a.note()
	a.tell(now, decided, nil)
	return changes, a.cpus.Next(now, a.schedule(now, decided.bandwidth))
}

// observed is what one turn has read.
type observed struct {
	pods  []workload.Pod
	input policy.Input
	gone  []*observe.Group // groups that are gone or no longer managed
}

// read takes the snapshot of the discovery, judges earlier refills, and reads the groups that are due.
func (a *Agent) read(now time.Time) observed {
	w := observed{pods: a.discover(now)}
	a.judge(now)
	a.undone(now)
	if a.otherScheduler.Watch(now, a.Overruled, a.scheduler) {
		a.reader.StaleAll(now)
	}
	w.input, w.gone = a.look(now, w.pods)
	return w
}

// decided is the intents of all deciders.
type decided struct {
	bandwidth  policy.Output
	colocation ledger.Want
	cpus       ledger.Want
}

// decide runs all deciders.
func (a *Agent) decide(now time.Time, w observed) decided {
	return decided{
		bandwidth:  a.state.Decide(w.input),
		colocation: a.colocation.Decide(now, w.pods, a.Strategy.Colocation, !a.DryRun && !a.held()),
		cpus:       a.cpus.Decide(now, w.pods),
	}
}

// plan makes the changes for the intents.
func (a *Agent) plan(now time.Time, d decided) []plan.Change {
	return a.ledger.PlanAll(now, ledger.Want{Intents: d.bandwidth.Intents}, d.colocation, d.cpus)
}

// do writes: restores in groups that are no longer managed, and the changes.
func (a *Agent) do(now time.Time, w observed, d decided, changes []plan.Change) []plan.Result {
	a.Writer.SetHold(a.held())
	a.note()
	a.leave(now, w.gone)
	results := a.writeAll(changes)
	if d.cpus.Of != nil {
		results = append(results, a.cpus.Protect(a.Writer, !a.held())...)
	}
	return results
}

// writeAll carries out the changes of a turn, a few at a time. Raises wait for the journal's disk here; refills do not.
func (a *Agent) writeAll(changes []plan.Change) (results []plan.Result) {
	if len(changes) > 0 {
		a.mu.Outside(func() { a.Writer.Claim(changes) })
	}
	for some := range slices.Chunk(a.Writer.Steps(changes), writeAtOnce) {
		a.mu.Yield()
		results = append(results, a.write(slices.DeleteFunc(some, a.refilledSince))...)
	}
	return results
}

// writeAtOnce is how many changes are written before the turn yields: each takes about 50 µs.
const writeAtOnce = 4

// refilledSince says whether a refill of the pod came after a change was decided, less than a period ago.
func (a *Agent) refilledSince(c plan.Change) bool {
	at, g := a.answered[a.subscription.pods[c.Cgroup.Inode]], a.groups[c.Cgroup]
	return c.Knob.OfBandwidth() && g != nil && a.Clock().Sub(at) < g.Disk.Period
}

// write carries out changes, and passes the results to the ledger, the policy and the reader.
func (a *Agent) write(changes []plan.Change) []plan.Result {
	begin := a.Clock()
	results := a.Writer.Do(changes)
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	a.reader.Learn(results)
	return results
}

// tell records the decisions and the results.
func (a *Agent) tell(now time.Time, d decided, results []plan.Result) {
	of := map[string][]plan.Result{}
	for _, r := range results {
		decider := a.decider(plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob})
		of[decider] = append(of[decider], r)
	}
	a.record.Results(results)
	a.booked(now, d.bandwidth, of[forBandwidth], true)
	a.record.WholeTurn(d.bandwidth, a.Clock().Sub(now), a.Bounded)
	a.colocation.Done(d.colocation, of[forColocation])
	a.cpus.Done(now, d.cpus, of[forCPUs])
	for _, r := range of[forBandwidth] {
		if r.Change.Knob == plan.Quota && r.Change.From == plan.Time(cpu.Unlimited) {
			a.cpus.Again() // its quota is restored: now its CPUs may be taken away
		}
	}
}

// The deciders.
const (
	forBandwidth  = "bandwidth"
	forColocation = "colocation"
	forCPUs       = "exclusive CPUs"
)

// decider names the decider of a file.
func (a *Agent) decider(key plan.Key) string {
	switch {
	case a.colocation.Claims(key):
		return forColocation
	case a.cpus.Of(key):
		return forCPUs
	}
	return forBandwidth
}

// booked records the decisions on bandwidth and their results, and sets how often the groups are read. A whole turn
// yields, and leaves that as it is for pods that were answered meanwhile.
func (a *Agent) booked(now time.Time, out policy.Output, results []plan.Result, whole bool) {
	a.record.Decisions(out.Kinds)
	for _, v := range out.Views {
		if whole {
			a.mu.Yield()
		}
		a.record.View(now, v)
		g := a.groups[v.Cgroup]
		if g == nil {
			continue
		}
		a.account(g, v)
		if _, answered := a.answered[a.subscription.pods[v.Cgroup.Inode]]; !whole || !answered {
			a.attend(g, v)
		}
	}
	for _, x := range results {
		a.record.Result(now, x)
	}
}

// discover takes the snapshot of the discovery; no refill waits for it. After a failure the last snapshot is kept, and
// the error is reported.
func (a *Agent) discover(now time.Time) (pods []workload.Pod) {
	var touched []string
	var err error
	a.mu.Outside(func() {
		pods, err = a.Discover.Pods()
		touched = a.Discover.Touched()
	})
	switch {
	case err != nil && a.failed == nil:
		a.Log.Warn("discovery fails: the last snapshot is kept", "error", err)
	case err == nil && a.failed != nil:
		a.Log.Info("discovery works again")
	}
	a.failed = err
	for _, path := range touched {
		services{Agent: a}.Due(now, path)
	}
	return pods
}

// look reads the groups that are due and makes the input of the policy. It also returns the groups that are gone.
func (a *Agent) look(now time.Time, pods []workload.Pod) (in policy.Input, gone []*observe.Group) {
	if a.subscription.stale || !workload.Same(pods, a.snapshot) {
		a.snapshot, a.subscription.stale = pods, false
		a.reader.Renew()
		a.watch(pods)
	}
	in = policy.Input{Now: now, Rules: a.Rules,
		Node:       a.node.Measure(now, a.Host, a.Strategy.SharePoolThresholdPercent),
		Subscribed: a.subscription.active, Missed: a.missed(), Held: a.held(), Extra: a.Strategy.Extra,
		Throttles: a.subscription.take(), Yield: a.mu.Yield}
	a.measureRisk(now)
	in.BurstCut = a.risk.Cut()
	a.reader.Subscribed = a.subscription.active
	clear(a.answered)
	world := a.reader.Read(now, pods, a.readAll)
	for _, p := range world.Pods {
		a.mu.Yield()
		in.Pods = append(in.Pods, a.seePod(now, p))
	}
	for _, g := range world.Gone {
		in.Gone = append(in.Gone, g.ID)
		delete(a.groups, g.ID)
	}
	return in, world.Gone
}

// seePod makes the policy's input for a pod that was read.
func (a *Agent) seePod(now time.Time, p observe.Pod) policy.Pod {
	pod := policy.Pod{Own: p.Own, Namespace: p.Namespace, Ceiling: p.Ceiling,
		Containers: make([]policy.Group, 0, len(p.Containers))}
	if p.Group != nil {
		pod.Group = a.seeGroup(now, p.Group)
	}
	for _, g := range p.Containers {
		pod.Containers = append(pod.Containers, a.seeGroup(now, g))
	}
	for _, s := range p.Scopes {
		pod.Scopes = append(pod.Scopes, policy.Scope{Group: a.seeGroup(now, s.Group), Of: s.Of})
	}
	if a.lost(pod) { // pause as before a resize, so that burst and raise do not conflict with the limit
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
	group := policy.Group{ID: g.ID, Unlimited: share.Unlimited, CPUs: len(share.CPUs), Strategy: g.Strategy,
		Request: g.Request, Class: g.Class, Deprioritized: a.colocation.Deprioritized(g.Group.Group), Paused: g.Paused,
		Disk: g.Disk, Ready: g.Ready, Quiet: g.Quiet, Reading: g.Reading, Looked: g.Looked, Starting: g.Starts}
	if a.see(now, g, &group); g.Strategy.Receipts > 0 && a.subscription.active {
		t, ok := a.Events.Totals(g.Inode)
		group.Lost, group.LostKnown, group.RequestsThrottled = t.Wall, ok && t.Begun > 0, t.Requests
	}
	return group
}

// schedule sets when each group that was read is due again, and returns the earliest time.
func (a *Agent) schedule(now time.Time, out policy.Output) time.Time {
	a.next = now.Add(observe.IdleEvery) // an answer meanwhile may make it earlier
	next := a.reader.Schedule(now, func(g *observe.Group) time.Time {
		at := out.Looks[g.ID]
		if known := a.groups[g.ID]; known != nil && known.late.After(now) {
			at = policy.Sooner(at, known.late)
		}
		return at
	})
	return policy.Sooner(next, a.next)
}
