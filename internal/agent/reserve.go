package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/ledger"
	"plimsoll/internal/plan"
	"plimsoll/internal/reserve"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// reserveEvery is how often the groups' CPUs are looked at although nothing tells of a change, and reserveGap how soon
// after a look the next one may be: whoever makes groups without end is to cost a bounded number of looks.
const (
	reserveEvery = 2 * time.Second
	reserveGap   = 50 * time.Millisecond
)

// Reserving is what must be known to give containers CPUs of their own.
type Reserving struct {
	Topology func() (cpu.Topology, error) // nil: nobody is given any
	Owner    func() string                // another program that shares out the node's CPUs; "": nobody
	Kept     func() (cpu.Set, float64)    // CPUs that the kubelet keeps for itself and the system, and so many more
	Isolated cpu.Set                      // CPUs that boot parameters keep out of the balancing
	Rules    strategy.Reserve

	state  *reserve.State // of an agent whose dry run this one is
	ledger *ledger.Ledger
}

// reservations is what the agent keeps of the CPUs that containers have of their own.
type reservations struct {
	state    *reserve.State
	at       time.Time // of the last look; zero: to be looked at
	pods     []workload.Pod
	asking   bool // somebody asks
	active   bool // there is something to look at
	standing bool // something of ours stands, or did at the last look
	soon     bool // groups have come or gone
	waits    bool // for a quota that is put back in this turn
	since    map[workload.ID]int64
	arrivals int64
	shares   map[string]reserve.Share
	last     reserve.Output
	unbound  int // processes that no cpuset binds
	shield   apply.Shield
	rules    strategy.Reserve
	problem  string
	said     map[string]bool
}

func newReservations(state *reserve.State) reservations {
	if state == nil {
		state = reserve.NewState()
	}
	return reservations{state: state, since: map[workload.ID]int64{}}
}

// Reserve takes new rules for the CPUs that containers may have of their own.
func (a *Agent) Reserve(rules strategy.Reserve) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Reserving.Rules, a.reservations.at = rules, time.Time{}
	a.reservations.pods = nil // who asks is another question now
	a.wake()
}

// ofCPUs says whether a knob is one of those that make CPUs exclusive.
func ofCPUs(knob plan.Knob) bool {
	switch knob {
	case plan.CPUs, plan.SubtreeControl, plan.Exclusive, plan.Partition:
		return true
	}
	return false
}

// reserves says whether a file is written to make CPUs exclusive, if it is written at all.
func (a *Agent) reserves(key plan.Key) bool {
	return ofCPUs(key.Knob) && !a.colocation.Claims(key)
}

// due says whether there is anything to look at.
func (r *reservations) due(now time.Time, pods []workload.Pod, rules strategy.Reserve) bool {
	if !workload.Same(pods, r.pods) {
		r.pods, r.asking, r.at = pods, false, time.Time{}
		for _, p := range pods {
			r.asking = r.asking || slices.ContainsFunc(p.Containers, func(c workload.Container) bool {
				asks, _ := c.Asks(rules)
				return asks != workload.ExclusiveNo
			})
		}
	}
	r.active = r.asking && rules.Policy != strategy.ReserveNone || r.standing || len(r.shares)+len(r.last.Refused) > 0 || r.shield.Group != ""
	age := now.Sub(r.at)
	return r.active && (age >= reserveEvery || r.soon && age >= reserveGap)
}

// reserve says what files are to hold so that those who ask have CPUs of their own and everybody else stays off them, and has the
// ledger see what they hold.
func (a *Agent) reserve(now time.Time, pods []workload.Pod) ledger.Want {
	r := &a.reservations
	if a.Reserving.Topology == nil || !r.due(now, pods, a.Reserving.Rules) {
		return ledger.Want{}
	}
	r.at, r.soon, r.problem = now, false, ""
	in, err := a.reserveInput(now, pods)
	if err != nil {
		r.problem = fmt.Sprintf("CPUs of their own: %v", err)
		return ledger.Want{}
	}
	out := r.state.Decide(in)
	r.waits = out.Lifted && !r.last.Lifted // for a quota that is put back in this turn
	r.last, r.rules = out, in.Rules
	for _, intent := range out.Intents {
		if intent.Knob != plan.CPUs {
			a.seeCPUFile(now, intent.Key)
		}
	}
	a.countUnbound(in)
	return ledger.Want{Intents: out.Intents, Of: a.reserves}
}

func value(set cpu.Set) plan.Value { return plan.Value(set.String()) }

func (a *Agent) sayJournal(err error) {
	if err != nil {
		a.Log.Error("journal", "error", err)
	}
}

// reserved books who has what now, and looks again at once where the kernel's answer asks for another decision.
func (a *Agent) reserved(now time.Time, w ledger.Want, results []plan.Result) {
	if w.Of == nil {
		return
	}
	r := &a.reservations
	r.standing = len(results)+len(a.ledger.Ours(a.reserves)) > 0 // a group may have been made meanwhile
	if r.waits {
		r.at = time.Time{}
	}
	refused := map[string]bool{}
	for _, x := range results {
		log := a.Log.Debug
		switch {
		case x.Outcome == plan.Refused && x.Change.Knob == plan.CPUs: // others are to have them
			refused[x.Change.Cgroup.Path], r.at, log = true, time.Time{}, a.Log.Warn
		case x.Outcome == plan.Refused: // it has its CPUs all the same
			log = a.Log.Warn
		case x.Outcome == plan.Applied && x.Change.Knob == plan.SubtreeControl, x.Outcome == plan.Applied && x.Change.Knob == plan.Partition:
			r.at = time.Time{}
		}
		log("CPUs", "cgroup", x.Change.Cgroup.Path, "knob", x.Change.Knob, "from", x.Change.From, "to", x.Change.To,
			"outcome", x.Outcome, "error", x.Err, "why", x.Change.Why)
	}
	before := r.shares
	r.shares = map[string]reserve.Share{}
	for _, sh := range r.last.Shares {
		if refused[sh.Path] {
			continue
		}
		r.shares[sh.Path] = sh
		if old, had := before[sh.Path]; !had || !old.CPUs.Equal(sh.CPUs) || old.Unlimited != sh.Unlimited {
			a.Log.Info("CPUs of its own", "cgroup", sh.Path, "cpus", sh.Own, "may_use", sh.CPUs, "quota_unlimited", sh.Unlimited)
			a.markGroupDue(now, sh.Path)
		}
	}
	for group := range before {
		if _, has := r.shares[group]; !has {
			a.markGroupDue(now, group)
		}
	}
	said := r.said
	r.said = map[string]bool{}
	for _, f := range r.last.Refused {
		key := f.Name + f.Why
		if r.said[key] = true; !said[key] {
			a.Log.Warn("no CPUs of its own", "cgroup", f.Name, "why", f.Why)
		}
	}
}

// markGroupDue has a group looked at in this turn: its limit is another question now.
func (a *Agent) markGroupDue(now time.Time, group string) {
	if g := a.at(group); g != nil {
		g.Stale(now)
	}
}

// reserveInput reads what stands.
func (a *Agent) reserveInput(now time.Time, pods []workload.Pod) (reserve.Input, error) {
	in := reserve.Input{Rules: a.Reserving.Rules, Inherits: a.Tree.Version() == cgroup.V2, Shield: a.reservations.shield.Group}
	if !a.Tree.HasCPUSets() {
		return in, errors.New("there is no cpuset controller here; hint: on cgroup v1 mount it beside the cpu controller")
	}
	if a.Reserving.Owner != nil {
		in.Owner = a.Reserving.Owner()
	}
	if a.Reserving.Kept != nil {
		kept, more := a.Reserving.Kept()
		in.Rules.CPUs, in.Rules.Floor = in.Rules.CPUs.Union(kept), max(in.Rules.Floor, more)
		in.Requested = more
	}
	var err error
	if in.Topology, err = a.Reserving.Topology(); err != nil {
		return in, err
	}
	in.Isolated = a.isolated(in)
	sets, err := a.Tree.CPUSets("/")
	if err != nil {
		return in, err
	}
	in.Groups = a.seeCPUs(now, sets, in.Topology.Set())
	a.requesters(pods, &in)
	in.Partitions = in.Inherits && slices.ContainsFunc(in.Containers, func(c reserve.Container) bool {
		_, err := a.Tree.ExclusiveCPUs(c.Path)
		return err == nil
	})
	a.ancestorsOf(&in)
	return in, nil
}

// isolated are the CPUs that no balancing reaches. The root has not those of valid partitions below it (v2,
// kernel/cgroup/cpuset.c, cpuset.cpus.effective).
func (a *Agent) isolated(in reserve.Input) cpu.Set {
	if effective, err := a.Tree.EffectiveCPUs("/"); err == nil && in.Inherits && len(effective) > 0 {
		return a.Reserving.Isolated.Union(in.Topology.Set().Minus(effective))
	}
	return a.Reserving.Isolated
}

// requesters lists who asks for CPUs, in the order in which they came, and sums what all others requested.
func (a *Agent) requesters(pods []workload.Pod, in *reserve.Input) {
	r := &a.reservations
	since := map[workload.ID]int64{}
	for _, p := range pods {
		for _, c := range p.Containers {
			limit := a.limitOf(c)
			request := c.Request
			if request == 0 && !math.IsInf(limit, 1) {
				request = limit
			}
			asks, byNode := c.Asks(a.Reserving.Rules)
			if asks == workload.ExclusiveNo || byNode && request == 0 {
				in.Requested += c.Request
				continue
			}
			if since[c.ID] = r.since[c.ID]; since[c.ID] == 0 {
				r.arrivals++
				since[c.ID] = r.arrivals
			}
			in.Containers = append(in.Containers, reserve.Container{ID: c.ID, Request: request, Limit: limit, Strict: asks == workload.ExclusiveStrict, ByNode: byNode})
		}
	}
	r.since = since
	slices.SortStableFunc(in.Containers, func(x, y reserve.Container) int { return int(since[x.ID] - since[y.ID]) })
}

// limitOf is a container's limit in CPUs, whatever stands in the file because of us.
func (a *Agent) limitOf(c workload.Container) float64 {
	if c.Declared != nil {
		return c.Declared.Bandwidth.CPUs()
	}
	b, err := a.Tree.Bandwidth(c.Path)
	if err != nil {
		return math.Inf(1)
	}
	if e, known := a.ledger.Entry(plan.Key{ID: c.ID, Knob: plan.Quota}); known {
		b.Quota, _ = e.Baseline.Time() // it was a time when it was written
	}
	return b.CPUs()
}

// ancestorsOf lists the groups from the root to those who ask, which must hand the cpuset controller on (v2).
func (a *Agent) ancestorsOf(in *reserve.Input) {
	if !in.Inherits {
		return
	}
	seen := map[string]bool{}
	for _, c := range in.Containers {
		for at := path.Dir(c.Path); !seen[at]; at = path.Dir(at) {
			seen[at] = true
			if inode, err := a.Tree.Inode(at); err == nil {
				in.Ancestors = append(in.Ancestors, workload.ID{Path: at, Inode: inode})
			}
		}
	}
}

// countUnbound counts what no cpuset keeps off exclusive CPUs: processes and kernel threads of the root, and on v1 those in
// groups above containers that have some.
func (a *Agent) countUnbound(in reserve.Input) {
	groups := map[string]bool{"/": true}
	for _, c := range in.Containers {
		for at := path.Dir(c.Path); !groups[at]; at = path.Dir(at) {
			groups[at] = true
		}
	}
	n := 0
	for group := range groups {
		pids, err := a.Tree.CPUSetTasks(group)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n += len(pids)
	}
	a.reservations.unbound = n
}

// restoredCPUs has the groups' CPUs looked at that were put back.
func (a *Agent) restoredCPUs(results []plan.Result) {
	a.reservations.at = time.Time{}
	a.unshielded(results)
}

// ofLeaver says whether an entry of the journal is to be put back when its group is no longer looked after. CPUs are
// not: whoever has none of its own is confined all the same.
func ofLeaver(e journal.Entry) bool { return !ofCPUs(e.Knob) }

// reserveProblems are told of in the status.
func (a *Agent) reserveProblems() []string {
	r := &a.reservations
	var list []string
	if r.problem != "" {
		list = append(list, r.problem)
	}
	for _, f := range r.last.Refused {
		list = append(list, f.Name+": no CPUs of its own: "+f.Why)
	}
	if why := a.shieldless(); why != "" {
		list = append(list, why)
	}
	for _, f := range r.last.Unconfined {
		list = append(list, f.Name+": not confined to the shared pool: "+strings.TrimSpace(f.Why))
	}
	for _, key := range a.ledger.Ours(a.reserves) {
		if e, _ := a.ledger.Entry(key); e.Leaving && e.Problem != "" {
			list = append(list, fmt.Sprintf("%s: its %s is not put back to %q: %s", key.Path, key.Knob, e.Baseline, e.Problem))
		}
	}
	return list
}

// regroup has the groups' CPUs looked at: a group was made, or is gone.
func (a *Agent) regroup() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reservations.soon = true
}

// next is when the groups' CPUs are to be looked at again, if that is before another time.
func (r *reservations) next(now, other time.Time) time.Time {
	at := other
	switch {
	case !r.active:
	case r.at.IsZero():
		at = now.Add(gather)
	case r.soon:
		at = r.at.Add(reserveGap)
	default:
		at = r.at.Add(reserveEvery)
	}
	if at.Before(other) {
		return at
	}
	return other
}
