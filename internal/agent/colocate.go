package agent

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
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

// priority is what the agent keeps of the priority of online work over offline work.
type priority struct {
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

func newPriority() priority {
	return priority{unclassified: map[string]time.Time{}, searched: map[string]bool{}, usage: newRankUsage()}
}

// deprioritized says whether the kernel verifiably keeps a group behind all online work: by cpu.idle, whoever set it, or by the
// mechanism. Neither does where online work does not stand beside the group, unless a scheduler knows who is who.
func (a *Agent) deprioritized(g *group) bool {
	p := &a.priority
	if p.exposes(g.Path) && !a.scheduler.InForce() {
		return false
	}
	return g.Idle || g.Offline() && p.deprioritized(g.Path)
}

// exposes says whether a group is one that some online work does not stand beside, or is in one.
func (p *priority) exposes(group string) bool {
	return slices.ContainsFunc(p.exposed, func(level string) bool { return group == level || under(group, level) })
}

// deprioritized says whether the mechanism verifiably keeps a group behind online work.
func (p *priority) deprioritized(group string) bool {
	for ; group != "/" && group != "." && len(p.inForce) > 0; group = path.Dir(group) {
		if in, known := p.inForce[group]; known {
			return in
		}
	}
	return false
}

// due says whether there is anything to look at.
func (p *priority) due(now time.Time, pods []workload.Pod, asked strategy.Colocation, scheduler bool) bool {
	if !asked.Enabled() && !p.claims && !scheduler {
		p.mechanism, p.why, p.exposed, p.missing, p.inForce = strategy.MechanismNone, "not asked for", nil, nil, nil
		return false
	}
	return p.news(pods, asked) || now.Sub(p.at) >= colocateEvery
}

// news says whether the containers, or what is asked for, are others than at the last look.
func (p *priority) news(pods []workload.Pod, asked strategy.Colocation) bool {
	return !workload.Same(pods, p.pods) || asked != p.asked
}

// colocate says what files are to hold so that the kernel runs online work before offline work, and has the ledger see what they
// hold.
func (a *Agent) colocate(now time.Time, pods []workload.Pod) knobs {
	p, asked := &a.priority, a.Strategy.Colocation
	if !p.due(now, pods, asked, a.scheduler.Busy()) {
		return knobs{}
	}
	news := p.news(pods, asked)
	if news || now.Sub(p.leveled) >= levelEvery {
		a.level(now, pods, asked)
	}
	if news || now.Sub(p.tasksAt) >= tasksEvery {
		p.tasksAt = now
	}
	p.at, p.pods, p.asked = now, pods, asked
	p.usage.mark(now)
	machine := a.machine(now, asked.Mechanism)
	mechanism, why := policy.Choose(asked.Mechanism, machine)
	if mechanism != p.mechanism || why != p.why {
		a.Log.Info("co-location", "mechanism", mechanism, "why", why)
	}
	p.mechanism, p.why = mechanism, why
	intents := append(policy.Colocate(mechanism, asked.Slice, p.levels, machine), a.suppress(now, asked.Suppress, p.levels)...)
	a.schedules(now, mechanism, p.levels)
	return knobs{a.seeKnobs(now, intents), a.colocates}
}

// colocated records what became of colocation's files.
func (a *Agent) colocated(k knobs, results []plan.Result) {
	if k.of == nil {
		return
	}
	var of []plan.Result
	for _, r := range results {
		if a.colocates(plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}) {
			of = append(of, r)
		}
	}
	a.sayKnobs(of)
	a.unclaimKnobs(k.intents, of)
	a.priority.inForce = policy.InForce(k.intents, func(key plan.Key) bool { e, known := a.ledger.Entry(key); return known && e.InForce() },
		a.priority.exposed)
}

// colocates says whether colocation claims a file.
func (a *Agent) colocates(key plan.Key) bool {
	e, _ := a.ledger.Entry(key)
	return e.By == plan.ForColocation
}

// bandwidthOf is the group whose bandwidth a file is one of, if it is looked after; else nil.
func (a *Agent) bandwidthOf(key plan.Key) *group {
	if g := a.groups[key.ID]; key.Knob.OfBandwidth() && g != nil && g.Disk.Period > 0 {
		return g
	}
	return nil
}

// unclaimKnobs gives up the files that are no longer intended to hold anything, and in which nothing of ours stands.
func (a *Agent) unclaimKnobs(intents []plan.Intent, results []plan.Result) {
	intended, restored := map[plan.Key]bool{}, map[plan.Key]bool{}
	for _, in := range intents {
		intended[in.Key] = true
	}
	for _, r := range results {
		restored[plan.Key{ID: r.Change.Cgroup, Knob: r.Change.Knob}] = r.Change.Restore && r.Outcome != plan.Refused
	}
	a.priority.claims = false
	for _, key := range a.ledger.Claimed(plan.ForColocation) {
		if e, _ := a.ledger.Entry(key); intended[key] || e.Ours() && !restored[key] {
			a.priority.claims = true
		} else if a.ledger.Claim(key, plan.ForBandwidth); a.bandwidthOf(key) == nil {
			a.ledger.Drop(key.ID, key.Knob)
		}
	}
}

// level finds the groups at which the priority takes hold.
func (a *Agent) level(now time.Time, pods []workload.Pod, asked strategy.Colocation) {
	p := &a.priority
	p.leveled, p.levels, p.exposed = now, nil, nil
	if asked.Enabled() {
		root := a.tree(now, pods)
		p.levels = policy.Levels(root)
		p.exposed = policy.Exposed(root, p.levels)
	}
}

// seeKnobs has the ledger see the files that are intended to hold something, and those that are claimed already. It returns the
// intents for files that are there.
func (a *Agent) seeKnobs(now time.Time, intents []plan.Intent) []plan.Intent {
	keys := make([]plan.Key, 0, len(intents))
	for _, in := range intents {
		keys = append(keys, in.Key)
	}
	there := map[plan.Key]bool{}
	a.priority.missing = nil
	for i, key := range append(keys, a.ledger.Claimed(plan.ForColocation)...) {
		if _, seen := there[key]; !seen {
			there[key] = a.seeKnob(now, key, i < len(intents))
		}
	}
	return slices.DeleteFunc(intents, func(in plan.Intent) bool { return !there[in.Key] })
}

// seeKnob has the ledger see a file, and says whether the file is there.
func (a *Agent) seeKnob(now time.Time, key plan.Key, intended bool) (there bool) {
	s, due, err := a.sight(now, key)
	inode, other := a.inode(key)
	switch {
	case err == nil && other == nil && inode == key.Inode:
		if due {
			a.saw(key, s.Held, a.ledger.See(now, key, s), intended)
		}
		return true
	case errors.Is(err, fs.ErrNotExist), errors.Is(other, fs.ErrNotExist), other == nil && inode != key.Inode: // gone
		if errors.Is(err, fs.ErrNotExist) && other == nil && inode == key.Inode {
			a.priority.missing = append(a.priority.missing, key.Path)
		}
		a.ledger.Drop(key.ID, key.Knob)
		return false
	}
	a.Log.Debug("co-location", "cgroup", key.Path, "knob", key.Knob, "error", errors.Join(err, other))
	a.ledger.Unread(key)
	_, known := a.ledger.Entry(key)
	return known
}

// sight reads a file, and what is known of it besides; tasks only when they are due.
func (a *Agent) sight(now time.Time, key plan.Key) (s ledger.Sight, due bool, err error) {
	if key.Knob.OfTasks() {
		if _, known := a.ledger.Entry(key); known && now.After(a.priority.tasksAt) {
			return s, false, nil
		}
		s.Tasks, err = a.countTasks(key)
		return s, true, err
	}
	if g := a.bandwidthOf(key); g != nil {
		disk, err := a.Tree.Bandwidth(g.Path)
		if err == nil {
			g.Disk = disk
		}
		return g.sight(key.Knob), true, err
	}
	s.Held, err = apply.Read(a.Tree, key.Path, key.Knob)
	s.Follows = key.Knob == plan.Weight && policy.WeightByKubelet(key.Path)
	s.Sheds = key.Knob == plan.CPUs && a.Tree.Version() == cgroup.V1
	return s, true, err
}

// inode is the identity of the group that has the knob now.
func (a *Agent) inode(k plan.Key) (uint64, error) {
	if k.Knob == plan.CPUs {
		return a.Tree.CPUSetInode(k.Path)
	}
	return a.Tree.Inode(k.Path)
}

// saw tells of other writers, and keeps the journal true.
func (a *Agent) saw(key plan.Key, found plan.Value, event ledger.Event, intended bool) {
	log := a.Log.With("cgroup", key.Path, "knob", key.Knob, "found", found)
	switch {
	case a.bandwidthOf(key) != nil:
		a.noteSight(key, found, event)
	case !intended:
	case event == ledger.Reset:
		log.Info("put back by its owner: applied again after a while")
		if key.Knob == plan.Idle { // with it the weight: what stands there now is the owner's
			a.sayJournal(a.Writer.Forget(key.ID, plan.Weight))
		}
	case event == ledger.Overrode:
		log.Warn("another program wrote it: left alone")
		a.sayJournal(a.Writer.Forget(key.ID, key.Knob))
	}
}

// sayKnobs logs what became of writes: each is rare.
func (a *Agent) sayKnobs(results []plan.Result) {
	for _, r := range results {
		log := a.Log.Info
		if r.Outcome == plan.Refused || r.Outcome == plan.Trampled {
			log = a.Log.Warn
		}
		log("co-location", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "from", r.Change.From, "to", r.Change.To,
			"outcome", r.Outcome, "error", r.Err, "why", r.Change.Why)
	}
}
