package reserve

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// firstGap is the first gap of the ledger for CPUs.
const firstGap = 15 * time.Second

// world is a tree of groups that keeps the kernel's rules for cpuset.cpus. As in the agent, a ledger knows whose value
// stands in a file, and makes changes of intents.
type world struct {
	t       testing.TB
	v2      bool
	now     time.Time
	topo    cpu.Topology
	sets    map[string]cpu.Set
	inode   map[string]uint64
	next    uint64
	state   *State
	ledger  *ledger.Ledger
	events  map[string]ledger.Event // of the last turn, by group
	rules   strategy.Reserve
	asking  []Container
	writes  int
	refuse  string            // the kernel refuses CPUs of this group
	fences  map[string]string // of partitions: knob and group to what stands
	broken  string            // a partition that the kernel calls invalid
	noQuota map[string]bool   // groups without a quota
	owner   string
	apart   cpu.Set
	shield  string // the group of the root's tasks
}

func newWorld(t testing.TB, v2 bool, cpus int) *world {
	w := &world{t: t, v2: v2, now: time.Unix(1000, 0), topo: shape{1, 1, 1, cpus, 1}.topology(),
		sets:  map[string]cpu.Set{},
		inode: map[string]uint64{}, state: new(State), ledger: ledger.New(), rules: strategy.Reserve{
			Policy: strategy.ReserveCPUSet, MinShared: 1}}
	return w
}

// make makes groups as a runtime does: on v1 with a copy of the parent's CPUs.
func (w *world) make(groups ...string) {
	for _, g := range groups {
		w.next++
		w.inode[g] = w.next
		w.sets[g] = nil
		if !w.v2 {
			w.sets[g] = w.of(path.Dir(g))
		}
	}
}

func (w *world) remove(group string) {
	delete(w.sets, group)
	w.asking = slices.DeleteFunc(w.asking, func(c Container) bool { return c.Path == group })
}

func (w *world) of(group string) cpu.Set {
	if group == "/" {
		return w.topo.Set()
	}
	return w.sets[group]
}

// effective is what tasks of a group may use.
func (w *world) effective(group string) cpu.Set {
	if group == "/" {
		return w.topo.Set()
	}
	outer := w.effective(path.Dir(group))
	if own := w.sets[group].And(outer); len(own) > 0 || !w.v2 {
		return own
	}
	return outer
}

// ask opts a group in.
func (w *world) ask(group string, request, limit float64, strict bool) {
	w.asking = append(w.asking, Container{ID: workload.ID{Path: group, Inode: w.inode[group]}, Request: request,
		Limit: limit, Strict: strict})
}

// turn takes one, and carries it out under the kernel's rules.
func (w *world) turn() Output {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	in := Input{Rules: w.rules, Inherits: w.v2, Topology: w.topo, Containers: w.asking, Isolated: w.apart,
		Partitioned: w.apart, Owner: w.owner, Partitions: w.fences != nil, Shield: w.shield}
	w.events = map[string]ledger.Event{}
	paths := slices.Sorted(maps.Keys(w.sets))
	for _, g := range paths {
		in.Groups = append(in.Groups, w.see(g))
	}
	for _, k := range w.ledger.Known(func(k plan.Key) bool { return !slices.Contains(paths, k.Path) }) {
		w.ledger.Drop(k.ID, k.Knob)
	}
	out := w.state.Decide(in)
	for _, i := range out.Intents {
		if i.Knob != plan.CPUs {
			w.ledger.See(w.now, i.Key, ledger.Sight{InFile: w.held(i.Path, i.Knob)})
		}
	}
	all := func(plan.Key) bool { return true }
	changes := append(w.ledger.Plan(w.now, out.Intents), w.ledger.Restores(w.now, out.Intents, all)...)
	w.ledger.Learn(w.now, w.carryOut(changes))
	return out
}

// see has the ledger compare what stands with what is known.
func (w *world) see(group string) Group {
	key := func(knob plan.Knob) plan.Key {
		return plan.Key{ID: workload.ID{Path: group, Inode: w.inode[group]}, Knob: knob}
	}
	held := w.held(group, plan.CPUs)
	e, known := w.ledger.Entry(key(plan.CPUs))
	if !known && !w.v2 {
		up := path.Dir(group)
		if baseline, copied := w.ledger.Copied(plan.Key{ID: workload.ID{Path: up, Inode: w.inode[up]}, Knob: plan.CPUs},
			held); copied {
			w.ledger.Adopt(key(plan.CPUs), baseline, held)
		}
	}
	sheds := !w.v2 && len(set(w.t, string(e.InFile)).Minus(w.sets[group]).And(w.topo.Set())) == 0
	w.events[group] = w.ledger.See(w.now, key(plan.CPUs), ledger.Sight{InFile: held, Sheds: sheds})
	e, _ = w.ledger.Entry(key(plan.CPUs))
	g := Group{ID: key("").ID, CPUs: w.sets[group], Baseline: set(w.t, string(e.Baseline)), Blocked: e.Blocked(w.now),
		Problem: strings.TrimPrefix(e.Problem, "refused: "), NoQuota: w.noQuota[group]}
	switch {
	case e.State == ledger.Foreign:
		g.Baseline = g.CPUs
	case !e.Ours():
		g.Lost = g.Baseline.Minus(g.CPUs)
	}
	g.ExclusiveBaseline = set(w.t, string(w.held(group, plan.Exclusive)))
	if e, _ := w.ledger.Entry(key(plan.Exclusive)); e.Ours() {
		g.ExclusiveBaseline = set(w.t, string(e.Baseline))
	}
	for _, knob := range []plan.Knob{plan.Exclusive, plan.Partition} {
		if _, known := w.ledger.Entry(key(knob)); !known {
			continue
		}
		w.ledger.See(w.now, key(knob), ledger.Sight{InFile: w.held(group, knob)})
		if group == w.broken && knob == plan.Partition && w.held(group, knob) == "root" {
			w.ledger.Learn(w.now, []plan.Result{{Change: plan.Change{Cgroup: g.ID, Knob: knob}, Outcome: plan.Refused}})
		}
		e, _ := w.ledger.Entry(key(knob))
		if e.Ours() && knob == plan.Exclusive {
			g.Exclusive = set(w.t, string(e.InFile)).Minus(set(w.t, string(e.Baseline)))
		}
		g.Partition = g.Partition || e.Ours() && knob == plan.Partition
		if why := e.Blocked(w.now); why != plan.Free {
			g.Unpartitions = why
		}
	}
	return g
}

// held is what a file holds.
func (w *world) held(group string, knob plan.Knob) plan.Value {
	if knob == plan.CPUs {
		return plan.Value(w.sets[group].String())
	}
	held, ok := w.fences[string(knob)+" "+group]
	if !ok && knob == plan.Partition {
		return plan.Member
	}
	return plan.Value(held)
}

// idle says whether nothing of ours stands.
func (w *world) idle() bool { return len(w.ledger.Ours(func(plan.Key) bool { return true })) == 0 }

func (w *world) carryOut(changes []plan.Change) []plan.Result {
	w.t.Helper()
	var results []plan.Result
	var steps []plan.Change
	for _, c := range changes {
		steps = append(steps, w.steps(c)...)
	}
	plan.Order(steps)
	for _, c := range steps {
		r := plan.Result{Change: c, Outcome: plan.Applied, InForce: c.To}
		switch {
		case c.Knob == plan.Exclusive || c.Knob == plan.Partition:
			r = w.fence(c, r)
		case string(c.From) != w.sets[c.Cgroup.Path].String():
			w.t.Fatalf("%+v, but there is %s", c, w.sets[c.Cgroup.Path])
		case c.Cgroup.Path == w.refuse:
			r.Outcome, r.InForce, r.Err = plan.Refused, c.From, "the kernel does not like it"
		default:
			to := set(w.t, string(c.To))
			if c.Restore && !w.v2 { // as apply does: what can be had
				to = to.And(w.of(path.Dir(c.Cgroup.Path)))
				r.InForce = plan.Value(to.String())
			}
			w.write(c.Cgroup.Path, to)
			w.writes++
		}
		results = append(results, r)
	}
	return results
}

// steps are one change, or on v1 two where CPUs are added and taken, as in apply.
func (w *world) steps(c plan.Change) []plan.Change {
	if c.Knob != plan.CPUs || w.v2 {
		return []plan.Change{c}
	}
	from, to := set(w.t, string(c.From)).And(w.topo.Set()), set(w.t, string(c.To)).And(w.topo.Set())
	if from.Within(to) || to.Within(from) {
		return []plan.Change{c}
	}
	first, last := c, c
	first.To, first.Restore = plan.Value(from.Union(to).String()), false
	last.From = first.To
	return []plan.Change{first, last}
}

// write keeps v1's rules: within the parent, about the children, never empty.
func (w *world) write(group string, to cpu.Set) {
	w.t.Helper()
	if !w.v2 && !(len(to) > 0 && to.Within(w.of(path.Dir(group)))) {
		w.t.Fatalf("EACCES or ENOSPC: %s to %s, the parent has %s", group, to, w.of(path.Dir(group)))
	}
	for child, theirs := range w.sets {
		if !w.v2 && path.Dir(child) == group && !theirs.Within(to) {
			w.t.Fatalf("EBUSY: %s to %s, %s has %s", group, to, child, theirs)
		}
	}
	w.sets[group] = to
}

// exclusive checks that nobody but its owner, and those packed with it, runs on a CPU that is somebody's own.
func (w *world) exclusive(out Output) {
	w.t.Helper()
	for _, sh := range out.Shares {
		if got := w.effective(sh.Path); !got.Equal(sh.CPUs) {
			w.t.Fatalf("%s runs on %s, not on %s: %+v\n%+v\n%v", sh.Path, got, sh.CPUs, out, w.asking, w.sets)
		}
		for g := range w.sets {
			packed := slices.ContainsFunc(out.Shares, func(o Share) bool {
				return (o.Path == g || strings.HasPrefix(g, o.Path+"/") || strings.HasPrefix(o.Path, g+"/")) &&
					o.Own.Equal(sh.Own)
			})
			if packed || strings.HasPrefix(sh.Path, g+"/") {
				continue
			}
			if both := w.effective(g).And(sh.Own); len(both) > 0 {
				w.t.Fatalf("%s may run on %s, which are %s's own", g, both, sh.Path)
			}
		}
	}
}

func versions(t *testing.T, test func(t *testing.T, v2 bool)) {
	for _, v2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "v1", true: "v2"}[v2], func(t *testing.T) { test(t, v2) })
	}
}
