// Package exclusive gathers the inputs of decisions on exclusive CPUs: the containers that request some, the cpusets of
// the groups, and the CPUs of the machine. Package reserve decides. The ledger compares the values of the files. The
// package also keeps what the status shows, and writes only through the agent's writer.
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
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// reserveEvery is how often the groups' CPUs are read although nothing reports a change, and reserveGap the shortest
// time between two readings: a program that makes groups without end must cost a bounded number of readings.
const (
	reserveEvery = 2 * time.Second
	reserveGap   = 50 * time.Millisecond
	// gather is how soon a reading follows a turn that requests one.
	gather = 5 * time.Millisecond
)

// Options are what exclusive CPUs need to know of the node.
type Options struct {
	Topology func() (cpu.Topology, error) // nil: no container gets any
	Owner    func() string                // another program that allocates the node's CPUs; "": none
	Kept     func() (cpu.Set, float64)    // CPUs that the kubelet reserves for the system, by set and by number
	Isolated cpu.Set                      // CPUs that boot parameters exclude from load balancing
	Rules    strategy.Reserve

	state  *reserve.State // of the agent whose dry run this is
	ledger *ledger.Ledger
}

// Known is the ledger of the agent whose dry run this is; nil: this is no dry run.
func (o Options) Known() *ledger.Ledger { return o.ledger }

// Agent is what this package needs of the agent.
type Agent interface {
	// Due makes the next turn read a group: its quota may be removed or restored now.
	Due(now time.Time, group string)
	// Adopt and Forget bring the journal in step with the ledger, before the turn's first write.
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value)
	Forget(id workload.ID, knob plan.Knob)
	// Overrode records that another program has set a group's CPUs.
	Overrode(group string)
	// Yield lets waiting throttles be answered. Outside does, too, while do runs, which must use neither the ledger nor
	// the agent.
	Yield()
	Outside(do func())
}

// Shielder moves the tasks of the cpuset root into a group, and back.
type Shielder interface {
	Shield() (apply.Shield, error)
	Unshield() []plan.Result
}

// CPUs is the state of exclusive CPUs.
type CPUs struct {
	Options
	Tree   *cgroup.Tree
	Log    *slog.Logger
	Ledger *ledger.Ledger
	Agent  Agent
	Dry    bool // nothing is written: what is decided counts as written

	state     *reserve.State
	at        time.Time // of the last reading; zero: read in the next turn
	pods      []workload.Pod
	requested bool // a container requests exclusive CPUs
	active    bool // the groups' CPUs are read
	ours      bool // a value of ours is in a file, or was at the last reading
	soon      bool // groups were made or removed
	waits     bool // for a quota that is restored in this turn
	since     map[workload.ID]int64
	arrivals  int64
	shares    map[string]reserve.Share
	last      reserve.Output
	unbound   int // processes that no cpuset keeps off exclusive CPUs
	shield    apply.Shield
	rules     strategy.Reserve
	problem   string
	said      map[string]bool
}

// New makes the state of an agent that starts.
func New(c CPUs) *CPUs {
	if c.state = c.Options.state; c.state == nil {
		c.state = new(reserve.State)
	}
	c.since = map[workload.ID]int64{}
	return &c
}

// DryRun returns options for a dry run, which decides as this one would.
func (c *CPUs) DryRun() Options {
	o := c.Options
	o.state, o.ledger = c.state.Clone(), c.Ledger.Clone(c.Of)
	return o
}

// Reserve sets new rules.
func (c *CPUs) Reserve(rules strategy.Reserve) {
	c.Rules, c.at = rules, time.Time{}
	c.pods = nil // evaluate the containers' requests again
}

// Share returns the CPUs of a container; zero: it has no exclusive ones.
func (c *CPUs) Share(group string) reserve.Share { return c.shares[group] }

// Active says whether the groups' CPUs are read.
func (c *CPUs) Active() bool { return c.active }

// Again makes the next turn read the groups' CPUs.
func (c *CPUs) Again() { c.at = time.Time{} }

// Regroup makes a turn read the groups' CPUs soon: a group was made or removed.
func (c *CPUs) Regroup() { c.soon = true }

// OfCPUs says whether a knob serves to make CPUs exclusive.
func OfCPUs(knob plan.Knob) bool {
	switch knob {
	case plan.CPUs, plan.SubtreeControl, plan.Exclusive, plan.Partition:
		return true
	}
	return false
}

// Of says whether this package manages a file: colocation may claim one, too.
func (c *CPUs) Of(key plan.Key) bool {
	if !OfCPUs(key.Knob) { // first: most are not
		return false
	}
	e, _ := c.Ledger.Entry(key)
	return e.By != plan.ForColocation
}

// due says whether the groups' CPUs are read in this turn.
func (c *CPUs) due(now time.Time, pods []workload.Pod) bool {
	if !workload.Same(pods, c.pods) {
		c.pods, c.requested, c.at = pods, false, time.Time{}
		for _, p := range pods {
			c.requested = c.requested || slices.ContainsFunc(p.Containers, func(x workload.Container) bool {
				exclusive, _ := x.Asks(c.Rules)
				return exclusive != workload.ExclusiveNo
			})
		}
	}
	c.active = c.requested && c.Rules.Policy != strategy.ReserveNone || c.ours ||
		len(c.shares)+len(c.last.Refused) > 0 || c.shield.Group != ""
	age := now.Sub(c.at)
	return c.active && (age >= reserveEvery || c.soon && age >= reserveGap)
}

// Decide makes the intents by which the containers that request it get exclusive CPUs and all other groups stay off
// them, and shows the ledger the values of the files.
func (c *CPUs) Decide(now time.Time, pods []workload.Pod) ledger.Want {
	if c.Topology == nil || !c.due(now, pods) {
		return ledger.Want{}
	}
	c.at, c.soon, c.problem = now, false, ""
	in, err := c.reserveInput(now, pods)
	if err != nil {
		c.problem = fmt.Sprintf(report.ProblemReserve, err)
		return ledger.Want{}
	}
	var out reserve.Output
	c.Agent.Outside(func() { out = c.state.Decide(in) })
	c.waits = out.Waits && !c.last.Waits // for a quota that is restored in this turn
	c.last, c.rules = out, in.Rules
	for _, intent := range out.Intents {
		if intent.Knob != plan.CPUs {
			c.seeCPUFile(now, intent.Key)
		}
	}
	c.Agent.Outside(func() { c.countUnbound(in) })
	return ledger.Want{Intents: out.Intents, Of: c.Of}
}

// Done records the CPUs that containers have after the writes, and requests a new decision where the kernel's answer
// requires one.
func (c *CPUs) Done(now time.Time, w ledger.Want, results []plan.Result) {
	if w.Of == nil {
		return
	}
	c.ours = len(results)+len(c.Ledger.Ours(c.Of)) > 0 // a group may have been made meanwhile
	if c.waits {
		c.at = time.Time{}
	}
	for _, x := range results {
		log := c.Log.Debug
		switch {
		case x.Outcome == plan.Refused && x.Change.Knob == plan.CPUs: // allocate these CPUs to others
			c.at, log = time.Time{}, c.Log.Warn
		case x.Outcome == plan.Refused: // the container has its CPUs in any case
			log = c.Log.Warn
		case x.Outcome != plan.Applied:
		case x.Change.Knob == plan.SubtreeControl, x.Change.Knob == plan.Partition:
			c.at = time.Time{}
		}
		log("CPUs", "cgroup", x.Change.Cgroup.Path, "knob", x.Change.Knob, "from", x.Change.From, "to", x.Change.To,
			"outcome", x.Outcome, "error", x.Err, "why", x.Change.Why)
	}
	before, bound := c.shares, c.bound()
	c.shares = map[string]reserve.Share{}
	for _, sh := range c.last.Shares {
		if !c.Dry && bound[sh.Path] != plan.Set(sh.CPUs) { // the write was held or refused: it keeps its quota
			continue
		}
		c.shares[sh.Path] = sh
		if old, had := before[sh.Path]; !had || !old.CPUs.Equal(sh.CPUs) || old.Unlimited != sh.Unlimited {
			c.Log.Info("exclusive CPUs",
				"cgroup", sh.Path, "cpus", sh.Own, "may_use", sh.CPUs, "quota_unlimited", sh.Unlimited)
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
			c.Log.Warn("no exclusive CPUs", "cgroup", f.Name, "why", f.Why)
		}
	}
}

// reserveInput reads the inputs of a decision.
func (c *CPUs) reserveInput(now time.Time, pods []workload.Pod) (reserve.Input, error) {
	in := reserve.Input{Rules: c.Rules, Inherits: c.Tree.Version() == cgroup.V2, Shield: c.shield.Group}
	if !c.Tree.HasCPUSets() {
		return in, errors.New("there is no cpuset controller here; hint: on cgroup v1 mount it beside the cpu " +
			"controller")
	}
	var sets []cgroup.CPUSet
	var err error
	c.Agent.Outside(func() { sets, err = c.readMachine(&in) })
	if err != nil {
		return in, err
	}
	in.Groups = c.seeCPUs(now, sets, in.Topology.Set())
	c.requesters(pods, &in)
	in.Partitions = in.Inherits && slices.ContainsFunc(in.Containers, func(x reserve.Container) bool {
		_, err := c.Tree.ExclusiveCPUs(x.Path)
		return err == nil
	})
	c.seeExclusive(&in)
	c.ancestorsOf(&in)
	return in, nil
}

// requesters lists the containers that request exclusive CPUs, in the order of their arrival, and sums the requests of
// all others.
func (c *CPUs) requesters(pods []workload.Pod, in *reserve.Input) {
	since := map[workload.ID]int64{}
	for _, p := range pods {
		c.Agent.Yield()
		for _, x := range p.Containers {
			limit := c.limitOf(x)
			request := x.Request
			if request == 0 && !math.IsInf(limit, 1) {
				request = limit
			}
			exclusive, byNode := x.Asks(c.Rules)
			if exclusive == workload.ExclusiveNo || byNode && request <= workload.LeastRequest && math.IsInf(limit, 1) {
				in.Requested += x.Request
				continue
			}
			if since[x.ID] = c.since[x.ID]; since[x.ID] == 0 {
				c.arrivals++
				since[x.ID] = c.arrivals
			}
			in.Containers = append(in.Containers, reserve.Container{ID: x.ID, Request: request, Limit: limit,
				Strict: exclusive == workload.ExclusiveStrict, ByNode: byNode})
		}
	}
	c.since = since
	slices.SortStableFunc(in.Containers, func(x, y reserve.Container) int { return int(since[x.ID] - since[y.ID]) })
}

// limitOf is a container's limit in CPUs, also while a quota of ours is in its file.
func (c *CPUs) limitOf(x workload.Container) float64 {
	if x.Declared != nil {
		return x.Declared.Bandwidth.CPUs()
	}
	b, err := c.Tree.Bandwidth(x.Path)
	if err != nil {
		return math.Inf(1)
	}
	if e, known := c.Ledger.Entry(plan.Key{ID: x.ID, Knob: plan.Quota}); known {
		b.Quota, _ = e.Baseline.Time() // the ledger has it from a quota
	}
	return b.CPUs()
}

// ancestorsOf lists the groups above the requesting containers, from the root on. They must enable the cpuset
// controller for their children (v2).
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

// countUnbound counts the processes that no cpuset keeps off exclusive CPUs: processes and kernel threads of the root,
// and on v1 those in groups above containers with exclusive CPUs.
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

// Problems lists the problems for the status.
func (c *CPUs) Problems() []string {
	var list []string
	if c.problem != "" {
		list = append(list, c.problem)
	}
	for _, f := range c.last.Refused {
		list = append(list, fmt.Sprintf(report.ProblemNoExclusiveCPUs, f.Name, f.Why))
	}
	if why := c.shieldless(); why != "" {
		list = append(list, why)
	}
	for _, f := range c.last.Unconfined {
		list = append(list, fmt.Sprintf(report.ProblemNotConfined, f.Name, strings.TrimSpace(f.Why)))
	}
	for _, key := range c.Ledger.Ours(c.Of) {
		if e, _ := c.Ledger.Entry(key); e.Leaving && e.Problem != "" {
			list = append(list, fmt.Sprintf(report.ProblemCPUsNotRestored, key.Path, key.Knob, e.Baseline, e.Problem))
		}
	}
	return list
}

// Next is when the groups' CPUs are read next, or other if that is earlier.
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
