package agent

import (
	"errors"
	"io"
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Where the kernel tells of throttles (Ear), each is answered in the millisecond in which it begins by a turn for the
// groups concerned alone, on the thread that heard of it. The ordinary turns go on beside: they size what is to stand
// for longer, and need to look only at groups of which something was heard of late.

// ear is what the agent keeps of what it hears.
type ear struct {
	hears   bool
	why     string                   // why it does not
	ended   bool                     // and never will again
	pods    map[uint64]*workload.Pod // who is heard of, by the inode of a group: its pod
	anew    bool                     // who is to be heard of has to be said again
	heard   []policy.Throttle
	lost    int64
	rescues int64
	purse   purse
	delays  delays
}

// take hands over the throttles that wait for an ordinary turn.
func (e *ear) take() []policy.Throttle {
	heard := e.heard
	e.heard = nil
	return heard
}

// listen answers throttles until it is stopped.
func (a *Agent) listen() (stop func()) {
	if a.Ear == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			heard, err := a.Ear.Read()
			if err != nil {
				a.deafen(err)
				return
			}
			a.Rescue(heard)
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
	} else if !g.said["mute"] {
		g.said["mute"] = true
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

// Rescue takes a turn for the groups that were throttled a moment ago, and for them alone.
func (a *Agent) Rescue(heard []policy.Throttle) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ear.hears { // who is heard of is not known any more
		return
	}
	now := a.Clock()
	pods := a.concerned(now, heard)
	if len(pods) == 0 {
		return
	}
	if !a.Rules.Refill { // the answer is a raise, which is a matter for the whole node
		a.ear.heard = append(a.ear.heard, heard...)
		a.wake()
		return
	}
	in := policy.Input{Now: now, Rules: a.Rules, Heard: true, Held: a.held(), BurstCut: a.risk.cut,
		Node: a.node.measure(now, a.Host, a.Strategy.SharePoolThresholdPercent)}
	for _, p := range pods {
		if pod, ok := a.lookPod(now, *p); ok {
			in.Pods = append(in.Pods, pod)
		}
	}
	out := a.state.Rescue(in, heard, a.ear.purse.open(now))
	a.note(out.Notes)
	begin := a.Clock()
	results := a.Writer.Do(out.Changes)
	a.ear.purse.spend(len(results), a.Clock().Sub(begin))
	a.state.Learn(begin, results)
	a.book(now, out, results)
	a.rescued(heard, results)
	a.afterRescue(now, out)
}

// concerned lists the pods that were heard of, and has what was heard of read.
func (a *Agent) concerned(now time.Time, heard []policy.Throttle) []*workload.Pod {
	var pods []*workload.Pod
	for _, t := range heard {
		p := a.ear.pods[t.Inode]
		if p == nil {
			continue // it has gone since
		}
		if !slices.Contains(pods, p) {
			pods = append(pods, p)
		}
		for _, id := range ids(*p) {
			if g := a.groups[id]; g != nil && id.Inode == t.Inode {
				g.due, g.watched = now, true
				g.rouse()
				if !t.Ahead {
					g.status.Totals.WallSaved += g.saving.end(t.At)
				}
				if g.disk != t.Bandwidth {
					g.diskAt = time.Time{}
				}
			}
		}
	}
	return pods
}

// ids lists the groups of a pod.
func ids(p workload.Pod) []workload.ID {
	list := []workload.ID{p.ID}
	for _, c := range p.Containers {
		list = append(list, c.ID)
	}
	return list
}

// rescued counts the refills, and how long after a throttle's begin those came that ended one. A throttle that was
// foreseen and has begun since is one.
func (a *Agent) rescued(heard []policy.Throttle, results []plan.Result) {
	for _, r := range results {
		g := a.groups[r.Change.Cgroup]
		if g == nil || r.Outcome != plan.Applied {
			continue
		}
		t, _ := policy.Told(heard, r.Change.Cgroup.Inode)
		a.ear.rescues++
		g.status.Totals.Rescues++
		g.status.Totals.WallSaved += g.saving.begin(r.At, t.Expires)
		if !t.Ahead {
			a.ear.delays.add(r.At.Sub(t.At))
		}
	}
}

// afterRescue sets when the groups are to be looked at next.
func (a *Agent) afterRescue(now time.Time, out policy.Output) {
	for _, v := range out.Views {
		g := a.groups[v.Cgroup]
		if g == nil {
			continue
		}
		g.due = a.inStep(now, lookEvery)
		if at, ok := out.Looks[v.Cgroup]; ok {
			g.due = at
		}
		if g.due.Before(a.next) {
			a.next = g.due
			signal(a.sooner)
		}
	}
}

// purse is how much time may go into writes that end throttles: each holds a mutex that all of the kernel has in
// common, and walks all groups (kernel/sched/core.c, tg_set_cfs_bandwidth and __cfs_schedulable), so what it costs
// grows with the number of groups and is measured.
type purse struct {
	left time.Duration
	at   time.Time
	cost time.Duration // of one write, of late
}

const (
	purseFull  = 20 * time.Millisecond
	purseShare = 50 // it fills with a fiftieth of the time
	costMemory = 16 // the cost is the mean of about so many writes
)

func (p *purse) open(now time.Time) policy.Purse {
	if p.at.IsZero() {
		p.left, p.cost = purseFull, 50*time.Microsecond
	}
	p.left, p.at = min(purseFull, p.left+now.Sub(p.at)/purseShare), now
	return policy.Purse{Left: int(p.left / p.cost), Full: int(purseFull / p.cost)}
}

func (p *purse) spend(writes int, took time.Duration) {
	if writes == 0 {
		return
	}
	each := min(took/time.Duration(writes), purseFull)          // longer is not the write's: the process, or the machine, stood still
	p.left = max(-purseFull, p.left-each*time.Duration(writes)) // a start takes more than there is (policy/rescue.go)
	p.cost = max(time.Microsecond, p.cost+(each-p.cost)/costMemory)
}

// delays are the latest delays from the begin of a throttle to its end by a refill.
type delays struct {
	ring  []time.Duration
	count int64
}

func (d *delays) add(delay time.Duration) {
	if len(d.ring) < turnsKept {
		d.ring = append(d.ring, delay)
	} else {
		d.ring[d.count%turnsKept] = delay
	}
	d.count++
}
