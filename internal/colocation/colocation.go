// Package colocation gathers the inputs of decisions on online and offline work: the tree of groups, the values of
// files and tasks, and the use of offline work. Package policy decides. The ledger compares the values of the files.
// The package also keeps what the status shows. It writes no file, and Decide loads no scheduler: Schedule does.
package colocation

import (
	"errors"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// colocateEvery is how often the knobs of the priority are read, and levelEvery how often the groups around them.
// unclassifiedAfter is how long a group may exist before it counts as unclassified: a pod's group is made before the
// pod is reported.
const (
	colocateEvery     = time.Second
	levelEvery        = 2 * time.Second // search for unclassified groups
	unclassifiedAfter = 3 * time.Second
)

// Agent is what this package needs of the agent.
type Agent interface {
	// Bandwidth is the group of a quota or burst file, if the agent manages that group; else nil.
	Bandwidth(plan.Key) *observe.Group
	// Outranked says whether the quota of a group has a reason of a higher priority than suppression.
	Outranked(now time.Time, group string) bool
	// Topology is the CPUs that offline work may be bound to. taken says why it may be bound to none: containers may
	// have exclusive CPUs.
	Topology() (on cpu.Topology, taken string, err error)
	// Saw records an event of a quota or burst file.
	Saw(key plan.Key, held plan.Value, event ledger.Event)
	// Adopt and Forget bring the journal in step with the ledger, before the turn's first write.
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value)
	Forget(id workload.ID, knob plan.Knob)
	// Yield lets waiting throttles be answered. Outside does, too, while do runs, which must use neither the ledger nor
	// the agent.
	Yield()
	Outside(do func())
}

// Colocation is the state of colocation.
type Colocation struct {
	Tree      *cgroup.Tree
	Host      observe.Host
	Tasks     Tasks // nil: no knob of tasks is set
	Log       *slog.Logger
	Reader    *observe.Reader
	Ledger    *ledger.Ledger
	Scheduler *schedext.Keeper
	Machine   policy.Machine // the mechanisms that the machine supports
	Agent     Agent

	at           time.Time // of the last decision
	claims       bool      // files are claimed since then
	pods         []workload.Pod
	requested    strategy.Colocation
	mechanism    strategy.Mechanism
	why          string
	levels       []policy.Level
	leveled      time.Time
	exposed      []string
	missing      []string        // groups without the file
	inForce      map[string]bool // offline groups, by path
	unclassified map[string]time.Time
	searched     map[string]bool // groups searched for unclassified groups
	tasksAt      time.Time       // when tasks were read
	usage        rankUsage
	suppressor   suppressor
}

// New makes the state of an agent that starts.
func New(c Colocation) *Colocation {
	c.unclassified, c.searched, c.usage = map[string]time.Time{}, map[string]bool{}, newRankUsage()
	return &c
}

// Again makes the next turn decide anew.
func (c *Colocation) Again() { c.at = time.Time{} }

// Used adds the CPU time of a container of a rank since its last reading.
func (c *Colocation) Used(r strategy.Rank, used time.Duration) { c.usage.add(r, used) }

// Deprioritized says whether the kernel verifiably runs a group only after online work: by cpu.idle, set by any
// program, or by the mechanism. Neither is true of an exposed group, unless our scheduler is in force.
func (c *Colocation) Deprioritized(g *observe.Group) bool {
	if c.exposes(g.Path) && !c.Scheduler.InForce() {
		return false
	}
	return g.Idle || g.Offline() && c.deprioritized(g.Path)
}

// exposes says whether a group is exposed (policy.Exposed) or in an exposed one.
func (c *Colocation) exposes(group string) bool {
	return slices.ContainsFunc(c.exposed, func(level string) bool {
		return group == level || workload.Under(group, level)
	})
}

// deprioritized says whether the mechanism is verified in force for a group.
func (c *Colocation) deprioritized(group string) bool {
	for ; group != "/" && group != "." && len(c.inForce) > 0; group = path.Dir(group) {
		if in, known := c.inForce[group]; known {
			return in
		}
	}
	return false
}

// due says whether this turn decides.
func (c *Colocation) due(now time.Time, pods []workload.Pod, requested strategy.Colocation) bool {
	if !requested.Enabled() && !c.claims && !c.Scheduler.Busy() {
		c.mechanism, c.why, c.exposed, c.missing, c.inForce = strategy.MechanismNone, "not requested", nil, nil, nil
		return false
	}
	return c.news(pods, requested) || now.Sub(c.at) >= colocateEvery
}

// news says whether the containers or the configuration have changed since the last decision.
func (c *Colocation) news(pods []workload.Pod, requested strategy.Colocation) bool {
	return !workload.Same(pods, c.pods) || requested != c.requested
}

// Decide makes the intents by which the kernel runs online work before offline work, and shows the ledger the values of
// the files.
func (c *Colocation) Decide(now time.Time, pods []workload.Pod, requested strategy.Colocation) ledger.Want {
	if !c.due(now, pods, requested) {
		return ledger.Want{}
	}
	news := c.news(pods, requested)
	if news || now.Sub(c.leveled) >= levelEvery {
		c.level(now, pods, requested)
	}
	if news || now.Sub(c.tasksAt) >= TasksEvery {
		c.tasksAt = now
	}
	c.at, c.pods, c.requested = now, pods, requested
	c.usage.mark(now)
	machine := c.machine(now, requested.Mechanism)
	mechanism, why := policy.Choose(requested.Mechanism, machine)
	if no := policy.NoSlices(mechanism, requested.Slice, machine); no != "" {
		why += "; " + no
	}
	if mechanism != c.mechanism || why != c.why {
		c.Log.Info("co-location", "mechanism", mechanism, "why", why)
	}
	c.mechanism, c.why = mechanism, why
	intents := policy.Colocate(mechanism, requested.Slice, c.levels, machine)
	intents = append(intents, c.suppress(now, requested.Suppress, c.levels)...)
	return ledger.Want{Intents: c.seeKnobs(now, intents), Of: c.Claims}
}

// Done records the results of writes to files that colocation claims.
func (c *Colocation) Done(k ledger.Want, results []plan.Result) {
	if k.Of == nil {
		return
	}
	c.logWrites(results)
	c.unclaimKnobs(k.Intents, results)
	holds := func(key plan.Key) bool { e, known := c.Ledger.Entry(key); return known && e.InForce() }
	c.inForce = policy.InForce(k.Intents, holds, c.exposed)
}

// Claims says whether colocation claims a file.
func (c *Colocation) Claims(key plan.Key) bool {
	e, _ := c.Ledger.Entry(key)
	return e.By == plan.ForColocation
}

// unclaimKnobs ends the claims on files without an intent that hold no value of ours.
func (c *Colocation) unclaimKnobs(intents []plan.Intent, results []plan.Result) {
	intended, restored := map[plan.Key]bool{}, map[plan.Key]bool{}
	for _, in := range intents {
		intended[in.Key] = true
	}
	for _, r := range results {
		restored[r.Change.Key()] = r.Change.Restore && r.Outcome != plan.Refused
	}
	c.claims = false
	for _, key := range c.Ledger.Claimed(plan.ForColocation) {
		e, _ := c.Ledger.Entry(key)
		late := restored[key] && key.Knob == plan.CPUs // a group below it may have copied our value meanwhile (v1)
		if intended[key] || late || e.Ours() && !restored[key] {
			c.claims = true
		} else if c.Ledger.Claim(key, plan.ForBandwidth); c.Agent.Bandwidth(key) == nil {
			c.Ledger.Drop(key.ID, key.Knob)
		}
	}
}

// level finds the groups at which the priority is set.
func (c *Colocation) level(now time.Time, pods []workload.Pod, requested strategy.Colocation) {
	c.leveled = now
	if !requested.Enabled() {
		c.levels, c.exposed = nil, nil
		return
	}
	var root *policy.TreeNode
	c.Agent.Outside(func() { root = c.tree(now, pods) })
	c.levels = policy.Levels(root)
	c.exposed = policy.Exposed(root, c.levels)
}

// seeKnobs shows the ledger the files with an intent or a claim. It returns the intents for files that exist.
func (c *Colocation) seeKnobs(now time.Time, intents []plan.Intent) []plan.Intent {
	keys := make([]plan.Key, 0, len(intents))
	for _, in := range intents {
		keys = append(keys, in.Key)
	}
	there := map[plan.Key]bool{}
	c.missing = nil
	for i, key := range append(keys, c.Ledger.Claimed(plan.ForColocation)...) {
		c.Agent.Yield()
		if _, seen := there[key]; !seen {
			there[key] = c.seeKnob(now, key, i < len(intents))
		}
	}
	return slices.DeleteFunc(intents, func(in plan.Intent) bool { return !there[in.Key] })
}

// seeKnob shows the ledger a file, and says whether the file exists.
func (c *Colocation) seeKnob(now time.Time, key plan.Key, intended bool) (there bool) {
	s, due, err := c.sight(now, key)
	inode, other := c.inode(key)
	switch {
	case err == nil && other == nil && inode == key.Inode:
		if due {
			c.saw(key, s.InFile, c.Ledger.See(now, key, s), intended)
		}
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(other, fs.ErrNotExist), other == nil && inode != key.Inode: // gone
		if errors.Is(err, fs.ErrNotExist) && other == nil && inode == key.Inode {
			c.missing = append(c.missing, key.Path)
		} else if key.Knob == plan.Idle { // the weight was claimed with it
			c.Agent.Forget(key.ID, plan.Weight)
		}
		c.Ledger.Drop(key.ID, key.Knob)
		c.Agent.Forget(key.ID, key.Knob)
		return false
	}
	c.Log.Debug("co-location", "cgroup", key.Path, "knob", key.Knob, "error", errors.Join(err, other))
	c.Ledger.Unread(key)
	_, known := c.Ledger.Entry(key)
	return known
}

// sight reads a file and makes the ledger's sight of it; tasks are read only when due.
func (c *Colocation) sight(now time.Time, key plan.Key) (s ledger.Sight, due bool, err error) {
	if key.Knob.OfTasks() {
		if _, known := c.Ledger.Entry(key); known && now.After(c.tasksAt) {
			return s, false, nil
		}
		c.Agent.Outside(func() { s.Tasks, err = c.countTasks(key) }) // a tenant may have as many as it likes
		return s, true, err
	}
	if g := c.Agent.Bandwidth(key); g != nil {
		disk, err := c.Tree.Bandwidth(g.Path)
		if err == nil {
			g.Disk = disk
		}
		return ledger.Bandwidth(g.Disk, g.Declared, key.Knob), true, err
	}
	s.InFile, err = apply.Read(c.Tree, key.Path, key.Knob)
	s.Follows = key.Knob == plan.Weight && policy.WeightByKubelet(key.Path)
	s.Sheds = c.sheds(key, s.InFile)
	return s, true, err
}

// sheds says whether the CPUs that left a file since its last sight are offline: the kernel has removed them (v1).
func (c *Colocation) sheds(key plan.Key, inFile plan.Value) bool {
	if key.Knob != plan.CPUs || c.Tree.Version() != cgroup.V1 {
		return false
	}
	e, _ := c.Ledger.Entry(key)
	had, _ := e.InFile.Set() // the ledger has it from a set
	has, _ := inFile.Set()
	left := had.Minus(has)
	if len(left) == 0 {
		return true
	}
	online, err := c.Tree.CPUs("/")
	return err == nil && len(left.And(online)) == 0
}

// inode is the inode of the group that has the knob now.
func (c *Colocation) inode(k plan.Key) (uint64, error) {
	if k.Knob == plan.CPUs {
		return c.Tree.CPUSetInode(k.Path)
	}
	return c.Tree.Inode(k.Path)
}

// saw logs other writers, and keeps the journal in step.
func (c *Colocation) saw(key plan.Key, found plan.Value, event ledger.Event, intended bool) {
	log := c.Log.With("cgroup", key.Path, "knob", key.Knob, "found", found)
	switch {
	case c.Agent.Bandwidth(key) != nil:
		c.Agent.Saw(key, found, event)
	case !intended:
	case event == ledger.Reset:
		log.Info("the owner has restored its value; ours is written again after a while")
		if key.Knob == plan.Idle { // the weight is the owner's as well now
			c.Agent.Forget(key.ID, plan.Weight)
		}
	case event == ledger.Overrode:
		log.Warn("another program wrote it: left alone")
		c.Agent.Forget(key.ID, key.Knob)
	}
}

// logWrites logs the results of writes, which are rare.
func (c *Colocation) logWrites(results []plan.Result) {
	for _, r := range results {
		log := c.Log.Info
		if r.Outcome == plan.Refused || r.Outcome == plan.Trampled {
			log = c.Log.Warn
		}
		log("co-location", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "from", r.Change.From, "to",
			r.Change.To, "outcome", r.Outcome, "error", r.Err, "why", r.Change.Why)
	}
}
