// Package exclusive reads what decisions on exclusive CPUs need: who asks, what is in the groups' cpusets, and what the
// machine has. It asks package reserve, has the ledger see what stands, and keeps what a status says. It writes nothing but
// through the agent's writer, which it is given.
package exclusive

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
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
	// gather is how soon a look follows another one that asks for it.
	gather = 5 * time.Millisecond
)

// Options are what must be known to give containers CPUs of their own.
type Options struct {
	Topology func() (cpu.Topology, error) // nil: nobody is given any
	Owner    func() string                // another program that shares out the node's CPUs; "": nobody
	Kept     func() (cpu.Set, float64)    // CPUs that the kubelet keeps for itself and the system, and so many more
	Isolated cpu.Set                      // CPUs that boot parameters keep out of the balancing
	Rules    strategy.Reserve

	state  *reserve.State // of an agent whose dry run this one is
	ledger *ledger.Ledger
}

// Known is the ledger of the agent whose dry run this is; nil: it is none.
func (o Options) Known() *ledger.Ledger { return o.ledger }

// Agent is what exclusive CPUs ask of the agent.
type Agent interface {
	// Claimed says whether a file of CPUs is another decider's.
	Claimed(plan.Key) bool
	// Due has a group read in the next turn: its limit is another question now.
	Due(now time.Time, group string)
	// Adopt and Forget keep the journal true.
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value)
	Forget(id workload.ID, knob plan.Knob)
	// Overrode takes that another program has set a group's CPUs.
	Overrode(group string)
}

// Shielder can keep the tasks of the cpuset root in a group.
type Shielder interface {
	Shield() (apply.Shield, error)
	Unshield() []plan.Result
}

// CPUs keeps what is known of exclusive CPUs.
type CPUs struct {
	Options
	Tree   *cgroup.Tree
	Log    *slog.Logger
	Ledger *ledger.Ledger
	Agent  Agent

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

// New makes one of which nothing is known.
func New(c CPUs) *CPUs {
	if c.state = c.Options.state; c.state == nil {
		c.state = reserve.NewState()
	}
	c.since = map[workload.ID]int64{}
	return &c
}

// DryRun are options for an agent that decides as this one would.
func (c *CPUs) DryRun() Options {
	o := c.Options
	o.state, o.ledger = c.state.Clone(), c.Ledger.Clone(c.Of)
	return o
}

// Reserve takes new rules.
func (c *CPUs) Reserve(rules strategy.Reserve) {
	c.Rules, c.at = rules, time.Time{}
	c.pods = nil // who asks is another question now
}

// Share is what a container has of CPUs; the zero one: none of its own.
func (c *CPUs) Share(group string) reserve.Share { return c.shares[group] }

// Active says whether there is something to look at.
func (c *CPUs) Active() bool { return c.active }

// Again has the groups' CPUs looked at in the next turn.
func (c *CPUs) Again() { c.at = time.Time{} }

// Regroup has the groups' CPUs looked at soon: a group was made, or is gone.
func (c *CPUs) Regroup() { c.soon = true }

// OfCPUs says whether a knob is one of those that make CPUs exclusive.
func OfCPUs(knob plan.Knob) bool {
	switch knob {
	case plan.CPUs, plan.SubtreeControl, plan.Exclusive, plan.Partition:
		return true
	}
	return false
}

// Of says whether a file is written to make CPUs exclusive, if it is written at all.
func (c *CPUs) Of(key plan.Key) bool { return OfCPUs(key.Knob) && !c.Agent.Claimed(key) }

// due says whether there is anything to look at.
func (c *CPUs) due(now time.Time, pods []workload.Pod) bool {
	if !workload.Same(pods, c.pods) {
		c.pods, c.asking, c.at = pods, false, time.Time{}
		for _, p := range pods {
			c.asking = c.asking || slices.ContainsFunc(p.Containers, func(x workload.Container) bool {
				asks, _ := x.Asks(c.Rules)
				return asks != workload.ExclusiveNo
			})
		}
	}
	c.active = c.asking && c.Rules.Policy != strategy.ReserveNone || c.standing || len(c.shares)+len(c.last.Refused) > 0 || c.shield.Group != ""
	age := now.Sub(c.at)
	return c.active && (age >= reserveEvery || c.soon && age >= reserveGap)
}

// Decide says what files are to hold so that those who ask have CPUs of their own and everybody else stays off them, and has the
// ledger see what they hold.
func (c *CPUs) Decide(now time.Time, pods []workload.Pod) ledger.Want {
	if c.Topology == nil || !c.due(now, pods) {
		return ledger.Want{}
	}
	c.at, c.soon, c.problem = now, false, ""
	in, err := c.reserveInput(now, pods)
	if err != nil {
		c.problem = fmt.Sprintf("CPUs of their own: %v", err)
		return ledger.Want{}
	}
	out := c.state.Decide(in)
	c.waits = out.Lifted && !c.last.Lifted // for a quota that is put back in this turn
	c.last, c.rules = out, in.Rules
	for _, intent := range out.Intents {
		if intent.Knob != plan.CPUs {
			c.seeCPUFile(now, intent.Key)
		}
	}
	c.countUnbound(in)
	return ledger.Want{Intents: out.Intents, Of: c.Of}
}

// Done books who has what now, and looks again at once where the kernel's answer asks for another decision.
func (c *CPUs) Done(now time.Time, w ledger.Want, results []plan.Result) {
	if w.Of == nil {
		return
	}
	c.standing = len(results)+len(c.Ledger.Ours(c.Of)) > 0 // a group may have been made meanwhile
	if c.waits {
		c.at = time.Time{}
	}
	refused := map[string]bool{}
	for _, x := range results {
		log := c.Log.Debug
		switch {
		case x.Outcome == plan.Refused && x.Change.Knob == plan.CPUs: // others are to have them
			refused[x.Change.Cgroup.Path], c.at, log = true, time.Time{}, c.Log.Warn
		case x.Outcome == plan.Refused: // it has its CPUs all the same
			log = c.Log.Warn
		case x.Outcome == plan.Applied && x.Change.Knob == plan.SubtreeControl, x.Outcome == plan.Applied && x.Change.Knob == plan.Partition:
			c.at = time.Time{}
		}
		log("CPUs", "cgroup", x.Change.Cgroup.Path, "knob", x.Change.Knob, "from", x.Change.From, "to", x.Change.To,
			"outcome", x.Outcome, "error", x.Err, "why", x.Change.Why)
	}
	before := c.shares
	c.shares = map[string]reserve.Share{}
	for _, sh := range c.last.Shares {
		if refused[sh.Path] {
			continue
		}
		c.shares[sh.Path] = sh
		if old, had := before[sh.Path]; !had || !old.CPUs.Equal(sh.CPUs) || old.Unlimited != sh.Unlimited {
			c.Log.Info("CPUs of its own", "cgroup", sh.Path, "cpus", sh.Own, "may_use", sh.CPUs, "quota_unlimited", sh.Unlimited)
			c.Agent.Due(now, sh.Path)
		}
	}
	for group := range before {
		if _, has := c.shares[group]; !has {
			c.Agent.Due(now, group)
		}
	}
	said := c.said
	c.said = map[string]bool{}
	for _, f := range c.last.Refused {
		key := f.Name + f.Why
		if c.said[key] = true; !said[key] {
			c.Log.Warn("no CPUs of its own", "cgroup", f.Name, "why", f.Why)
		}
	}
}

// reserveInput reads what stands.
func (c *CPUs) reserveInput(now time.Time, pods []workload.Pod) (reserve.Input, error) {
	in := reserve.Input{Rules: c.Rules, Inherits: c.Tree.Version() == cgroup.V2, Shield: c.shield.Group}
	if !c.Tree.HasCPUSets() {
		return in, errors.New("there is no cpuset controller here; hint: on cgroup v1 mount it beside the cpu controller")
	}
	if c.Owner != nil {
		in.Owner = c.Owner()
	}
	if c.Kept != nil {
		kept, more := c.Kept()
		in.Rules.CPUs, in.Rules.Floor = in.Rules.CPUs.Union(kept), max(in.Rules.Floor, more)
		in.Requested = more
	}
	var err error
	if in.Topology, err = c.Topology(); err != nil {
		return in, err
	}
	in.Isolated = c.isolated(in)
	sets, err := c.Tree.CPUSets("/")
	if err != nil {
		return in, err
	}
	in.Groups = c.seeCPUs(now, sets, in.Topology.Set())
	c.requesters(pods, &in)
	in.Partitions = in.Inherits && slices.ContainsFunc(in.Containers, func(x reserve.Container) bool {
		_, err := c.Tree.ExclusiveCPUs(x.Path)
		return err == nil
	})
	c.ancestorsOf(&in)
	return in, nil
}

// isolated are the CPUs that no balancing reaches. The root has not those of valid partitions below it (v2,
// kernel/cgroup/cpuset.c, cpuset.cpus.effective).
func (c *CPUs) isolated(in reserve.Input) cpu.Set {
	if effective, err := c.Tree.EffectiveCPUs("/"); err == nil && in.Inherits && len(effective) > 0 {
		return c.Isolated.Union(in.Topology.Set().Minus(effective))
	}
	return c.Isolated
}

// requesters lists who asks for CPUs, in the order in which they came, and sums what all others requested.
func (c *CPUs) requesters(pods []workload.Pod, in *reserve.Input) {
	since := map[workload.ID]int64{}
	for _, p := range pods {
		for _, x := range p.Containers {
			limit := c.limitOf(x)
			request := x.Request
			if request == 0 && !math.IsInf(limit, 1) {
				request = limit
			}
			asks, byNode := x.Asks(c.Rules)
			if asks == workload.ExclusiveNo || byNode && request == 0 {
				in.Requested += x.Request
				continue
			}
			if since[x.ID] = c.since[x.ID]; since[x.ID] == 0 {
				c.arrivals++
				since[x.ID] = c.arrivals
			}
			in.Containers = append(in.Containers, reserve.Container{ID: x.ID, Request: request, Limit: limit, Strict: asks == workload.ExclusiveStrict, ByNode: byNode})
		}
	}
	c.since = since
	slices.SortStableFunc(in.Containers, func(x, y reserve.Container) int { return int(since[x.ID] - since[y.ID]) })
}

// limitOf is a container's limit in CPUs, whatever stands in the file because of us.
func (c *CPUs) limitOf(x workload.Container) float64 {
	if x.Declared != nil {
		return x.Declared.Bandwidth.CPUs()
	}
	b, err := c.Tree.Bandwidth(x.Path)
	if err != nil {
		return math.Inf(1)
	}
	if e, known := c.Ledger.Entry(plan.Key{ID: x.ID, Knob: plan.Quota}); known {
		b.Quota, _ = e.Baseline.Time() // it was a time when it was written
	}
	return b.CPUs()
}

// ancestorsOf lists the groups from the root to those who ask, which must hand the cpuset controller on (v2).
func (c *CPUs) ancestorsOf(in *reserve.Input) {
	if !in.Inherits {
		return
	}
	seen := map[string]bool{}
	for _, x := range in.Containers {
		for at := path.Dir(x.Path); !seen[at]; at = path.Dir(at) {
			seen[at] = true
			if inode, err := c.Tree.Inode(at); err == nil {
				in.Ancestors = append(in.Ancestors, workload.ID{Path: at, Inode: inode})
			}
		}
	}
}

// countUnbound counts what no cpuset keeps off exclusive CPUs: processes and kernel threads of the root, and on v1 those in
// groups above containers that have some.
func (c *CPUs) countUnbound(in reserve.Input) {
	groups := map[string]bool{"/": true}
	for _, x := range in.Containers {
		for at := path.Dir(x.Path); !groups[at]; at = path.Dir(at) {
			groups[at] = true
		}
	}
	n := 0
	for group := range groups {
		pids, err := c.Tree.CPUSetTasks(group)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		n += len(pids)
	}
	c.unbound = n
}

// Problems are those of the status.
func (c *CPUs) Problems() []string {
	var list []string
	if c.problem != "" {
		list = append(list, c.problem)
	}
	for _, f := range c.last.Refused {
		list = append(list, f.Name+": no CPUs of its own: "+f.Why)
	}
	if why := c.shieldless(); why != "" {
		list = append(list, why)
	}
	for _, f := range c.last.Unconfined {
		list = append(list, f.Name+": not confined to the shared pool: "+strings.TrimSpace(f.Why))
	}
	for _, key := range c.Ledger.Ours(c.Of) {
		if e, _ := c.Ledger.Entry(key); e.Leaving && e.Problem != "" {
			list = append(list, fmt.Sprintf("%s: its %s is not put back to %q: %s", key.Path, key.Knob, e.Baseline, e.Problem))
		}
	}
	return list
}

// Next is when the groups' CPUs are to be looked at again, if that is before another time.
func (c *CPUs) Next(now, other time.Time) time.Time {
	at := other
	switch {
	case !c.active:
	case c.at.IsZero():
		at = now.Add(gather)
	case c.soon:
		at = c.at.Add(reserveGap)
	default:
		at = c.at.Add(reserveEvery)
	}
	if at.Before(other) {
		return at
	}
	return other
}
