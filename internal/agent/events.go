package agent

import (
	"errors"
	"io"
	"slices"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// subscription is the agent's subscription to throttle events, and what came of it.
type subscription struct {
	active   bool
	why      string                   // why it does not
	ended    bool                     // and never will again
	pods     map[uint64]*workload.Pod // the pod of each group that is subscribed to, by the group's inode
	stale    bool                     // the groups have to be named again
	waiting  []policy.Throttle
	foreseen []policy.Throttle // foreseen, and put off
	lost     int64
	unsure   []*group // whose last refill is to be judged
	budget   policy.WriteAccount
}

// take hands over the throttles that wait for an ordinary turn.
func (e *subscription) take() []policy.Throttle {
	throttles := e.waiting
	e.waiting = nil
	return throttles
}

// due adds to the throttles those that were put off until now. A newer event of the same group replaces one.
func (e *subscription) due(now time.Time, throttles []policy.Throttle) []policy.Throttle {
	e.foreseen = slices.DeleteFunc(e.foreseen, func(old policy.Throttle) bool {
		_, newer := policy.Latest(throttles, old.Inode)
		if !newer && !now.Before(old.Due()) {
			throttles = append(throttles, old)
			return true
		}
		return newer
	})
	return throttles
}

// next is when the first of those that were put off is due; zero: there is none.
func (e *subscription) next() (first time.Time) {
	for _, t := range e.foreseen {
		first = sooner(first, t.Due())
	}
	for _, g := range e.unsure {
		if g.refill != nil {
			first = sooner(first, g.refill.Due())
		}
	}
	return first
}

// sooner is the earlier of two instants, of which the zero one is none.
func sooner(first, at time.Time) time.Time {
	if first.IsZero() || at.Before(first) {
		return at
	}
	return first
}

// listen answers throttles until it is stopped.
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

// endSubscription goes back to polling.
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

// poll does without throttle events.
func (a *Agent) poll(why error) {
	if a.subscription.active {
		a.Log.Warn("no throttle events for these groups: polling from now on", "error", why)
	}
	a.subscription.active, a.subscription.why = false, why.Error()
	a.reader.DueAll()
}

// watch subscribes to the throttle events of all groups for which anything is to be done, and with a load line of all others.
// It is called with a new snapshot. What is refused is tried again with the next one.
func (a *Agent) watch(pods []workload.Pod) {
	if a.Events == nil || a.subscription.ended {
		return
	}
	before := a.subscription.pods
	a.subscription.pods = map[uint64]*workload.Pod{}
	var inodes []uint64
	for i := range pods {
		p := &pods[i]
		passive := !slices.ContainsFunc(p.Containers, func(c workload.Container) bool { return c.Strategy.Policy != strategy.None })
		if passive && a.Strategy.LoadLinePercent == 0 {
			continue
		}
		for _, id := range p.IDs() {
			if id.Inode != 0 {
				a.subscription.pods[id.Inode] = p
				inodes = append(inodes, id.Inode)
			}
		}
	}
	if err := a.Events.Watch(inodes); err != nil {
		a.subscription.pods = nil
		a.poll(err)
		return
	}
	a.expectRefills(pods)
	if !a.subscription.active {
		a.subscription.active, a.subscription.why = true, a.Polling
		a.Log.Info("throttle events again")
	}
	for _, g := range a.groups {
		if a.subscription.pods[g.Inode] != nil && before[g.Inode] == nil {
			a.introduce(g)
		}
	}
}

// introduce tells the kernel what it may not know of a group that it tells of only now, or again after a refusal.
func (a *Agent) introduce(g *group) {
	a.setSuppressed(g, false)
	g.suppressed = false
	if g.counted = 0; g.limit.Quota > 0 && g.limit.Limited() {
		a.countBy(g, g.limit.Quota)
	}
}

// suppressEvents keeps the kernel from sending events that nothing can be done about. The kernel forgets this with
// the group, so that no other group may inherit it.
func (a *Agent) suppressEvents(g *group, suppress bool) {
	if !a.subscription.active || g.suppressed == suppress || a.subscription.pods[g.Inode] == nil {
		return
	}
	a.setSuppressed(g, suppress)
}

// setSuppressed leaves g.suppressed as it was when it fails, so that it is tried again.
func (a *Agent) setSuppressed(g *group, suppress bool) {
	err := a.Events.SuppressEvents(g.Inode, suppress)
	if err == nil {
		g.suppressed = suppress
	} else if g.First("suppress events") {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}

// missed says whether throttles were lost since the last turn, and has all groups looked at then.
func (a *Agent) missed() bool {
	if a.Events == nil {
		return false
	}
	lost := a.Events.Lost()
	if lost == a.subscription.lost {
		return false
	}
	a.subscription.lost = lost
	a.reader.DueAll()
	return true
}
