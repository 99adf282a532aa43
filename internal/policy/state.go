package policy

import (
	"math"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/receipt"
	"plimsoll/internal/sample"
	"plimsoll/internal/slab"
	"plimsoll/internal/strategy"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// Group is what is known about one control group in one turn.
type Group struct {
	workload.ID
	Strategy      strategy.Strategy
	Request       float64 // CPUs; 0: not known
	Class         workload.Class
	Deprioritized bool          // the kernel runs it only when no other task is runnable (cpu.idle of it or above)
	Paused        string        // why it is kept at its limit, whatever its strategy; "": it is not
	Unlimited     bool          // it has exclusive CPUs, and can use no others
	CPUs          int           // the number of CPUs that it is bound to; 0: not bound
	Starting      bool          // it is in its start
	Sandbox       bool          // it is none of the pod's own containers (workload)
	Limit         cpu.Bandwidth // its owner's
	Resized       bool          // Limit has changed since the last turn
	QuotaBlocked  plan.Blocked  // why the quota may not be written
	BurstBlocked  plan.Blocked
	Disk          cpu.Bandwidth  // what the files hold
	Ready         bool           // it contains a task: its owner has set it up
	Reading       sample.Reading // of this turn, when Looked
	Looked        bool
	// Quiet is a time until which it has used no CPU since the previous reading. Zero: not known.
	Quiet time.Time
	// Lost is the wall time that it was throttled so far, where LostKnown.
	Lost      time.Duration
	LostKnown bool
	// RequestsThrottled is the throttled time of the requests that it has answered so far; nil: not known.
	RequestsThrottled *time.Duration
	// Scope is the group around a container's that has the container's limit too (workload.Container); nil: none.
	Scope *Group
}

// Pod is a group with containers in it, or containers without a pod, when its ID is zero.
type Pod struct {
	Group
	Ceiling    float64 // CPUs that the nearest finite ancestor outside allows; +Inf when there is none
	Own        bool    // its limit applies to all its containers together (workload.Pod)
	Namespace  string  // "" if unknown
	Containers []Group
}

// owner is whose the pod's groups are.
func (p Pod) owner() tenant.Owner {
	o := tenant.Owner{Pod: p.Path, Namespace: p.Namespace}
	if o.Pod == "" && len(p.Containers) > 0 {
		o.Pod = p.Containers[0].Path
	}
	return o
}

// Input is everything that the decisions of a turn depend on.
type Input struct {
	Now   time.Time
	Node  Node
	Rules Rules
	// Pods may omit groups that were Stable (View) and have neither run nor been written since.
	Pods []Pod
	Gone []workload.ID
	Held bool // nothing may be written
	// Extra bounds the CPUs above limits (bounds.go).
	Extra strategy.ExtraCores
	// BurstCut is the part of all bursts asked for that the node cannot bear (package risk).
	BurstCut float64
	// Subscribed says that throttle events are on, so that each throttle has been or will be passed to AnswerThrottles.
	// Throttles lists the throttles since the last turn that were not passed to it. Missed says that events were lost
	// since then.
	Subscribed bool
	Missed     bool
	Throttles  []bandwidth.Throttle
	Yield      func() // called between two pods of a whole turn; nil: nobody waits
}

func (in Input) yield() {
	if in.Yield != nil {
		in.Yield()
	}
}

// endsThrottles says whether throttles are ended one by one.
func (in Input) endsThrottles() bool { return in.Subscribed && in.Rules.Refill }

// Kind names a decision for the metrics.
type Kind string

// The kinds of decisions.
const (
	KindBurst    Kind = "burst"     // a burst buffer is sized
	KindRaise    Kind = "raise"     // a quota is raised
	KindGiveBack Kind = "give-back" // a raise is no longer needed
	KindGuard    Kind = "guard"     // the node's load takes a raise back
	KindBudget   Kind = "budget"    // the time above the limit is used up
	KindRestore  Kind = "restore"   // the policy or an operator allows no value of ours
	KindPod      Kind = "pod"       // a pod follows its containers
	KindReserve  Kind = "reserve"   // the quota of a container with exclusive CPUs is removed
	KindRefill   Kind = "refill"    // a throttle is ended, or prevented, by a refill
	KindBound    Kind = "bound"     // a raise is lowered so that others have their share of the bound
)

// The kinds of throttles that are not answered by a refill.
const (
	KindRefusedCap    Kind = "refused-cap"    // the cap of the period is reached
	KindRefusedBudget Kind = "refused-budget" // the time above the limit is used up
	KindRefusedNode   Kind = "refused-node"   // the node cannot spare it
	KindRefusedWrites Kind = "refused-writes" // its tenant's share of the writes is used up
	KindRefusedShort  Kind = "refused-short"  // it began just before its period's end
	KindRefusedLate   Kind = "refused-late"   // it was read just before its period's end
	KindRefusedOther  Kind = "refused-other"  // the group may not be refilled now: policy, pause, receipt
)

// View is the decision for one group, for the status.
type View struct {
	WholeView
	Cgroup         workload.ID
	Limit          cpu.Bandwidth // its owner's
	Why            string
	Watched        bool          // a decision may depend on its use: every reading must be complete
	Stable         bool          // nothing to do until it uses CPU or a program writes its files
	Window         sample.Usage  // the usage since the last reading; zero when it was not read
	SuppressEvents bool          // its throttles need no events: none can be answered before the next reading
	AtCap          time.Duration // how long a throttle lasts that is not ended because of the cap
	LimitTooLow    bool          // throttled in more than half of the periods of a minute
	Bounded        Bounded
}

// WholeView is the part of a View that only whole turns decide. The views until the next whole turn repeat it.
type WholeView struct {
	RequestedQuota time.Duration
	RequestedBurst time.Duration
	BudgetLeft     time.Duration // cpu.Unlimited: no bound
}

// Bounded is what a bound of the administrator's keeps a group from, in CPUs above its limit. The zero one: nothing.
type Bounded struct {
	By           string // extraCoresPerPod, extraCoresPerNamespace or extraCoresPerNode
	Asked, Given float64
}

// Output is the decisions of a turn.
type Output struct {
	Intents []plan.Intent
	Kinds   map[Kind]int64
	Views   []View
	Later   []bandwidth.Throttle      // to be passed to AnswerThrottles again when they are due (Due)
	Looks   map[workload.ID]time.Time // groups to read at a certain time, earlier than usual
	Granted float64                   // CPUs above limits, in all
	Node    Node                      // the share pool that the decisions are based on
}

// State is the policy's memory from turn to turn. It depends on its inputs only: same inputs, same outputs.
type State struct {
	groups   map[workload.ID]*memory
	turn     slab.Slab[candidate] // of a whole turn, and of answers until the next one
	views    []View
	overload time.Time // when the overload began; zero: none
	relief   []relief
	refills  []relief // what refills handed out, and the node's use does not show yet
	pool     pool
	sums     sums
	trust    trust // that refills have effect
	writes   tenant.Writes
	extra    tenant.Extra
	seed     uint64          // of the receipts
	receipts receipt.Figures // of all groups
	// unclaimed are experiments that wait: of groups that this agent has not decided about yet, and of containers in
	// pods whose own limit binds first.
	unclaimed map[workload.ID]KeptReceipt
}

// Wrote says how many refills of the last answer were written, and how long that took.
func (s *State) Wrote(writes int, took time.Duration) { s.writes.Took(writes, took) }

// pool is what divides the machine into its share pool and the rest, as of the last full turn, for the turns of single
// pods.
type pool struct {
	reserved    float64 // CPUs that are not the share pool's
	reservedUse float64 // CPUs in use that do not count against it
	starts      float64 // CPUs that starts use above their quotas
}

// sums are the use and grants above limits, in CPUs, as guard adds them up in a full turn for the turns of single pods.
type sums struct {
	above   float64            // that raised groups use
	granted float64            // that are granted already
	over    float64            // that groups use, raised or not
	tenants map[string]float64 // that each tenant's groups use, or may use
}

// off reduces the machine to its share pool.
func (p pool) off(n Node) Node {
	n.Capacity, n.Used = max(0, n.Capacity-p.reserved), max(0, n.Used-p.reservedUse)
	return n
}

// relief is by how much a decision changes a group's use, as long as the node's use does not show the change.
type relief struct {
	of     workload.ID
	tenant string
	until  time.Time
	cpus   float64
}

// memory is what is remembered about one group.
type memory struct {
	owner            tenant.Owner
	last             sample.Reading
	history          sample.History
	phase            sample.Phase
	ran              bool // used CPU in the window before, within a period
	budget           budget
	wait             plan.Backoff // after the guard took a raise back
	throttledAt      time.Time
	everThrottled    bool
	relieved         time.Time // until then the node's use may still show a raise that was lowered
	overdue          time.Time // when a waiting lowering was first postponed
	seeking          time.Time // since when a moment is sought for a raise (changes.go)
	throttledPeriods throttledPeriods
	cappedUntil      time.Time     // the end of the last period in which a throttle was not ended because of the cap
	started          time.Time     // when it was last in its start
	eventsSuppressed bool          // View.SuppressEvents
	quiet            plan.Backoff  // of its events, when they are refused for want of writes (refill.go)
	savings          time.Duration // time left unused, up to the burst that was asked for
	saved            time.Duration
	handed           time.Duration
	lastWrite        time.Time
	inFile           cpu.Bandwidth // what the files hold, as far as known
	written          time.Time     // when the last write returned
	refilled         time.Time     // when the last successful write began
	why              string
	whole            WholeView
	watched          bool  // View.Watched of the last whole turn
	trust            trust // that refills have effect
	experiment       *receipt.Experiment
	sampled          *Sampled       // what the experiment measures; nil: there is none
	lost             time.Duration  // Group.Lost at the last reading
	requests         *time.Duration // Group.RequestsThrottled then
	promised         float64        // CPUs of a raise that the last whole turn granted and did not write
}

// NewState makes an empty State. The seed says which spells are withheld for receipts.
func NewState(seed uint64) *State { return &State{groups: map[workload.ID]*memory{}, seed: seed} }

// candidate is one group during a turn.
type candidate struct {
	Group
	configured strategy.Strategy // before the load line cuts it
	m          *memory
	isPod      bool
	limit      cpu.Bandwidth // the baseline quota over the real period, the baseline burst
	ceiling    float64
	bound      string // which bound makes the ceiling what it is; "": none does
	cutBy      string // which bound keeps it from what it wants
	now        time.Time
	cpus       int
	window     sample.Usage
	throttled  bool // throttled in the window
	decision
	requested time.Duration // the requested burst
	buffer    time.Duration // the burst for the file
	capped    bool          // it is not refilled because of the cap
	atCap     time.Duration // how long a throttle lasts that is not ended because of the cap
	postponed bool          // a larger burst is written in the next period
	spells    []receipt.Outcome
}

// decision is the quota decided for a candidate.
type decision struct {
	quota time.Duration
	kind  Kind
	why   string
}

func (u *candidate) period() time.Duration { return u.Disk.Period }

func (u *candidate) raised() bool { return u.limit.Limited() && u.Disk.Quota > u.limit.Quota }

func (u *candidate) cap() time.Duration {
	c := u.strategyCap()
	if !math.IsInf(u.ceiling, 1) {
		c = min(c, max(u.limit.Quota, time.Duration(math.Round(u.ceiling*float64(u.period())))))
	}
	return c
}

// strategyCap is the cap without a ceiling.
func (u *candidate) strategyCap() time.Duration {
	c := capFor(u.limit, u.Strategy)
	if u.Starting {
		c = max(c, cpu.Percent(u.limit.Quota, u.Strategy.StartupBurstPercent))
	}
	return c
}

// excess is how many CPUs a quota grants above the limit.
func (u *candidate) excess(quota time.Duration) float64 {
	if !u.limit.Limited() || quota == cpu.Unlimited {
		return 0
	}
	return max(0, float64(quota-u.limit.Quota)/float64(u.period()))
}

// above is how many CPUs a raised group has recently used above its limit, without one-time grants of writes.
func (u *candidate) above() float64 {
	if !u.raised() {
		return 0
	}
	return u.beyond(u.Disk.Quota)
}

// beyond is how many CPUs a group has used above its limit of late, as far as this quota allows.
func (u *candidate) beyond(quota time.Duration) float64 { return min(u.excess(quota), u.over()) }

// over is how many CPUs a group has used above its limit of late, by whatever.
func (u *candidate) over() float64 {
	if !u.limit.Limited() {
		return 0
	}
	return max(0, u.m.history.Mean(NodeSpan)-u.limit.CPUs())
}

// starts records whether the candidate is in its start.
func (u *candidate) starts(does bool) {
	if u.Starting = does; does {
		u.m.started = u.now
	}
}

// startUse is how many CPUs the candidate recently used above its quota while it was in its start: one-time grants of
// refills and of a saved burst.
func (u *candidate) startUse() float64 {
	if u.now.Sub(u.m.started) >= NodeSpan {
		return 0
	}
	return max(0, u.m.history.MeanBefore(u.now, NodeSpan)-u.Disk.CPUs())
}

// NodeSpan is the span of the mean use of the node (Node.Used) and of the groups: a second, as in the metrics of
// Koordinator. On a small machine a single bursting service would dominate a shorter mean, and the guard would take
// that for an overload.
const NodeSpan = time.Second

func (u *candidate) weight() float64 {
	if u.Request > 0 {
		return u.Request
	}
	return u.limit.CPUs()
}
