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

// ear is what the agent keeps of what it hears.
type ear struct {
	hears      bool
	why        string                   // why it does not
	ended      bool                     // and never will again
	pods       map[uint64]*workload.Pod // who is heard of, by the inode of a group: its pod
	anew       bool                     // who is to be heard of has to be said again
	heard      []policy.Throttle
	early      []policy.Throttle // foreseen, and put off
	lost       int64
	refills    effects
	unsure     []*group   // whose last refill is to be judged
	refillsOff *time.Time // nothing is refilled on this node until then; nil: refills have effect
	purse      purse
	delays     delays
}

// take hands over the throttles that wait for an ordinary turn.
func (e *ear) take() []policy.Throttle {
	heard := e.heard
	e.heard = nil
	return heard
}

// due adds to what is heard what was put off until now. A group's newer word replaces that.
func (e *ear) due(now time.Time, heard []policy.Throttle) []policy.Throttle {
	e.early = slices.DeleteFunc(e.early, func(old policy.Throttle) bool {
		_, newer := policy.Told(heard, old.Inode)
		if !newer && !now.Before(old.Due()) {
			heard = append(heard, old)
			return true
		}
		return newer
	})
	return heard
}

// next is when the first of those that were put off is due; zero: there is none.
func (e *ear) next() (first time.Time) {
	for _, t := range e.early {
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
	if a.Ear == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for next := (time.Time{}); ; {
			heard, err := a.Ear.Read(next)
			if err != nil {
				a.deafen(err)
				return
			}
			next = a.AnswerThrottles(heard)
		}
	}()
	return func() {
		if err := a.Ear.Close(); err != nil {
			a.Log.Warn("throttle events", "error", err)
		}
		<-done
	}
}

// deafen goes back to polling.
func (a *Agent) deafen(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ear.ended = true
	if errors.Is(err, io.EOF) {
		a.ear.hears, a.ear.why = false, err.Error()
		return
	}
	a.poll(err)
	a.wake()
}

// poll does without the kernel's word.
func (a *Agent) poll(why error) {
	if a.ear.hears {
		a.Log.Warn("the kernel does not tell of these groups' throttles: polling from now on", "error", why)
	}
	a.ear.hears, a.ear.why = false, why.Error()
	a.lookAgain()
}

// lookAgain has every group looked at in the next turn.
func (a *Agent) lookAgain() {
	for _, g := range a.groups {
		g.due = time.Time{}
		g.rouse()
	}
}

// watch says of whom to hear: all groups of pods that anything is to be done for, and with a load line of all others too.
// It is called with a new snapshot. What is refused is tried again with the next one.
func (a *Agent) watch(pods []workload.Pod) {
	if a.Ear == nil || a.ear.ended {
		return
	}
	before := a.ear.pods
	a.ear.pods = map[uint64]*workload.Pod{}
	var inodes []uint64
	add := func(inode uint64, p *workload.Pod) {
		if inode != 0 {
			a.ear.pods[inode] = p
			inodes = append(inodes, inode)
		}
	}
	for i := range pods {
		p := &pods[i]
		passive := !slices.ContainsFunc(p.Containers, func(c workload.Container) bool { return c.Strategy.Policy != strategy.None })
		if passive && a.Strategy.LoadLinePercent == 0 {
			continue
		}
		add(p.Inode, p)
		for _, c := range p.Containers {
			add(c.Inode, p)
		}
	}
	if err := a.Ear.Watch(inodes); err != nil {
		a.ear.pods = nil
		a.poll(err)
		return
	}
	if !a.ear.hears {
		a.ear.hears, a.ear.why = true, a.Deaf
		a.Log.Info("the kernel tells of throttles again")
	}
	for _, g := range a.groups {
		if a.ear.pods[g.Inode] != nil && before[g.Inode] == nil {
			a.introduce(g)
		}
	}
}

// introduce tells the kernel what it may not know of a group that it tells of only now, or again after a refusal.
func (a *Agent) introduce(g *group) {
	a.setMuted(g, false)
	g.muted = false
	if g.status.Limit > 0 && g.status.Limited() {
		a.counted(g, g.status.Limit)
	}
}

// mute has the kernel not tell of throttles that nothing can be done about. It forgets who is muted with the group, so that
// nobody else may be.
func (a *Agent) mute(g *group, mute bool) {
	g.barred = mute
	if !a.ear.hears || g.muted == mute || a.ear.pods[g.Inode] == nil {
		return
	}
	a.setMuted(g, mute)
}

// setMuted leaves g.muted as it was when it fails, so that it is tried again.
func (a *Agent) setMuted(g *group, mute bool) {
	err := a.Ear.Mute(g.Inode, mute)
	if err == nil {
		g.muted = mute
	} else if g.first("mute") {
		a.Log.Warn("throttle events", "cgroup", g.Path, "error", err)
	}
}

// missed says whether throttles were lost since the last turn, and has all groups looked at then.
func (a *Agent) missed() bool {
	if a.Ear == nil {
		return false
	}
	lost := a.Ear.Lost()
	if lost == a.ear.lost {
		return false
	}
	a.ear.lost = lost
	a.lookAgain()
	return true
}
