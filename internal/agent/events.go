package agent

import (
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/policy"
	"plimsoll/internal/workload"
)

// subscription is the agent's subscription to throttle events.
type subscription struct {
	active   bool
	why      string                   // why it is not active
	ended    bool                     // it will not become active again
	pods     map[uint64]*workload.Pod // the pod of each group with events, by the group's inode
	stale    bool                     // the set of groups must be renewed
	all      bool                     // somebody looks at the periods of all groups
	waiting  []bandwidth.Throttle     // for an ordinary turn
	foreseen policy.PutOff
	lost     int64
	unsure   []*group // groups whose last refill is not judged yet
}

// next is when the first postponed throttle or judgement is due; zero: there is none.
func (e *subscription) next() time.Time {
	first := e.foreseen.Next()
	for _, g := range e.unsure {
		if g.refill != nil {
			first = policy.Sooner(first, g.refill.Due())
		}
	}
	return first
}

// listen answers throttle events until stop is called.
func (a *Agent) listen() (stop func()) {
	if a.Events == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for next := (time.Time{}); ; {
			throttles, err := a.Events.Read(next)
			if err != nil {
				a.endSubscription(err)
				return
			}
			next = a.AnswerThrottles(throttles)
		}
	}()
	return func() {
		if err := a.Events.Close(); err != nil {
			a.Log.Warn("throttle events", "error", err)
		}
		<-done
	}
}

// endSubscription falls back to polling.
func (a *Agent) endSubscription(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscription.ended = true
	if errors.Is(err, io.EOF) {
		a.subscription.active, a.subscription.why = false, err.Error()
		return
	}
	a.poll(err)
	a.wake()
}

// poll continues without throttle events.
func (a *Agent) poll(why error) {
	if a.subscription.active {
		a.Log.Warn("no throttle events for these groups: polling from now on", "error", why)
	}
	a.subscription.active, a.subscription.why = false, why.Error()
	a.reader.DueAll()
}

// WatchAll says that somebody looks at the periods of all groups, or does not any more. The kernel's programs see the
// periods of watched groups only. Groups that no policy changes are never answered, so that each sends one event.
func (a *Agent) WatchAll(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.subscription.all != on {
		a.subscription.all, a.subscription.stale = on, true
		a.wake()
	}
}

// watch subscribes to the throttle events of all groups that a policy changes, and with a load line of all groups. It
// is called for each new snapshot. A failed subscription is retried with the next one, and at once without the groups
// that somebody only looks at.
func (a *Agent) watch(pods []workload.Pod) {
	if a.Events == nil || a.subscription.ended {
		return
	}
	before, needed := a.subscription.pods, a.Strategy.LoadLinePercent != 0
	err := a.subscribe(pods, needed || a.subscription.all)
	if err != nil && a.subscription.all && !needed {
		a.Log.Warn("the periods of groups that no policy changes are not recorded", "error", err)
		err = a.subscribe(pods, false)
	}
	if err != nil {
		a.subscription.pods = nil
		a.poll(err)
		return
	}
	if a.Refillable != nil && a.Rules.Refill {
		a.Refillable(workload.Refillable(pods)) // to see writes to their quotas before the first refill
	}
	if !a.subscription.active {
		a.subscription.active, a.subscription.why = true, a.Polling
		a.Log.Info("throttle events again")
	}
	for _, g := range a.groups {
		a.mu.Yield()
		if a.subscription.pods[g.Inode] != nil && before[g.Inode] == nil {
			a.introduce(g)
		}
	}
}

// subscribe subscribes to the events of pods that a policy changes, or of all pods.
func (a *Agent) subscribe(pods []workload.Pod, all bool) (err error) {
	watched := map[uint64]*workload.Pod{}
	for i := range pods {
		a.mu.Yield()
		if p := &pods[i]; all || !p.Passive() {
			for _, id := range p.IDs() {
				watched[id.Inode] = p
			}
		}
	}
	delete(watched, 0) // pods without a group
	a.subscription.pods = watched
	a.mu.Outside(func() { err = a.Events.Watch(slices.Sorted(maps.Keys(watched))) })
	return err
}

// introduce sets the eBPF state of a group that is watched for the first time, or again after a failure.
func (a *Agent) introduce(g *group) {
	a.suppressEvents(g, false)
	g.suppressed = false
	if g.counted = 0; g.limit.Quota > 0 && g.limit.Limited() {
		a.countBy(g, g.limit.Quota)
	}
}

// suppressEvents stops events that cannot be answered. The setting ends with the group, so that no other group inherits
// it. On failure g.suppressed stays, so that the next turn retries.
func (a *Agent) suppressEvents(g *group, suppress bool) {
	err := a.Events.SuppressEvents(g.Inode, suppress)
	if err == nil {
		g.suppressed = suppress
	} else if g.First("suppress events") {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}

// countBy sets a group's limit as the quota by which eBPF classifies the use of its periods, raised or not.
func (a *Agent) countBy(g *group, limit time.Duration) {
	g.counted = limit
	if err := a.Events.Limit(g.Inode, limit); err != nil {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}

// missed says whether events were lost since the last turn. If so, the turn reads all groups.
func (a *Agent) missed() bool {
	if a.Events == nil || a.Events.Lost() == a.subscription.lost {
		return false
	}
	a.subscription.lost = a.Events.Lost()
	a.reader.DueAll()
	return true
}
