package policy

import (
	"math"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/sample"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Group is what is known of one control group at one turn.
type Group struct {
	workload.ID
	Strategy      strategy.Strategy
	Request       float64 // CPUs; 0: not known
	Class         workload.Class
	Deprioritized bool // the kernel runs it only when nothing else wants to (cpu.idle, of it or of a group above)
	Paused        bool
	Unlimited     bool          // it has CPUs of its own, and can use no others
	CPUs          int           // that it is bound to; 0: to none
	Starting      bool          // it is new, and in its start
	Limit         cpu.Bandwidth // its owner's
	Resized       bool          // that is another one since the last turn
	QuotaBlocked  plan.Blocked  // why the quota may not be written
	BurstBlocked  plan.Blocked
	Disk          cpu.Bandwidth  // what the files hold
	Ready         bool           // a task is in it: the owner has set it up
	Reading       sample.Reading // of this turn, when Looked
	Looked        bool
	// Quiet is until when, at least, it has used nothing since the reading before. Zero: not known.
	Quiet time.Time
}

// Pod is a group with containers in it, or just containers, when its ID is zero.
type Pod struct {
	Group
	Ceiling    float64 // CPUs that the nearest finite ancestor outside allows; +Inf when there is none
	Own        bool    // its limit is one for all its containers together (workload.Pod)
	Containers []Group
	Scopes     []Scope // those of the containers, as far as they have one with a limit
}

// Scope is the group around that of a container, which has the container's limit too (workload.Container).
type Scope struct {
	Group
	Of workload.ID // the container
}

// Input is everything that a turn decides on.
type Input struct {
	Now   time.Time
	Node  Node
	Rules Rules
	// Pods need not have groups that were Stable (View), and to which nothing has happened since.
	Pods []Pod
	Gone []workload.ID
	Held bool // nothing may be written
	// BurstCut is the part of all bursts asked for that the node cannot bear (risk.go).
	BurstCut float64
	// Subscribed says that there are throttle events, so that each throttle has been, or will be, a case for
	// AnswerThrottles. Throttles are those since the last turn for which there was none. Missed says that some were
	// lost since then.
	Subscribed bool
	Missed     bool
	Throttles  []Throttle
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
	KindRestore  Kind = "restore"   // the policy, or an operator, wants nothing of ours
	KindPod      Kind = "pod"       // a pod follows its containers
	KindReserve  Kind = "reserve"   // the quota of a container with CPUs of its own is lifted
	KindRefill   Kind = "refill"    // a throttle is ended, or prevented, by a refill
)

// View is what was decided for one group, for the status.
type View struct {
	Cgroup         workload.ID
	IsPod          bool
	Limit          cpu.Bandwidth // its owner's
	RequestedQuota time.Duration
	RequestedBurst time.Duration
	BudgetLeft     time.Duration // cpu.Unlimited: no bound
	Why            string
	Watched        bool         // a decision may hang on what it uses: every reading is to be complete
	Stable         bool         // nothing is to be done for it until it uses CPU, or something is written
	Window         sample.Usage // what happened since the last look; zero when not looked at
	AboveLimit     time.Duration
	SuppressEvents bool          // its throttles need no events: nothing can be done about them before the next look
	AtCap          time.Duration // of a throttle that the cap leaves standing: how long it lasts
	LimitTooLow    bool          // throttled in more than half of the periods of a minute
}

// Output is what a turn decided.
type Output struct {
	Intents []plan.Intent
	Kinds   map[Kind]int64
	Views   []View
	Later   []Throttle                // what is to be brought again when it is due: Throttle.Due
	Looks   map[workload.ID]time.Time // groups that are to be looked at at a certain time, earlier than usual
	Granted float64                   // CPUs above limits, in all
	Node    Node                      // the share pool that was judged
}

// State is what the policy remembers from turn to turn. It depends on its inputs only: same inputs, same outputs.
type State struct {
	groups   map[workload.ID]*memory
	overload time.Time // since when; zero when not
	relief   []relief
	refills  []relief // what refills handed out, and the node's use does not show yet
	rest     rest
	trust    trust // that refills have effect
}

// rest is what the last whole turn found of the node, for the turns of single groups.
type rest struct {
	reserved    float64 // CPUs that are not the share pool's
	reservedUse float64 // CPUs in use that do not count against it
	above       float64 // CPUs that raised groups use above their limits
	held        float64 // CPUs that are granted already
	starts      float64 // CPUs that starts use above their quotas
}

// off takes off the machine what is not the share pool's.
func (r rest) off(n Node) Node {
	n.Capacity, n.Used = max(0, n.Capacity-r.reserved), max(0, n.Used-r.reservedUse)
	return n
}

// relief is what a group uses more or less by a decision, as long as the node's use does not show it.
type relief struct {
	of    workload.ID
	until time.Time
	cpus  float64
}

// memory is what is remembered of one group.
type memory struct {
	last             sample.Reading
	history          sample.History
	phase            sample.Phase
	ran              bool // used CPU in the window before, within a period
	budget           budget
	wait             backoff // after the guard took a raise back
	throttledAt      time.Time
	everStood        bool
	overdue          time.Time // since when a lowering has waited for room
	throttledPeriods throttledPeriods
	cappedUntil      time.Time     // the end of the last period in which the cap left a throttle standing
	started          time.Time     // when it was in its start last
	eventsSuppressed bool          // View.SuppressEvents
	savings          time.Duration // time left unused, up to the burst that was asked for
	saved            time.Duration
	handed           time.Duration
	lastWrite        time.Time
	holds            cpu.Bandwidth // what the files hold, as far as is known
	written          time.Time     // when it was done
	refilled         time.Time     // when the last write was begun that the kernel took
	why              string
	view             View  // of the last whole turn
	trust            trust // that refills have effect
}

// NewState remembers nothing.
func NewState() *State {
	return &State{groups: map[workload.ID]*memory{}}
}

// backoff is that of raises after the guard took one back.
type backoff struct{ plan.Backoff }

func (b *backoff) hit(now time.Time) { b.Hit(now, time.Second, time.Minute) }

// candidate is one group during a turn.
type candidate struct {
	Group
	configured strategy.Strategy // before the load line cuts it
	m          *memory
	isPod      bool
	limit      cpu.Bandwidth // the baseline quota over the real period, the baseline burst
	ceiling    float64
	now        time.Time
	cpus       int
	window     sample.Usage
	stood      bool // throttled in the window
	decision
	requested time.Duration // burst asked for
	buffer    time.Duration // burst that is to be in the file
	capped    bool          // the cap is why it is not refilled
	stands    time.Duration // for how long the throttle lasts that the cap leaves standing
	postponed bool          // a larger one is wanted, in the next period
}

// decision is what a candidate shall hold.
type decision struct {
	quota time.Duration
	kind  Kind
	why   string
}

func (u *candidate) period() time.Duration { return u.Disk.Period }

func (u *candidate) raised() bool { return u.limit.Limited() && u.Disk.Quota > u.limit.Quota }

func (u *candidate) cap() time.Duration {
	c := capFor(u.limit, u.Strategy)
	if u.Starting {
		c = max(c, cpu.Percent(u.limit.Quota, u.Strategy.StartupBurstPercent))
	}
	if !math.IsInf(u.ceiling, 1) {
		c = min(c, max(u.limit.Quota, time.Duration(u.ceiling*float64(u.period()))))
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

// above is how many CPUs a raised group has used above its limit of late, without what writes handed out once.
func (u *candidate) above() float64 {
	if !u.raised() {
		return 0
	}
	return u.beyond(u.Disk.Quota)
}

// beyond is how many CPUs a group has used above its limit of late, as far as this quota allows.
func (u *candidate) beyond(quota time.Duration) float64 {
	return min(u.excess(quota), max(0, u.m.history.Mean(nodeSpan)-u.limit.CPUs()))
}

// starts says whether the candidate is in its start.
func (u *candidate) starts(does bool) {
	if u.Starting = does; does {
		u.m.started = u.now
	}
}

// handed is how many CPUs the candidate has used of late above its quota, when it was in its start: what refills, and
// a burst that was saved up, handed out once.
func (u *candidate) handed() float64 {
	if u.now.Sub(u.m.started) >= nodeSpan {
		return 0
	}
	return max(0, u.m.history.MeanBefore(u.now, nodeSpan)-u.Disk.CPUs())
}

// nodeSpan is how far the node's mean use looks back, and the groups' beside it: a second, as the peers' metrics have it. On
// a small machine one service that is bursting fills half of that by itself, and a shorter mean takes that for a load to be
// guarded against.
const nodeSpan = time.Second

// NodeSpan is how far back Node.Used is to look.
func NodeSpan() time.Duration { return nodeSpan }

func (u *candidate) weight() float64 {
	if u.Request > 0 {
		return u.Request
	}
	return u.limit.CPUs()
}
