package agent

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// preferEvery is how often the knobs of the priority are looked at, levelEvery how often the groups around them, and
// unclassifiedAfter is how long a group may be there before it is somebody's whom nobody gave a class: a pod's group is made
// before anybody tells of the pod.
const (
	colocateEvery     = time.Second
	levelEvery        = 2 * time.Second // unclassified groups are looked for
	unclassifiedAfter = 3 * time.Second
)

// priority is what the agent keeps of the priority of online work over offline work.
type priority struct {
	knobs        *policy.Colocation
	at           time.Time // of the last look
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
	tasks        taskLook
	usage        rankUsage
	suppressor   suppressor
}

func newPriority() priority {
	return priority{knobs: policy.NewColocation(), unclassified: map[string]time.Time{}, searched: map[string]bool{}, usage: newRankUsage()}
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

func (p *priority) restored(results []plan.Result) {
	p.knobs.Restored(results)
	p.inForce, p.at = nil, time.Time{}
}

// due says whether there is anything to look at.
func (p *priority) due(now time.Time, pods []workload.Pod, asked strategy.Colocation, scheduler bool) bool {
	if !asked.Enabled() && len(p.knobs.Held()) == 0 && !scheduler {
		p.mechanism, p.why, p.exposed, p.missing, p.inForce = strategy.MechanismNone, "not asked for", nil, nil, nil
		return false
	}
	return p.news(pods, asked) || now.Sub(p.at) >= colocateEvery
}

// news says whether the containers, or what is asked for, are others than at the last look.
func (p *priority) news(pods []workload.Pod, asked strategy.Colocation) bool {
	return !workload.Same(pods, p.pods) || asked != p.asked
}

// colocate has the kernel run online work before offline work, and sees that it still does.
func (a *Agent) colocate(now time.Time, pods []workload.Pod) []plan.Result {
	p, asked := &a.priority, a.Strategy.Colocation
	if !p.due(now, pods, asked, a.scheduler.Busy()) {
		return nil
	}
	news := p.news(pods, asked)
	if news || now.Sub(p.leveled) >= levelEvery {
		a.level(now, pods, asked)
	}
	a.forgetTasks(now, news)
	p.at, p.pods, p.asked = now, pods, asked
	p.usage.mark(now)
	machine := a.machine(now, asked.Mechanism)
	mechanism, why := policy.Choose(asked.Mechanism, machine)
	if mechanism != p.mechanism || why != p.why {
		a.Log.Info("co-location", "mechanism", mechanism, "why", why)
	}
	p.mechanism, p.why = mechanism, why
	wanted := append(policy.Settings(mechanism, asked.Slice, p.levels, machine), a.suppress(now, asked.Suppress, p.levels)...)
	a.schedules(now, mechanism, p.levels)
	stands, unread := a.knobs(now, wanted)
	a.adoptCPUs(wanted, stands)
	changes, notes := p.knobs.Plan(now, wanted, stands, unread...)
	a.notePriority(notes)
	var results []plan.Result
	if len(changes) > 0 {
		results = a.Writer.Do(changes)
		p.knobs.Learn(now, results)
		p.tasks.learn(results)
		a.record.Results(results)
		a.sayPriority(results)
	}
	p.inForce = map[string]bool{}
	for id, in := range policy.InForce(p.knobs.Standings(), p.exposed) {
		p.inForce[id.Path] = in
	}
	return results
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

// knobs reads what stands in the knobs that are wanted, and in those that are no longer. One that is gone is left out.
func (a *Agent) knobs(now time.Time, wanted []policy.Setting) (stands map[policy.Key]plan.Value, unread []policy.Key) {
	list := slices.Clone(wanted)
	for _, k := range a.priority.knobs.Held() {
		list = append(list, policy.Setting{ID: k.ID, Knob: k.Knob, Value: a.priority.knobs.Wrote(k)})
	}
	stands = map[policy.Key]plan.Value{}
	a.priority.missing = nil
	for _, s := range list {
		k := s.Key()
		if _, read := stands[k]; read {
			continue
		}
		v, err := a.knob(now, s)
		inode, other := a.inode(k)
		switch {
		case err == nil && other == nil && inode == k.Inode:
			stands[k] = v
		case errors.Is(err, fs.ErrNotExist) && other == nil && inode == k.Inode:
			a.priority.missing = append(a.priority.missing, k.Path)
		case other == nil && inode != k.Inode, errors.Is(other, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist): // gone
		default:
			a.Log.Debug("co-location", "cgroup", k.Path, "knob", k.Knob, "error", errors.Join(err, other))
			unread = append(unread, k)
		}
	}
	return stands, unread
}

// inode is the identity of the group that has the knob now.
func (a *Agent) inode(k policy.Key) (uint64, error) {
	if k.Knob == plan.CPUs {
		return a.Tree.CPUSetInode(k.Path)
	}
	return a.Tree.Inode(k.Path)
}

// notePriority tells of other writers, and keeps the journal true.
func (a *Agent) notePriority(notes []policy.ColocationNote) {
	for _, n := range notes {
		log := a.Log.With("cgroup", n.Path, "knob", n.Knob, "found", n.Found)
		switch n.Event {
		case policy.Reset:
			log.Info("put back by its owner: applied again after a while")
			if n.Knob == plan.Idle { // with it the weight: what stands there now is the owner's
				a.sayJournal(a.Writer.Forget(n.ID, plan.Weight))
			}
		case policy.Foreign:
			log.Warn("another program wrote it: left alone")
			a.sayJournal(a.Writer.Forget(n.ID, n.Knob))
		}
	}
}

// sayPriority logs what became of writes: each is rare.
func (a *Agent) sayPriority(results []plan.Result) {
	for _, r := range results {
		log := a.Log.Info
		if r.Outcome == plan.Refused || r.Outcome == plan.Trampled {
			log = a.Log.Warn
		}
		log("co-location", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "from", r.Change.From, "to", r.Change.To,
			"outcome", r.Outcome, "error", r.Err, "why", r.Change.Why)
	}
}

// tree makes that of the containers, with the groups above those of a class. What else runs in such a group is
// looked for, but not in pods, whose groups the discovery knows.
func (a *Agent) tree(now time.Time, pods []workload.Pod) *policy.TreeNode {
	t := treeBuilder{agent: a, now: now, at: map[string]*policy.TreeNode{}, pods: map[string]bool{}}
	root := &policy.TreeNode{ID: workload.ID{Path: "/"}}
	t.at["/"] = root
	for _, p := range pods {
		if p.Path != "" && len(p.Containers) > 0 {
			t.pods[p.Path] = engine(p.Containers[0].Runtime)
		}
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			t.add(c)
		}
	}
	t.others()
	maps.DeleteFunc(a.priority.unclassified, func(group string, _ time.Time) bool { return !t.met[group] })
	return root
}

// engine says whether a container engine made a group, and so nobody else makes groups in it.
func engine(runtime string) bool { return runtime != "cgroup" && runtime != "systemd" }

// treeBuilder is the making of such a tree.
type treeBuilder struct {
	agent *Agent
	now   time.Time
	at    map[string]*policy.TreeNode
	pods  map[string]bool
	met   map[string]bool // groups nobody gave a class
}

// add puts a container into the tree.
func (t *treeBuilder) add(c workload.Container) {
	if s := t.above(path.Dir(c.Path)); s != nil {
		node := &policy.TreeNode{ID: c.ID, QOS: c.QOS}
		s.Children = append(s.Children, node)
		t.at[c.Path] = node
	}
}

// above is the node of a group that holds others, nil where it is gone.
func (t *treeBuilder) above(group string) *policy.TreeNode {
	if s := t.at[group]; s != nil {
		return s
	}
	inode, err := t.agent.Tree.Inode(group)
	parent := t.above(path.Dir(group))
	if err != nil || parent == nil {
		return nil
	}
	s := &policy.TreeNode{ID: workload.ID{Path: group, Inode: inode}}
	parent.Children = append(parent.Children, s)
	t.at[group] = s
	return s
}

// others marks the groups in which something runs that has no node. Only those above work that is to stand back or to
// be preferred are of interest.
func (t *treeBuilder) others() {
	t.met = map[string]bool{}
	groups := make([]string, 0, len(t.at))
	for group, s := range t.at {
		if len(s.Children) > 0 && group != "/" && !t.pods[group] && graded(s) {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	searched := map[string]bool{}
	for _, group := range groups {
		t.at[group].Others = t.unclassified(group)
		searched[group] = true
	}
	t.agent.priority.searched = searched
}

// graded says whether something in the node has a class that is enabled.
func graded(s *policy.TreeNode) bool {
	return s.QOS.Enable || slices.ContainsFunc(s.Children, graded)
}

// unclassified says whether a group holds tasks of its own, or a group without a node in which something has run for a while.
func (t *treeBuilder) unclassified(group string) bool {
	tree := t.agent.Tree
	if tasks, err := tree.Tasks(group); err == nil && len(tasks) > 0 {
		return true
	}
	children, err := tree.Children(group)
	if err != nil {
		return true
	}
	found := false
	for _, c := range children {
		if t.at[c] != nil {
			continue
		}
		if populated, err := tree.Populated(c); err != nil || !populated {
			continue
		}
		t.met[c] = true
		since, known := t.agent.priority.unclassified[c]
		if !known {
			if t.agent.priority.searched[group] { // else it has been there before us
				since = t.now
			}
			t.agent.priority.unclassified[c] = since
		}
		found = found || t.now.Sub(since) >= unclassifiedAfter
	}
	return found
}
