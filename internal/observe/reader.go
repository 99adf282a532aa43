// Package observe reads what control groups hold and have used, as far as it is due, and writes nothing.
//
// # Problem
//
// A node has hundreds of containers, most of which do nothing at most times, and each file that is read costs ten
// microseconds. What a decision needs must be fresh all the same.
//
// # Approach
//
// Each group is read at an interval that hangs on what decisions say of it (Attention): every 90 ms where a limit may be
// near, every 30 s where throttle events tell of what matters. The limit's files are read again where inotify reports a write,
// and once in a while. Pods in which nothing moves are skipped altogether (idle.go).
//
// # Known limits
//
// What is read of a group is of slightly different instants: its files, its counters, the node's use.
package observe

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/workload"
)

// Host measures the machine.
type Host interface {
	Online() (int, error)
	// Busy is the CPU time that all of the machine has used.
	Busy() (time.Duration, error)
	// Threads tells the CPU time of each of these threads that still lives.
	Threads(tids []int) map[int]time.Duration
}

// World is what one turn knows.
type World struct {
	Pods []Pod
	Gone []*Group
}

// Pod is a group with containers in it, or just containers.
type Pod struct {
	Group      *Group // nil: the containers stand alone
	Own        bool   // its limit is one for all its containers together (workload.Pod)
	Ceiling    float64
	Containers []*Group
	Scopes     []Scope
}

// Scope is the group around that of a container, which has the container's limit too (workload.Container).
type Scope struct {
	*Group
	Of workload.ID // the container
}

// Reader keeps what was read.
type Reader struct {
	Tree  *cgroup.Tree
	Host  Host
	Clock func() time.Time
	// Borrowed: the tree's open files are another agent's, and none is kept open.
	Borrowed bool
	// Paused says whether a container is held at its limits, whatever its owner asks for.
	Paused func(group string, now time.Time) bool
	// Extra is what a scheduler of ours has counted of a group beside the kernel.
	Extra func(inode uint64) cpu.Counters
	// Failed takes what a reading of a group came to, nil where it can be read again.
	Failed func(g *Group, err error)
	// Subscribed: there are throttle events.
	Subscribed bool
	// Looks counts readings.
	Looks int64

	groups     map[workload.ID]*Group
	paths      map[string]workload.ID
	started    time.Time
	turn       int64
	present    int            // groups that are there in this turn
	snapshot   []workload.Pod // of the last turn
	idlePods   []*Group       // the pods of the snapshot that are idle
	sweeps     int            // idle pods that may yet be read in this turn
	starts     startBudgets
	ceilings   map[string]float64
	ceilingsAt time.Time
}

// New makes a reader that knows of no group.
func New(tree *cgroup.Tree, host Host, clock func() time.Time) *Reader {
	return &Reader{Tree: tree, Host: host, Clock: clock, started: clock(), groups: map[workload.ID]*Group{}, paths: map[string]workload.ID{}, starts: startBudgets{},
		Paused: func(string, time.Time) bool { return false }, Extra: func(uint64) cpu.Counters { return cpu.Counters{} },
		Failed: func(*Group, error) {}}
}

// Groups are all groups, by identity. The map is the reader's: it is not to be written to.
func (r *Reader) Groups() map[workload.ID]*Group { return r.groups }

// At is the group of a path; nil: there is none.
func (r *Reader) At(group string) *Group { return r.groups[r.paths[group]] }

// Renew has all that is remembered of idle pods forgotten: each is read in the next turn.
func (r *Reader) Renew() { r.snapshot = nil }

// Turn counts the turns.
func (r *Reader) Turn() int64 { return r.turn }

// Read reads the groups that are due; with all, every pod that is idle, too.
func (r *Reader) Read(now time.Time, pods []workload.Pod, all bool) World {
	if !workload.Same(pods, r.snapshot) {
		r.snapshot, r.idlePods = pods, make([]*Group, len(pods))
		r.keepFew(pods)
	}
	r.sweeps = r.sweepsIn(len(pods), all)
	r.turn++
	r.present = 0
	var w World
	for i := range pods {
		if r.skipsIdle(now, i, pods[i].Groups()) {
			continue
		}
		if pod, ok := r.ReadPod(now, pods[i]); ok {
			w.Pods = append(w.Pods, pod)
		}
		r.backOffIdle(now, i, &pods[i])
	}
	w.Gone = r.drop()
	return w
}

// ReadPod reads one pod; false where nothing of it can be read.
func (r *Reader) ReadPod(now time.Time, p workload.Pod) (Pod, bool) {
	pod := Pod{Own: p.Own}
	outermost := p.Path
	if p.Path != "" {
		first := workload.Container{ID: p.ID, Name: p.Name, Request: p.Request, Declared: p.Declared, Runtime: "pod"}
		if len(p.Containers) > 0 {
			first.Strategy = p.Containers[0].Strategy
		}
		if pod.Group = r.group(now, first, LevelPod, &p); pod.Group == nil {
			return pod, false
		}
	}
	pod.Containers = make([]*Group, 0, len(p.Containers))
	for _, c := range p.Containers {
		if g := r.group(now, c, LevelContainer, &p); g != nil {
			pod.Containers = append(pod.Containers, g)
			r.scope(now, &c, &p, &pod)
		}
		if outermost == "" {
			outermost = c.Path
		}
	}
	pod.Ceiling = r.ceiling(now, outermost)
	return pod, len(pod.Containers) > 0
}

// scope reads the scope of a container, which throttles the container as a pod does. The owner declares the container's limit for
// it; where systemd has rounded that up, what is in its file is its limit.
func (r *Reader) scope(now time.Time, c *workload.Container, p *workload.Pod, pod *Pod) {
	if c.Scope.Path == "" {
		return
	}
	scope := workload.Container{ID: c.Scope, Name: "scope of " + c.Name, Strategy: c.Strategy, Declared: c.Declared, Runtime: "pod"}
	g := r.group(now, scope, LevelPod, p)
	if g == nil {
		return
	}
	if g.Declared != nil && g.Declared.Bandwidth.Over(g.Disk.Period) != g.Disk.Quota {
		g.Declared = nil
	}
	pod.Scopes = append(pod.Scopes, Scope{g, c.ID})
}

// group reads one group, when it is due; nil when it is gone, or could never be read.
func (r *Reader) group(now time.Time, c workload.Container, level Level, pod *workload.Pod) *Group {
	g := r.groups[c.ID]
	if g == nil {
		if _, known := r.paths[c.Path]; known { // another group of that name
			r.forgetFiles(c.Path)
		}
		g = &Group{Since: now, old: r.turn <= 1}
		r.groups[c.ID], r.paths[c.Path] = g, c.ID
	}
	c.Paused = c.Paused || r.Paused(c.Path, now)
	if c.Strategy != g.Strategy || c.Paused != g.Container.Paused {
		g.Stale(now)
	}
	g.Container, g.Level, g.Pod = c, level, pod.Name
	g.wakened()
	switch err := r.read(now, g); {
	case Gone(err):
		return nil
	case err != nil:
		// What was read last stands: a group that was forgotten with our quota in its file would be known again with that
		// for its limit.
		g.Looked, g.Due = false, now.Add(IdleEvery) // soon: it may be a passing trouble
		r.Failed(g, err)
	case g.Looked:
		r.Failed(g, nil)
	}
	g.seen = r.turn
	r.present++
	if g.Disk.Period == 0 {
		return nil
	}
	g.Starts = r.starting(now, g, pod.Path)
	return g
}

// read brings what is known of a group up to date, as far as it is due.
func (r *Reader) read(now time.Time, g *Group) error {
	g.Looked = false
	if now.Sub(g.DiskAt) >= r.reread(g) {
		disk, err := r.Tree.Bandwidth(g.Path)
		if err != nil {
			return err
		}
		if g.Ready, err = r.Tree.Populated(g.Path); err != nil {
			return err
		}
		g.Disk, g.DiskAt = disk, now
		if g.Ready && g.born.IsZero() {
			g.born = now
		}
		g.Idle = g.Offline() && r.idle(g.Path)
	}
	if now.Before(g.Due) {
		return nil
	}
	counters, err := r.Tree.Stat(g.Path)
	if err != nil {
		return err
	}
	at := r.Clock()
	if err := r.readUsage(g, &counters, at); err != nil {
		return err
	}
	counters = counters.Plus(r.Extra(g.Inode))
	if counters != g.Reading.Counters || g.Reading.At.IsZero() {
		g.moved = at
	}
	g.Looked, g.Reading = true, sample.Reading{At: at, Counters: counters}
	r.Looks++
	return nil
}

// idle says whether the kernel keeps a group, or one above it, behind all others (cpu.idle).
func (r *Reader) idle(group string) bool {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if idle, err := r.Tree.Idle(group); err == nil && idle {
			return true
		}
	}
	return false
}

// readUsage completes a reading with the CPU time used, where cpu.stat does not have it. Nothing depends on that of a group at
// its limit whose period timer has not ticked: it has not been throttled, and what it has begun to use is read at the tick.
func (r *Reader) readUsage(g *Group, c *cpu.Counters, at time.Time) error {
	last := g.Reading.Counters
	switch {
	case c.HasUsage:
	case g.Disk.Limited() && !g.Watched && !g.Reading.At.IsZero() && c.Periods == last.Periods:
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	default:
		usage, err := r.Tree.Usage(g.Path)
		if errors.Is(err, fs.ErrNotExist) { // a group of the cpu hierarchy alone
			c.Usage = g.threads.usage(r.Tree, r.Host, g.Path, at)
			return nil
		}
		c.Usage, c.HasUsage = usage, err == nil
		return err
	}
	return nil
}

// Counters reads what the kernel has counted of a group now. hadUsage says that the reading that it is compared with had the CPU
// time used.
func (r *Reader) Counters(g *Group, hadUsage bool) (cpu.Counters, error) {
	c, err := r.Tree.Counters(g.Path)
	if err == nil && !c.HasUsage && hadUsage {
		c.Usage = g.threads.usage(r.Tree, r.Host, g.Path, r.Clock())
	}
	return c, err
}

// Learn takes what was read back after writes of quotas and bursts, and has the files read again before the next decision.
func (r *Reader) Learn(results []plan.Result) {
	for _, x := range results {
		g := r.groups[x.Change.Cgroup]
		if g == nil || x.Change.Refill || x.Change.Knob != plan.Quota && x.Change.Knob != plan.Burst {
			continue
		}
		g.DiskAt = time.Time{}
		g.MarkDue()
		switch d, err := x.InForce.Time(); {
		case err != nil:
		case x.Change.Knob == plan.Burst:
			g.Disk.Burst = d
		default:
			g.Disk.Quota = d
		}
	}
}

// drop forgets the groups that were not there in this turn, and returns them.
func (r *Reader) drop() (list []*Group) {
	if r.present == len(r.groups) {
		return nil
	}
	for id, g := range r.groups {
		if g.seen == r.turn || r.Skipped(g) {
			continue
		}
		list = append(list, g)
		delete(r.groups, id)
		if r.paths[id.Path] == id {
			delete(r.paths, id.Path)
			r.forgetFiles(id.Path)
		}
	}
	return list
}

// ceiling is the number of CPUs that the nearest ancestor with a finite quota allows.
func (r *Reader) ceiling(now time.Time, group string) float64 {
	if now.Sub(r.ceilingsAt) >= filesEvery {
		r.ceilings, r.ceilingsAt = map[string]float64{}, now
	}
	return r.ceilingAt(path.Dir(group))
}

func (r *Reader) ceilingAt(dir string) float64 {
	if dir == "/" || dir == "." {
		return math.Inf(1)
	}
	cpus, known := r.ceilings[dir]
	if !known {
		if b, err := r.Tree.Bandwidth(dir); err == nil && b.Limited() {
			cpus = b.CPUs()
		} else {
			cpus = r.ceilingAt(path.Dir(dir))
		}
		r.ceilings[dir] = cpus
	}
	return cpus
}
