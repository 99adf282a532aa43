// Package colocation reads what decisions on online and offline work need: who runs beside whom, what files and tasks hold,
// and what offline work uses. It asks the deciders of package policy, has the ledger see what stands, and keeps what a status
// says. It writes nothing.
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

// colocateEvery is how often the knobs of the priority are looked at, levelEvery how often the groups around them, and
// unclassifiedAfter is how long a group may be there before it is somebody's whom nobody gave a class: a pod's group is made
// before anybody tells of the pod.
const (
	colocateEvery     = time.Second
	levelEvery        = 2 * time.Second // unclassified groups are looked for
	unclassifiedAfter = 3 * time.Second
)

// Agent is what colocation asks of the agent.
type Agent interface {
	// Bandwidth is the group whose bandwidth a file is one of, if the group is looked after; nil: it is not.
	Bandwidth(plan.Key) *observe.Group
	// Outranked says whether something that goes before suppression is for the quota of a group.
	Outranked(now time.Time, group string) bool
	// Topology are the CPUs that offline work may be bound to; false: others may have CPUs of their own.
	Topology() (cpu.Topology, bool, error)
	// Saw takes what was seen of a file of a group's bandwidth.
	Saw(key plan.Key, held plan.Value, event ledger.Event)
	// Stale has all groups read anew: whether a group is held at its limit is another question now.
	Stale(now time.Time)
	// Groups are all groups.
	Groups() map[workload.ID]*observe.Group
	// Adopt and Forget keep the journal true.
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value)
	Forget(id workload.ID, knob plan.Knob)
}

// Colocation keeps what is known of online and offline work.
type Colocation struct {
	Tree      *cgroup.Tree
	Host      observe.Host
	Tasks     Tasks // nil: nothing is set of single tasks
	Log       *slog.Logger
	Ledger    *ledger.Ledger
	Scheduler *schedext.Keeper
	Machine   policy.Machine // what the machine has for online before offline
	Agent     Agent

	at           time.Time // of the last look
	claims       bool      // files, since then
	pods         []workload.Pod
	asked        strategy.Colocation
	mechanism    strategy.Mechanism
	why          string
	levels       []policy.Level
	leveled      time.Time
	exposed      []string
	missing      []string        // groups that do not have the file
	inForce      map[string]bool // offline groups, by path
	unclassified map[string]time.Time
	searched     map[string]bool // groups in which unclassified groups were looked for
	tasksAt      time.Time       // tasks were looked at
	usage        rankUsage
	suppressor   suppressor
}

// New makes one of which nothing stands.
func New(c Colocation) *Colocation {
	c.unclassified, c.searched, c.usage = map[string]time.Time{}, map[string]bool{}, newRankUsage()
	return &c
}

// Again has everything looked at in the next turn.
func (c *Colocation) Again() { c.at = time.Time{} }

// Used books what a container of a rank has used since the last look.
func (c *Colocation) Used(r strategy.Rank, used time.Duration) { c.usage.add(r, used) }

// Deprioritized says whether the kernel verifiably keeps a group behind all online work: by cpu.idle, whoever set it, or by the
// mechanism. Neither does where online work does not stand beside the group, unless a scheduler knows who is who.
func (c *Colocation) Deprioritized(g *observe.Group) bool {
	if c.exposes(g.Path) && !c.Scheduler.InForce() {
		return false
	}
	return g.Idle || g.Offline() && c.deprioritized(g.Path)
}

// exposes says whether a group is one that some online work does not stand beside, or is in one.
func (c *Colocation) exposes(group string) bool {
	return slices.ContainsFunc(c.exposed, func(level string) bool { return group == level || workload.Under(group, level) })
}

// deprioritized says whether the mechanism verifiably keeps a group behind online work.
func (c *Colocation) deprioritized(group string) bool {
	for ; group != "/" && group != "." && len(c.inForce) > 0; group = path.Dir(group) {
		if in, known := c.inForce[group]; known {
			return in
		}
	}
	return false
}

// due says whether there is anything to look at.
func (c *Colocation) due(now time.Time, pods []workload.Pod, asked strategy.Colocation) bool {
	if !asked.Enabled() && !c.claims && !c.Scheduler.Busy() {
		c.mechanism, c.why, c.exposed, c.missing, c.inForce = strategy.MechanismNone, "not asked for", nil, nil, nil
		return false
	}
	return c.news(pods, asked) || now.Sub(c.at) >= colocateEvery
}

// news says whether the containers, or what is asked for, are others than at the last look.
func (c *Colocation) news(pods []workload.Pod, asked strategy.Colocation) bool {
	return !workload.Same(pods, c.pods) || asked != c.asked
}

// Decide says what files are to hold so that the kernel runs online work before offline work, and has the ledger see what they
// hold. free says that a scheduler may be loaded.
func (c *Colocation) Decide(now time.Time, pods []workload.Pod, asked strategy.Colocation, free bool) ledger.Want {
	if !c.due(now, pods, asked) {
		return ledger.Want{}
	}
	news := c.news(pods, asked)
	if news || now.Sub(c.leveled) >= levelEvery {
		c.level(now, pods, asked)
	}
	if news || now.Sub(c.tasksAt) >= TasksEvery {
		c.tasksAt = now
	}
	c.at, c.pods, c.asked = now, pods, asked
	c.usage.mark(now)
	machine := c.machine(now, asked.Mechanism)
	mechanism, why := policy.Choose(asked.Mechanism, machine)
	if mechanism != c.mechanism || why != c.why {
		c.Log.Info("co-location", "mechanism", mechanism, "why", why)
	}
	c.mechanism, c.why = mechanism, why
	intents := append(policy.Colocate(mechanism, asked.Slice, c.levels, machine), c.suppress(now, asked.Suppress, c.levels)...)
	c.schedule(now, mechanism, free)
	return ledger.Want{Intents: c.seeKnobs(now, intents), Of: c.Claims}
}

// Done records what became of the files.
func (c *Colocation) Done(k ledger.Want, results []plan.Result) {
	if k.Of == nil {
		return
	}
	var of []plan.Result
	for _, r := range results {
		if c.Claims(plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}) {
			of = append(of, r)
		}
	}
	c.sayKnobs(of)
	c.unclaimKnobs(k.Intents, of)
	c.inForce = policy.InForce(k.Intents, func(key plan.Key) bool { e, known := c.Ledger.Entry(key); return known && e.InForce() },
		c.exposed)
}

// Claims says whether colocation claims a file.
func (c *Colocation) Claims(key plan.Key) bool {
	e, _ := c.Ledger.Entry(key)
	return e.By == plan.ForColocation
}

// unclaimKnobs gives up the files that are no longer intended to hold anything, and in which nothing of ours stands.
func (c *Colocation) unclaimKnobs(intents []plan.Intent, results []plan.Result) {
	intended, restored := map[plan.Key]bool{}, map[plan.Key]bool{}
	for _, in := range intents {
		intended[in.Key] = true
	}
	for _, r := range results {
		restored[plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}] = r.Change.Restore && r.Outcome != plan.Refused
	}
	c.claims = false
	for _, key := range c.Ledger.Claimed(plan.ForColocation) {
		if e, _ := c.Ledger.Entry(key); intended[key] || e.Ours() && !restored[key] {
			c.claims = true
		} else if c.Ledger.Claim(key, plan.ForBandwidth); c.Agent.Bandwidth(key) == nil {
			c.Ledger.Drop(key.ID, key.Knob)
		}
	}
}

// level finds the groups at which the priority takes hold.
func (c *Colocation) level(now time.Time, pods []workload.Pod, asked strategy.Colocation) {
	c.leveled, c.levels, c.exposed = now, nil, nil
	if asked.Enabled() {
		root := c.tree(now, pods)
		c.levels = policy.Levels(root)
		c.exposed = policy.Exposed(root, c.levels)
	}
}

// seeKnobs has the ledger see the files that are intended to hold something, and those that are claimed already. It returns the
// intents for files that are there.
func (c *Colocation) seeKnobs(now time.Time, intents []plan.Intent) []plan.Intent {
	keys := make([]plan.Key, 0, len(intents))
	for _, in := range intents {
		keys = append(keys, in.Key)
	}
	there := map[plan.Key]bool{}
	c.missing = nil
	for i, key := range append(keys, c.Ledger.Claimed(plan.ForColocation)...) {
		if _, seen := there[key]; !seen {
			there[key] = c.seeKnob(now, key, i < len(intents))
		}
	}
	return slices.DeleteFunc(intents, func(in plan.Intent) bool { return !there[in.Key] })
}

// seeKnob has the ledger see a file, and says whether the file is there.
func (c *Colocation) seeKnob(now time.Time, key plan.Key, intended bool) (there bool) {
	s, due, err := c.sight(now, key)
	inode, other := c.inode(key)
	switch {
	case err == nil && other == nil && inode == key.Inode:
		if due {
			c.saw(key, s.Held, c.Ledger.See(now, key, s), intended)
		}
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(other, fs.ErrNotExist), other == nil && inode != key.Inode: // gone
		if errors.Is(err, fs.ErrNotExist) && other == nil && inode == key.Inode {
			c.missing = append(c.missing, key.Path)
		}
		c.Ledger.Drop(key.ID, key.Knob)
		return false
	}
	c.Log.Debug("co-location", "cgroup", key.Path, "knob", key.Knob, "error", errors.Join(err, other))
	c.Ledger.Unread(key)
	_, known := c.Ledger.Entry(key)
	return known
}

// sight reads a file, and what is known of it besides; tasks only when they are due.
func (c *Colocation) sight(now time.Time, key plan.Key) (s ledger.Sight, due bool, err error) {
	if key.Knob.OfTasks() {
		if _, known := c.Ledger.Entry(key); known && now.After(c.tasksAt) {
			return s, false, nil
		}
		s.Tasks, err = c.countTasks(key)
		return s, true, err
	}
	if g := c.Agent.Bandwidth(key); g != nil {
		disk, err := c.Tree.Bandwidth(g.Path)
		if err == nil {
			g.Disk = disk
		}
		return ledger.Bandwidth(g.Disk, g.Declared, key.Knob), true, err
	}
	s.Held, err = apply.Read(c.Tree, key.Path, key.Knob)
	s.Follows = key.Knob == plan.Weight && policy.WeightByKubelet(key.Path)
	s.Sheds = key.Knob == plan.CPUs && c.Tree.Version() == cgroup.V1
	return s, true, err
}

// inode is the identity of the group that has the knob now.
func (c *Colocation) inode(k plan.Key) (uint64, error) {
	if k.Knob == plan.CPUs {
		return c.Tree.CPUSetInode(k.Path)
	}
	return c.Tree.Inode(k.Path)
}

// saw tells of other writers, and keeps the journal true.
func (c *Colocation) saw(key plan.Key, found plan.Value, event ledger.Event, intended bool) {
	log := c.Log.With("cgroup", key.Path, "knob", key.Knob, "found", found)
	switch {
	case c.Agent.Bandwidth(key) != nil:
		c.Agent.Saw(key, found, event)
	case !intended:
	case event == ledger.Reset:
		log.Info("put back by its owner: applied again after a while")
		if key.Knob == plan.Idle { // with it the weight: what stands there now is the owner's
			c.Agent.Forget(key.ID, plan.Weight)
		}
	case event == ledger.Overrode:
		log.Warn("another program wrote it: left alone")
		c.Agent.Forget(key.ID, key.Knob)
	}
}

// sayKnobs logs what became of writes: each is rare.
func (c *Colocation) sayKnobs(results []plan.Result) {
	for _, r := range results {
		log := c.Log.Info
		if r.Outcome == plan.Refused || r.Outcome == plan.Trampled {
			log = c.Log.Warn
		}
		log("co-location", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "from", r.Change.From, "to", r.Change.To,
			"outcome", r.Outcome, "error", r.Err, "why", r.Change.Why)
	}
}
