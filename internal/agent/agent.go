// Package agent is the loop: it reads the containers that are due, decides, plans the changes, does them, learns from
// the results and records them (turn.go).
//
// The loop decides when and in which order. Most events (a container appears, a limit is written, a configuration is
// read) only request an earlier turn. Urgent ones write on the thread that receives them, under the same lock:
// AnswerThrottles when a throttle begins, PrepareResize when an owner is about to write another limit, and Pause, Hold
// and Retire, which return the results to their callers.
package agent

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/colocation"
	"plimsoll/internal/cpu"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/journal"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/outcome"
	"plimsoll/internal/pauses"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/preempt"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
	"plimsoll/internal/risk"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Discoverer finds the containers.
type Discoverer interface {
	// Pods returns a snapshot, at little cost, with all path and limit events since the last call. A snapshot is
	// immutable: after any change Pods returns another slice.
	Pods() ([]workload.Pod, error)
	// Touched lists the groups whose limit files or tasks were written since the last call.
	Touched() []string
	// Wake has a value when something changed.
	Wake() <-chan struct{}
	// Counts returns the numbers of rescans and lost events since the start.
	Counts() (rescans, lost int64)
}

// ThrottleEvents reports throttles when they begin.
type ThrottleEvents interface {
	// Watch subscribes to the events of exactly these groups, by inode.
	Watch(groups []uint64) error
	// SuppressEvents stops the events of a group until it is called with false. Its throttles are still counted.
	SuppressEvents(group uint64, suppress bool) error
	// Limit sets the quota by which the use of a group's periods is classified, if not the one in force.
	Limit(group uint64, quota time.Duration) error
	// Read waits for throttles and returns them, or none at time until, if that is not zero. After an error no more
	// throttles will come; the error is io.EOF after Close.
	Read(until time.Time) ([]bandwidth.Throttle, error)
	// Lost counts the throttles that were not reported since the start, except those of groups with too many of them.
	Lost() int64
	// Unplaced is not 0 once the kernel's programs had no room for all CPUs of the groups. Of some groups the use of
	// periods is not known then.
	Unplaced() int64
	// Priority is the priority of the reading thread: "fifo" is real time, "nice -20" and "plain" are fallbacks, with
	// the reason; "" before Read has begun.
	Priority() (got, why string)
	// Totals returns the totals of a group, over all throttles; false for one that is not watched.
	Totals(group uint64) (report.Throttles, bool)
	// Uses returns the periods of a group by their use, in sixteenths of the limit; nil for one that is not watched.
	Uses(group uint64) []int64
	Close() error
}

// Host measures the machine.
type Host interface {
	observe.Host
	// Self is the CPU time and the resident memory of this process.
	Self() (used time.Duration, rss int64)
}

// Writer carries out changes, as apply.Writer says.
type Writer interface {
	Claim([]plan.Change)
	Steps([]plan.Change) []plan.Change
	Do([]plan.Change) []plan.Result
	Restore(filter func(journal.Entry) bool, toSpec bool) []plan.Result
	TryRestore(filter func(journal.Entry) bool) []plan.Result
	RestoreAgain() []plan.Result
	Rebase(id workload.ID, knob plan.Knob, base plan.Value) error
	Forget(id workload.ID, knob plan.Knob) error
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) error
	SetHold(bool)
	Shield() (apply.Shield, error)
	Unshield() []plan.Result
}

// Switch is the kill switch, which is kept on disk.
type Switch interface {
	Held() bool
	Hold(reason string, at time.Time) error
	Resume() error
	// Why returns the reason of a hold, "" if none was given, and its time, zero without a hold.
	Why() (reason string, since time.Time)
}

// Options are the parts of an agent.
type Options struct {
	Tree       *cgroup.Tree
	Discover   Discoverer
	Host       Host
	Events     ThrottleEvents       // nil: throttles are found by polling
	Polling    string               // why there are no Events
	Missing    []report.MissingPart // what Events does not report
	Uncounted  string               // why the use of periods is not counted; "": it is
	Writer     Writer
	Switch     Switch
	Pauses     *pauses.Pauses
	Undone     func() ([]apply.Undone, error)           // owners' writes that refills may have undone; nil: not known
	Refillable func(undeclared, declared []workload.ID) // called with all groups that may be refilled; may be nil
	Foreign    func(group, what string)                 // called once for each other program that writes a limit
	Bounded    func(group, what string)                 // called once for each bound that limits a group
	Rules      policy.Rules
	Machine    policy.Machine   // its mechanisms for online before offline
	Schedulers schedext.Loader  // nil: no scheduler is loaded
	Overruled  func() string    // names the sched_ext scheduler in force, "" if none is; nil: none can be
	Tasks      colocation.Tasks // nil: no knob of tasks is set
	Strategy   strategy.Node    // of the node
	Clock      func() time.Time
	Log        *slog.Logger
	Seed       uint64 // of the spells that are withheld for receipts
	Version    string
	Kernel     string
	DryRun     bool                // Plan is called in place of Tick, and there is no Writer
	Successor  func() bool         // says at the end whether another agent takes over; nil: none does
	Beat       func(now time.Time) // called after turns, as a heartbeat (package lease); never blocks; nil: no lease
	Reserving  exclusive.Options
}

// Agent manages the containers of one machine.
type Agent struct {
	Options
	mu             preempt.Mutex // of everything below; a turn holds it, and yields to AnswerThrottles
	state          *policy.State
	ledger         *ledger.Ledger
	reader         *observe.Reader
	scheduler      *schedext.Keeper
	otherScheduler schedext.Other
	node           observe.NodeMeter
	groups         map[workload.ID]*group
	started        time.Time
	snapshot       []workload.Pod              // of the discovery
	answered       map[*workload.Pod]time.Time // pods answered since this turn began to read: their last refill
	resizes        *pauses.Pauses              // groups whose owner is about to write other limits
	subscription   subscription
	risk           *risk.Meter
	colocation     *colocation.Colocation
	cpus           *exclusive.CPUs
	share          func(group string) reserve.Share // the exclusive CPUs of a group
	next           time.Time                        // when the next turn is due
	record         *outcome.Recorder
	inputs         []policy.Pod // of the last turn, for their memory
	config         error
	failed         error                // of the last discovery
	poke           chan struct{}        // a turn is requested now
	sooner         chan struct{}        // next is earlier than before
	turned         chan struct{}        // a turn has ended
	notes          []outcome.Note       // what happened to files, not recorded yet
	unjournaled    []func() error       // changes of the journal that decisions require
	adopted        map[workload.ID]bool // groups of the journal of the agent before, until the first reading
	retired        time.Time            // when Retire was called; zero: it was not
	ended          bool                 // Run has ended, and everything is restored
	pending        map[plan.Key]bool    // restores that the kernel has refused, to be retried
	blind          bool                 // it was logged that not all quota files can be watched
	wasHeld        bool                 // nothing could be written in the last turn
}

// New makes an agent; Run starts it.
func New(o Options) *Agent {
	if o.Foreign == nil {
		o.Foreign = func(string, string) {}
	}
	if o.Beat == nil {
		o.Beat = func(time.Time) {}
	}
	a := &Agent{
		Options: o, state: policy.NewState(o.Seed), record: outcome.New(o.Log),
		ledger: cmp.Or(o.Reserving.Known(), ledger.New()), answered: map[*workload.Pod]time.Time{},
		groups: map[workload.ID]*group{}, pending: map[plan.Key]bool{}, resizes: pauses.New(""), started: o.Clock(),
		poke: make(chan struct{}, 1), sooner: make(chan struct{}, 1), turned: make(chan struct{}, 1),
		otherScheduler: schedext.Other{Log: o.Log}, subscription: subscription{active: o.Events != nil, why: o.Polling},
	}
	a.scheduler = schedext.New(o.Schedulers, o.Log)
	a.risk = &risk.Meter{Log: o.Log, Changed: a.otherBursts,
		Totals: func(group uint64) (report.Throttles, bool) { return a.Events.Totals(group) },
		Uses:   func(group uint64) []int64 { return a.Events.Uses(group) }}
	a.reader = observe.New(observe.Reader{Tree: o.Tree, Host: o.Host, Clock: o.Clock,
		WhyPaused: a.whyPaused, Failed: a.record.Unreadable, Yield: a.mu.Yield,
		Extra: func(inode uint64) cpu.Counters { return a.scheduler.Counts(inode).Counters }})
	a.cpus = exclusive.New(exclusive.CPUs{Options: o.Reserving, Tree: o.Tree, Log: o.Log, Ledger: a.ledger,
		Agent: services{a, &a.mu}, Dry: o.DryRun})
	a.share = a.cpus.Share
	a.colocation = colocation.New(colocation.Colocation{Tree: o.Tree, Host: o.Host, Tasks: o.Tasks, Log: o.Log,
		Reader: a.reader, Ledger: a.ledger, Scheduler: a.scheduler, Machine: o.Machine, Agent: services{a, &a.mu}})
	a.scheduler.Groups, a.scheduler.Changed = a.reader.Inodes, a.reader.StaleAll
	return a
}

// gather is for how long events are collected before a turn: the start of a container causes several of them, and a
// program that writes limits without end must cost a bounded number of turns.
const gather = 5 * time.Millisecond

// Run takes turns until the context ends, and then restores everything.
func (a *Agent) Run(ctx context.Context) error {
	stopListening := a.listen()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		begin := a.Clock()
		a.Tick(begin)
		signal(a.turned)
		// A turn over a thousand throttled pods takes 10 ms, and each of them may want one at an instant of its own. A
		// turn of a millisecond has no rest: what is written at a period's edge must not come late.
		time.Sleep(min(3*(a.Clock().Sub(begin)-time.Millisecond), observe.LookEvery))
		a.await(ctx, timer)
	}
	stopListening()
	return a.stop()
}

// Configure sets a new configuration of the node, or the error of its last reading.
func (a *Agent) Configure(s strategy.Node, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config = err
	if err == nil {
		if (a.Strategy.LoadLinePercent == 0) != (s.LoadLinePercent == 0) {
			a.subscription.stale = true // the set of groups with events may change
		}
		a.Strategy = s
		a.reader.StaleAll(a.Clock())
	}
	a.wake()
}

// await waits for the next turn.
func (a *Agent) await(ctx context.Context, timer *time.Timer) {
	for {
		a.mu.Lock()
		next := a.next
		a.mu.Unlock()
		timer.Reset(max(0, next.Sub(a.Clock())))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.Discover.Wake():
			a.mu.Lock()
			a.cpus.Regroup() // a group was made or removed
			a.mu.Unlock()
			time.Sleep(gather)
		case <-a.poke:
		case <-a.sooner:
			continue
		}
		return
	}
}

// Turns receives a value after each turn, for work that follows the turns instead of waking the machine by itself.
func (a *Agent) Turns() <-chan struct{} { return a.turned }

// wake requests a turn now.
func (a *Agent) wake() { signal(a.poke) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wanted receives a value when a turn is requested. Run takes the turn itself.
func (a *Agent) Wanted() <-chan struct{} { return a.poke }
