package agent

import (
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/slab"
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
// is not carried out in the same period (refilledSince), and the answer says when the pod is read again
// (recordBandwidth).
func (a *Agent) Tick(now time.Time) Turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Turned(now) // only turns of the loop count for the health check
	turn := a.tick(now)
	a.Beat(a.Clock()) // with the lock: a write that hangs keeps it, and ends the heartbeat
	return turn
}

// tick takes one turn. Only do writes, loads a scheduler and changes the journal; it learns from each write at once.
// The subscription to throttle events follows the groups that are read (watch) and the decisions on them (attend).
func (a *Agent) tick(now time.Time) Turn {
	in, gone := a.read(now)
	decided := a.decide(now, in)
	changes := a.plan(now, decided)
	results := a.do(now, gone, decided, changes)
	a.recordTurn(now, decided, results)
	return Turn{Results: results, Next: a.schedule(now, decided.bandwidth)}
}

// Plan is a dry run of a turn: it returns what a turn would write. An agent made with DryRunOptions has no writer, and
// its Plan is called in place of Tick.
func (a *Agent) Plan(now time.Time) (changes []plan.Change, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in, _ := a.read(now)
	decided := a.decide(now, in)
	changes = a.plan(now, decided)
	a.note()
	a.recordTurn(now, decided, nil)
	return changes, a.schedule(now, decided.bandwidth)
}

// read takes the snapshot of the discovery, judges earlier refills, and reads the groups that are due. It also returns
// the groups that are gone or no longer managed.
func (a *Agent) read(now time.Time) (in policy.Input, gone []*observe.Group) {
	pods := a.discover(now)
	a.judge(now)
	a.undone(now)
	if a.otherScheduler.Watch(now, a.Overruled, a.scheduler) {
		a.reader.StaleAll(now)
	}
	if a.subscription.stale || !workload.Same(pods, a.snapshot) {
		a.snapshot, a.subscription.stale = pods, false
		a.reader.Renew()
		a.watch(pods)
	}
	a.measureRisk(now)
	in = a.input(now)
	in.Missed, in.Throttles, in.Yield = a.missed(), a.subscription.waiting, a.mu.Yield
	a.subscription.waiting = nil
	a.reader.Subscribed = a.subscription.active
	clear(a.answered)
	world := a.reader.Read(now, pods)
	in.Pods = slab.Room(a.inputs, len(world.Pods))
	for _, p := range world.Pods {
		a.mu.Yield()
		in.Pods = append(in.Pods, a.seePod(now, p))
	}
	a.inputs = in.Pods
	for _, g := range world.Gone {
		in.Gone = append(in.Gone, g.ID)
		delete(a.groups, g.ID)
	}
	return in, world.Gone
}

// decided is the intents of all deciders.
type decided struct {
	bandwidth  policy.Output
	colocation ledger.Want
	cpus       ledger.Want
}

// decide makes all decisions. Those on bandwidth need only what read has read. Which other files matter depends on the
// decisions themselves: colocation and exclusive CPUs read those here, and show them to the ledger.
func (a *Agent) decide(now time.Time, in policy.Input) decided {
	if a.wasHeld && !in.Held {
		a.cpus.Again() // containers may have lost their CPUs
	}
	a.wasHeld = in.Held
	return decided{
		bandwidth:  a.state.Decide(in),
		colocation: a.colocation.Decide(now, a.snapshot, a.Strategy.Colocation),
		cpus:       a.cpus.Decide(now, a.snapshot),
	}
}

// plan makes the changes for the intents.
func (a *Agent) plan(now time.Time, d decided) []plan.Change {
	return a.ledger.PlanAll(now, ledger.Want{Intents: d.bandwidth.Intents}, d.colocation, d.cpus)
}

// do brings the journal and the scheduler in line with the decisions. Then it writes: restores in groups that are no
// longer managed, and the changes.
func (a *Agent) do(now time.Time, gone []*observe.Group, d decided, changes []plan.Change) []plan.Result {
	a.Writer.SetHold(a.held())
	a.note()
	if d.colocation.Of != nil {
		a.colocation.Schedule(now, !a.held())
	}
	a.leave(now, gone)
	results := a.writeAll(changes)
	if d.cpus.Of != nil {
		results = append(results, a.cpus.Protect(a.Writer, !a.held())...)
	}
	return results
}

// writeAll carries out the changes of a turn one by one. Raises wait for the journal's disk here; refills do not.
func (a *Agent) writeAll(changes []plan.Change) (results []plan.Result) {
	if len(changes) > 0 {
		a.mu.Outside(func() { a.Writer.Claim(changes) })
	}
	for _, c := range a.Writer.Steps(changes) {
		if a.mu.Yield(); !a.refilledSince(c) {
			results = append(results, a.write([]plan.Change{c})...)
		}
	}
	return results
}

// refilledSince says whether a refill of the pod came after a change was decided, less than a period ago. The restore
// of a group that is kept at its limit does not wait: whoever released the group is about to write.
func (a *Agent) refilledSince(c plan.Change) bool {
	at, g := a.answered[a.subscription.pods[c.Cgroup.Inode]], a.groups[c.Cgroup]
	if g == nil || !c.Knob.OfBandwidth() || c.Restore && g.WhyPaused != "" {
		return false
	}
	return a.Clock().Sub(at) < g.Disk.Period
}

// write carries out changes, and learns from the results. A group may have many tasks: no answer waits while a turn
// sets them, one knob at a time (writeAll), and no answer sets any itself.
func (a *Agent) write(changes []plan.Change) (results []plan.Result) {
	begin, do := a.Clock(), func() { results = a.Writer.Do(changes) }
	if slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Knob.OfTasks() }) {
		a.mu.Outside(do)
	} else {
		do()
	}
	a.learn(begin, results)
	return results
}

// learn takes over the results of writes, the first of which began then.
func (a *Agent) learn(begin time.Time, results []plan.Result) {
	a.ledger.Learn(begin, results)
	a.state.Learn(begin, results)
	a.reader.Learn(results)
}

// recordTurn records the decisions, and the results for the decider of each file.
func (a *Agent) recordTurn(now time.Time, d decided, results []plan.Result) {
	var bandwidth, colocation, cpus []plan.Result
	for _, r := range results {
		switch key := r.Change.Key(); {
		case a.colocation.Claims(key):
			colocation = append(colocation, r)
		case a.cpus.Of(key):
			cpus = append(cpus, r)
		default:
			bandwidth = append(bandwidth, r)
			if r.Change.Knob == plan.Quota && r.Change.From == plan.Time(cpu.Unlimited) {
				a.cpus.Again() // its quota is restored: now its CPUs may be taken away
			}
		}
	}
	a.record.Results(results)
	a.recordBandwidth(now, d.bandwidth, bandwidth, true)
	a.record.WholeTurn(d.bandwidth, a.Clock().Sub(now), a.Bounded)
	a.colocation.Done(d.colocation, colocation)
	a.cpus.Done(now, d.cpus, cpus)
}

// recordBandwidth records the decisions on bandwidth and their results, and sets how often the groups are read. A whole
// turn yields, and leaves that as it is for pods that were answered meanwhile.
func (a *Agent) recordBandwidth(now time.Time, out policy.Output, results []plan.Result, whole bool) {
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
		if v.Window.Elapsed() > 0 {
			g.Above(a.aboveLimit(g, v))
			if g.Level == observe.LevelContainer {
				a.colocation.Used(g.QOS.Rank(), v.Window.Used)
			}
		}
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

// input is the policy's input without the pods.
func (a *Agent) input(now time.Time) policy.Input {
	return policy.Input{Now: now, Rules: a.Rules, Subscribed: a.subscription.active, Held: a.held(),
		Extra: a.Strategy.Extra, BurstCut: a.risk.Cut(),
		Node: a.node.Measure(now, a.Host, a.Strategy.SharePoolThresholdPercent)}
}

// seePod makes the policy's input for a pod that was read.
func (a *Agent) seePod(now time.Time, p observe.Pod) policy.Pod {
	pod := policy.Pod{Own: p.Own, Namespace: p.Namespace, Ceiling: p.Ceiling,
		Containers: make([]policy.Group, 0, len(p.Containers))}
	lost := false
	see := func(read *observe.Group) policy.Group {
		g, limitLost := a.seeGroup(now, read)
		lost = lost || limitLost
		return g
	}
	if p.Group != nil {
		pod.Group = see(p.Group)
	}
	for _, g := range p.Containers {
		c := see(g)
		if g.Around != nil {
			scope := see(g.Around)
			c.Scope = &scope
		}
		pod.Containers = append(pod.Containers, c)
	}
	if lost { // pause as before a resize, so that burst and raise do not conflict with the limit
		for i := range pod.Containers { // with which pod and scopes pause
			pod.Containers[i].Paused = "kept at the limit: its owner's write was lost"
		}
	}
	return pod
}

// schedule sets when each group that was read is due again, and returns when the next turn is.
func (a *Agent) schedule(now time.Time, out policy.Output) time.Time {
	a.next = now.Add(observe.IdleEvery) // an answer meanwhile may make it earlier
	next := a.reader.Schedule(now, func(g *observe.Group) time.Time {
		at := out.Looks[g.ID]
		if known := a.groups[g.ID]; known != nil && known.late.After(now) {
			at = policy.Sooner(at, known.late)
		}
		return at
	})
	a.next = a.cpus.Next(now, policy.Sooner(next, a.next))
	return a.next
}
