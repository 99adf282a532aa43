// Package agent is the loop: it looks at the containers that are due, decides, writes, and says what it did.
//
// Time and order are the loop's. Most of what happens elsewhere (a container appears, a limit is written, a
// configuration is read) only asks for an earlier turn. What cannot wait for one writes on the thread that learns of
// it, under the same lock: AnswerThrottles when a throttle begins, PrepareResize when an owner is about to write
// another limit, and Pause, Hold and Retire, which tell who asked what became of it.
package agent

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/colocation"
	"plimsoll/internal/cpu"
	"plimsoll/internal/exclusive"
	"plimsoll/internal/journal"
	"plimsoll/internal/ledger"
	"plimsoll/internal/observe"
	"plimsoll/internal/pauses"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
	"plimsoll/internal/reserve"
	"plimsoll/internal/risk"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Discoverer knows the containers.
type Discoverer interface {
	// Pods is a snapshot, cheap to take. Path and limit events since the last call are folded in. A snapshot never
	// changes: where anything is new, it is another slice.
	Pods() ([]workload.Pod, error)
	// Touched lists the groups whose limit files or tasks were written since the last call.
	Touched() []string
	// Wake has a value when something changed.
	Wake() <-chan struct{}
	// Counts tells rescans and lost events, since the start.
	Counts() (rescans, lost int64)
}

// ThrottleEvents are the kernel's, in the moment in which throttles begin.
type ThrottleEvents interface {
	// Watch subscribes to the events of these groups, by inode, and of no others.
	Watch(groups []uint64) error
	// SuppressEvents has a group's throttles counted, but sends no events of them, until it is called with false.
	SuppressEvents(group uint64, suppress bool) error
	// Limit has the use of a group's periods counted by a quota that is not the one in force.
	Limit(group uint64, quota time.Duration) error
	// Read waits for throttles, and returns those there are; none at an instant, if that is not zero. An error says that none
	// will come any more; it is io.EOF after Close.
	Read(until time.Time) ([]policy.Throttle, error)
	// Lost counts the throttles that were not reported, since the start, but for those of a group that has too many of them.
	Lost() int64
	// Priority is that of the thread that reads: "fifo" is real time, "nice -20" and "plain" are what was left; "" before it
	// has begun.
	Priority() string
	// Totals is what was counted of a group, reported or not; false for one that is not watched.
	Totals(group uint64) (report.Throttles, bool)
	Close() error
}

// Host measures the machine.
type Host interface {
	Online() (int, error)
	// Busy is the CPU time that all of the machine has used.
	Busy() (time.Duration, error)
	// Threads tells the CPU time of each of these threads that still lives.
	Threads(tids []int) map[int]time.Duration
	// Self is what this process has used, and its resident memory.
	Self() (used time.Duration, rss int64)
}

// Writer carries changes out.
type Writer interface {
	Do([]plan.Change) []plan.Result
	Restore(filter func(journal.Entry) bool, toSpec bool) []plan.Result
	TryRestore(filter func(journal.Entry) bool) []plan.Result
	Rebase(id workload.ID, knob plan.Knob, base plan.Value) error
	Forget(id workload.ID, knob plan.Knob) error
	Adopt(id workload.ID, knob plan.Knob, held, base plan.Value) error
	SetHold(bool)
	Shield() (apply.Shield, error)
	Unshield() []plan.Result
}

// Switch is the kill switch, kept where it outlives the agent.
type Switch interface {
	Held() bool
	Hold(reason string, at time.Time) error
	Resume() error
	// Why tells of a hold: its reason, "" where nobody has said one, and since when it is. Without one that is zero.
	Why() (reason string, since time.Time)
}

// Options are what an agent is made of.
type Options struct {
	Tree       *cgroup.Tree
	Discover   Discoverer
	Host       Host
	Events     ThrottleEvents       // nil: throttles are found by polling
	Polling    string               // why there are no Events
	Missing    []report.MissingPart // what it does not tell
	Uncounted  bool                 // the use of periods is in Missing
	Writer     Writer
	Switch     Switch
	Pauses     *pauses.Pauses
	Undone     func() ([]apply.Undone, error)           // owners' writes that refills may have undone, since the last call; nil: nobody looks
	Refillable func(undeclared, declared []workload.ID) // takes all groups that may be refilled from now on; nil: nobody asks
	Foreign    func(group, what string)                 // called once for another program that writes a group's limit; nil: nobody
	Rules      policy.Rules
	Machine    policy.Machine    // what it has for online before offline
	Schedulers schedext.Loader   // nil: no scheduler is ever loaded
	Overruled  func() string     // names a scheduler that runs all tasks, "" where the kernel does; nil: it always does
	Tasks      colocation.Tasks  // nil: nothing is set of single tasks
	Strategy   strategy.Strategy // the node's: sharePoolThresholdPercent
	Clock      func() time.Time
	Log        *slog.Logger
	Version    string
	Kernel     string
	DryRun     bool        // it only plans: Plan is called in place of Tick, and there is no Writer
	Successor  func() bool // asked at the end: does another agent take over? nil: none does

	Reserving exclusive.Options
}

// Agent looks after the containers of one machine.
type Agent struct {
	Options
	mu           sync.Mutex // of everything below; a turn holds it
	state        *policy.State
	ledger       *ledger.Ledger
	reader       *observe.Reader
	scheduler    *schedext.Keeper
	node         observe.NodeMeter
	groups       map[workload.ID]*group
	started      time.Time
	snapshot     []workload.Pod // of the turn before
	asked        bool           // somebody asks for the state of all groups in this turn
	resizes      resizes
	subscription subscription
	risk         *risk.Meter
	colocation   *colocation.Colocation
	next         time.Time // when the next turn is due
	fresh        time.Time // when all groups were looked at for somebody who asked
	record       *record.Recorder
	config       error
	failed       error                // of the last discovery
	poke         chan struct{}        // a turn is wanted now
	sooner       chan struct{}        // next is earlier than it was
	turned       chan struct{}        // a turn was taken
	notes        []record.Note        // of files, since they were said last
	adopted      map[workload.ID]bool // what was taken over, until the first look
	retired      time.Time            // zero: it is not
	ended        bool                 // everything has been put back for good
	pending      map[plan.Key]bool    // what the kernel has refused to have put back
	overruled    overruled
	blind        bool // it was said that quota files cannot be watched

	cpus  *exclusive.CPUs
	share func(group string) reserve.Share // what a group has of CPUs of its own
}

// New makes an agent; Run starts it.
func New(o Options) *Agent {
	now := o.Clock()
	a := &Agent{
		Options: o, state: policy.NewState(), ledger: cmp.Or(o.Reserving.Known(), ledger.New()), groups: map[workload.ID]*group{}, pending: map[plan.Key]bool{},
		resizes: resizes{}, started: now, record: record.New(o.Log), poke: make(chan struct{}, 1), sooner: make(chan struct{}, 1), turned: make(chan struct{}, 1),
		subscription: subscription{active: o.Events != nil, why: o.Polling},
	}
	a.scheduler = schedext.New(o.Schedulers, o.Log)
	a.risk = &risk.Meter{Log: o.Log, Changed: a.otherBursts, Totals: func(group uint64) (report.Throttles, bool) { return a.Events.Totals(group) }}
	a.cpus = exclusive.New(exclusive.CPUs{Options: o.Reserving, Tree: o.Tree, Log: o.Log, Ledger: a.ledger, Agent: asked{a}})
	a.share = a.cpus.Share
	a.colocation = colocation.New(colocation.Colocation{Tree: o.Tree, Host: o.Host, Tasks: o.Tasks, Log: o.Log, Ledger: a.ledger, Scheduler: a.scheduler,
		Machine: o.Machine, Agent: asked{a}})
	a.reader = observe.New(o.Tree, o.Host, o.Clock)
	a.reader.Borrowed, a.reader.Paused, a.reader.Failed = o.DryRun, a.paused, a.record.Unreadable
	a.scheduler.Groups, a.scheduler.Changed = a.reader.Inodes, a.reader.StaleAll
	a.reader.Extra = func(inode uint64) cpu.Counters { return a.scheduler.Counted(inode).Counters }
	return a
}

// paused says whether a group is held at its limit, whatever its owner asks for.
func (a *Agent) paused(group string, now time.Time) bool {
	return a.Pauses.Paused(group, now) || a.scheduler.InForce() || a.overruled.by != "" || a.resizes.open(group, now) ||
		a.colocation.Suppresses(group) && !a.share(group).Unlimited
}

// gather is for how long events are let come together before a turn: a container's birth is a bunch of them, and
// whoever writes limits without end is to cost a bounded number of turns.
const gather = 5 * time.Millisecond

// Run takes turns until the context ends, and then puts everything back.
func (a *Agent) Run(ctx context.Context) error {
	stopListening := a.listen()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		a.Tick(a.Clock())
		signal(a.turned)
		a.await(ctx, timer)
	}
	stopListening()
	return a.stop()
}

// Configure takes a new configuration of the node, or the reason why there is none.
func (a *Agent) Configure(s strategy.Strategy, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.config = err
	if err == nil {
		if (a.Strategy.LoadLinePercent == 0) != (s.LoadLinePercent == 0) {
			a.subscription.stale = true // other groups may have to be subscribed to now
		}
		a.Strategy = s
		a.reader.StaleAll(a.Clock())
	}
	a.wake()
}

// await waits for the next turn.
func (a *Agent) await(ctx context.Context, timer *time.Timer) {
	for {
		timer.Reset(max(0, a.nextTurn().Sub(a.Clock())))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.Discover.Wake():
			a.regroup()
			time.Sleep(gather)
		case <-a.poke:
		case <-a.sooner:
			continue
		}
		return
	}
}

func (a *Agent) nextTurn() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Turns has a value when a turn was taken, for what goes with the agent's turns so as not to wake the machine for itself.
func (a *Agent) Turns() <-chan struct{} { return a.turned }

// wake asks for a turn now.
func (a *Agent) wake() { signal(a.poke) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wanted has a value when a turn is wanted now. Run takes it itself.
func (a *Agent) Wanted() <-chan struct{} { return a.poke }
