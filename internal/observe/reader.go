// Package observe reads the limits and counters of the control groups that are due. It writes nothing.
//
// # Problem
//
// A node has hundreds of containers, most of which are idle at most times, and reading a file costs ten microseconds.
// Still, decisions need fresh readings.
//
// # Approach
//
// Each group is read at an interval that depends on the last decisions about it (Attention): every 90 ms where its use
// may be near the limit (with throttle events, of a long period less often), every 30 s where events report that. The
// files of the limit are read when inotify reports a write, and at long intervals. Idle pods are skipped (idle.go).
//
// # Known limits
//
// The files and counters of a group and the use of the node are read at slightly different instants.
package observe

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"
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
	// Busy is the CPU time that the whole machine has used.
	Busy() (time.Duration, error)
	// Threads returns the CPU time of each of these threads that still exists.
	Threads(tids []int) map[int]time.Duration
}

// World is the observations of one turn.
type World struct {
	Pods []Pod
	Gone []*Group
}

// Pod is a group with containers in it, or containers without a pod.
type Pod struct {
	Group      *Group // nil: the containers have no pod
	Own        bool   // its limit applies to all its containers together (workload.Pod)
	Namespace  string // "" if unknown
	Ceiling    float64
	Containers []*Group
}

// Reader reads the groups and keeps the last readings.
type Reader struct {
	Tree  *cgroup.Tree
	Host  Host
	Clock func() time.Time
	// WhyPaused says why a group is kept at its limit, whatever its strategy; "": it is not.
	WhyPaused func(group string, now time.Time) string
	// Extra is what our sched_ext scheduler counted for a group in addition to the kernel.
	Extra func(inode uint64) cpu.Counters
	// Failed is called with the error of a group's reading, nil where it succeeded.
	Failed func(g *Group, err error)
	// Subscribed: throttle events are on.
	Subscribed bool
	// Yield is called between two pods: another pod may be read meanwhile.
	Yield func()
	// Refreshed is when Refresh last made a turn read every group.
	Refreshed time.Time
	// Looks counts readings.
	Looks int64

	groups     map[workload.ID]*Group
	paths      map[string]workload.ID
	started    time.Time
	turn       int64
	present    int            // groups that exist in this turn
	visited    []*Group       // those of them that are not in a skipped pod; one that was answered meanwhile twice
	idleDue    time.Time      // when the first of the skipped pods is due
	snapshot   []workload.Pod // of the last turn
	idlePods   []*Group       // by place in the snapshot: the pods that are idle
	all        bool           // the next turn may read all idle pods
	sweeps     int            // idle pods that may still be read in this turn
	starts     startBudgets
	ceilings   map[string]float64
	ceilingsAt time.Time
}

// New makes a reader without groups.
func New(r Reader) *Reader {
	r.started, r.starts = r.Clock(), startBudgets{}
	r.groups, r.paths = map[workload.ID]*Group{}, map[string]workload.ID{}
	return &r
}

// Groups returns all groups, by identity. The caller must not modify the map.
func (r *Reader) Groups() map[workload.ID]*Group { return r.groups }

// At returns the group with this path; nil: there is none.
func (r *Reader) At(group string) *Group { return r.groups[r.paths[group]] }

// Family lists the path of a container, or of a pod and its containers.
func (r *Reader) Family(group string) []string {
	paths := []string{group}
	of := r.At(group)
	if of == nil || of.Level != LevelPod {
		return paths
	}
	for _, g := range r.groups {
		if g.Level == LevelContainer && g.Pod == of.Pod && workload.Under(g.Path, group) {
			paths = append(paths, g.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Renew forgets which pods are idle: the next turn reads all pods.
func (r *Reader) Renew() { r.snapshot = nil }

// Read reads the groups that are due.
func (r *Reader) Read(now time.Time, pods []workload.Pod) World {
	if !workload.Same(pods, r.snapshot) {
		r.snapshot, r.idlePods = pods, make([]*Group, len(pods))
		groups := 0
		for i := range pods {
			groups += pods[i].Groups()
		}
		r.Tree.KeepOnly(max(groups, fewFiles)) // see keepOpen
		r.Tree.KeepOpen("/")                   // its use is the machine's
	}
	r.sweeps, r.all = r.sweepsIn(len(pods)), false
	r.turn++
	r.present, r.visited, r.idleDue = 0, nil, now.Add(IdleEvery)
	var w World
	for i := range pods {
		r.Yield()
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

// ReadPod reads one pod; false where no container of it can be read.
func (r *Reader) ReadPod(now time.Time, p workload.Pod) (Pod, bool) {
	pod := Pod{Own: p.Own, Namespace: p.Namespace}
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
			g.Around = r.scope(now, &c, &p)
			g.readies(now, g.Around)
			g.readies(now, pod.Group)
			pod.Containers = append(pod.Containers, g)
		}
		if outermost == "" {
			outermost = c.Path
		}
	}
	pod.Ceiling = r.ceiling(now, outermost)
	return pod, len(pod.Containers) > 0
}

// scope reads the scope of a container, which throttles the container as a pod does; nil: it has none. The declared
// limit of the container is also that of the scope; where systemd has rounded it up, the scope's limit is the value of
// its file.
func (r *Reader) scope(now time.Time, c *workload.Container, p *workload.Pod) *Group {
	if c.Scope.Path == "" {
		return nil
	}
	scope := workload.Container{ID: c.Scope, Name: "scope of " + c.Name, Strategy: c.Strategy, Runtime: "pod"}
	scope.Declared = c.Declared
	g := r.group(now, scope, LevelPod, p)
	if g != nil && g.Declared != nil && g.Declared.Bandwidth.Over(g.Disk.Period) != g.Disk.Quota {
		g.Declared = nil
	}
	return g
}

// group reads one group if it is due; nil if it is gone or could never be read.
func (r *Reader) group(now time.Time, c workload.Container, level Level, pod *workload.Pod) *Group {
	g := r.groups[c.ID]
	if g == nil {
		if _, known := r.paths[c.Path]; known { // a new group with the path of an old one
			r.Tree.Forget(c.Path)
		}
		g = &Group{Since: now, old: r.turn <= 1}
		r.groups[c.ID], r.paths[c.Path] = g, c.ID
	}
	why := r.WhyPaused(c.Path, now)
	if why == "" && c.Paused {
		why = "kept at the limit: a resize of its pod is under way"
	}
	if c.Strategy != g.Strategy || why != g.WhyPaused {
		g.Stale(now)
	}
	g.Container, g.Level, g.Pod, g.WhyPaused = c, level, pod.Name, why
	counted := g.seen == r.turn || r.Skipped(g)
	g.wakened()
	switch err := r.read(now, g, pod); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		// Kept: were the group forgotten while our quota is in its file, that would later be taken for its limit.
		g.Looked, g.Due = false, now.Add(IdleEvery) // soon: the error may be transient
		r.Failed(g, err)
	case g.Looked:
		r.Failed(g, nil)
	}
	r.visited = append(r.visited, g)
	if g.seen = r.turn; !counted {
		r.present++
	}
	if g.Disk.Period == 0 {
		return nil
	}
	g.Starts = r.starting(now, g, pod.Path)
	return g
}

// read updates a group: its files and counters, each if due.
func (r *Reader) read(now time.Time, g *Group, pod *workload.Pod) error {
	g.Looked = false
	if now.Sub(g.DiskAt) >= r.reread(now, g) {
		disk, err := r.Tree.Bandwidth(g.Path)
		if err != nil {
			return err
		}
		// A pod whose container had processes has them too. On v1 the kernel shows that only by lists, in each group.
		if g.Ready = g.ID == pod.ID && slices.ContainsFunc(pod.Containers, r.ready); !g.Ready {
			if g.Ready, err = r.Tree.Populated(g.Path); err != nil {
				return err
			}
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

// ready says whether a container had processes when its files were last read.
func (r *Reader) ready(c workload.Container) bool {
	g := r.groups[c.ID]
	return g != nil && g.Ready
}

// idle says whether cpu.idle of a group or of one above it is set.
func (r *Reader) idle(group string) bool {
	for ; group != "/" && group != "."; group = path.Dir(group) {
		if idle, err := r.Tree.Idle(group); err == nil && idle {
			return true
		}
	}
	return false
}

// readUsage adds the CPU time used to a reading where cpu.stat lacks it. It is not needed for a group at its limit
// whose period timer has not expired: the group has not been throttled, and its use is read after the next expiry.
func (r *Reader) readUsage(g *Group, c *cpu.Counters, at time.Time) error {
	last := g.Reading.Counters
	switch {
	case c.HasUsage:
	case g.Disk.Limited() && !g.Watched && !g.Reading.At.IsZero() && c.Periods == last.Periods:
		c.Usage, c.HasUsage = last.Usage, last.HasUsage
	default:
		usage, err := r.Tree.Usage(g.Path)
		if errors.Is(err, fs.ErrNotExist) { // a group of the cpu hierarchy alone
			c.Usage = r.threadUsage(g, at)
			return nil
		}
		c.Usage, c.HasUsage = usage, err == nil
		return err
	}
	return nil
}

// Counters reads the counters of a group now. hadUsage says that the reading to compare with contains the CPU time
// used.
func (r *Reader) Counters(g *Group, hadUsage bool) (cpu.Counters, error) {
	c, err := r.Tree.Counters(g.Path)
	if err == nil && !c.HasUsage && hadUsage {
		c.Usage = r.threadUsage(g, r.Clock())
	}
	return c, err
}

// Learn takes over the values of quotas and bursts that were written, and makes the next turn read the files again. A
// value that could not be read back counts too: the next reading may fail as well, and the old value is not the file's.
func (r *Reader) Learn(results []plan.Result) {
	for _, x := range results {
		g := r.groups[x.Change.Cgroup]
		if g == nil || x.Change.Refill || !x.Change.Knob.OfBandwidth() {
			continue
		}
		g.DiskAt = time.Time{}
		g.MarkDue()
		if x.Outcome == plan.Applied {
			x.InForce = cmp.Or(x.InForce, x.Change.To)
		}
		g.Disk, _ = x.Bandwidth(g.Disk)
	}
}

// drop forgets the groups that no longer exist, and returns them.
func (r *Reader) drop() (list []*Group) {
	if r.present == len(r.groups) {
		return nil
	}
	var free []string // paths that no other group has
	for id, g := range r.groups {
		if g.seen == r.turn || r.Skipped(g) {
			continue
		}
		list = append(list, g)
		delete(r.groups, id)
		if r.paths[id.Path] == id {
			delete(r.paths, id.Path)
			free = append(free, id.Path)
		}
	}
	for _, path := range free {
		r.Yield()
		if _, taken := r.paths[path]; !taken { // meanwhile
			r.Tree.Forget(path)
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
