package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/journal"
	"plimsoll/internal/journal/leftover"
	"plimsoll/internal/lock"
	"plimsoll/internal/plan"
	"plimsoll/internal/web"
)

// readyEvery is how often a standby agent checks whether it may take over.
const readyEvery = 50 * time.Millisecond

// StandBy takes the lock, or waits for the end of the agent that has it. passed says that the writes of that agent are
// left to this one. It waits for the handover only when ready: an agent that knows no pods yet would restore them.
func (n *Node) StandBy(ctx context.Context, read web.ReadAccess, ready func() error,
	log *slog.Logger) (passed bool, err error) {
	if err := n.TakeUnusedLock(); !AnotherRuns(err) {
		return false, err
	}
	log.Info("another agent runs here: standing by until it ends")
	var standsBy atomic.Bool
	waiting, end := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		wrong := web.Waiting(waiting, read, func() error {
			if err := ready(); err != nil || standsBy.Load() {
				return err
			}
			return errors.New("another agent stands by already")
		}, log)
		if wrong != nil { // the socket may be that of the agent that runs
			log.Warn("no client can see whether this agent stands by", "error", wrong)
		}
	}()
	defer func() {
		end()
		<-served // the socket is free
	}()
	for {
		line, err := n.standInLine(ctx, ready, &standsBy)
		if line == nil {
			return false, err
		}
		var holder *lock.TakenError
		n.Lock, passed, err = line.Take(ctx, n.place())
		if !errors.As(err, &holder) || !holder.OtherInstallation {
			return passed, err
		}
	}
}

// standInLine waits until this agent is the successor of the agent that runs; nil: it has the lock, or an error says
// why not. While an agent of another installation runs, this one stands by without a place in line (package lock).
func (n *Node) standInLine(ctx context.Context, ready func() error, standsBy *atomic.Bool) (*lock.Line, error) {
	for ctx.Err() == nil {
		err := n.TakeUnusedLock()
		var holder *lock.TakenError
		if !errors.As(err, &holder) || holder.Stranger {
			return nil, err
		}
		if !holder.Brief {
			standsBy.Store(holder.OtherInstallation)
		}
		if !holder.Brief && !holder.OtherInstallation && ready() == nil {
			try, end := context.WithTimeout(ctx, readyEvery)
			line, err := lock.WaitForHandover(try, n.StateDir)
			end()
			if !errors.Is(err, context.DeadlineExceeded) {
				standsBy.Store(err == nil)
				return line, err
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyEvery):
		}
	}
	return nil, ctx.Err()
}

// takeOverTimeout is how long a free lock is left to a successor. A successor tries to take it every 10 ms.
const takeOverTimeout = 2 * time.Second

// TakeUnusedLock takes the lock where no agent runs and no successor takes over. A successor that does not take over in
// time, such as a stopped process, is ignored: no other process would restore the limits.
func (n *Node) TakeUnusedLock() error {
	place := n.place()
	place.Brief = true
	for end := time.Now().Add(takeOverTimeout); ; time.Sleep(readyEvery) {
		l, err := lock.Take(place)
		if err != nil {
			return err
		}
		waits, err := lock.SuccessorWaits(n.StateDir)
		if err != nil || !waits || time.Now().After(end) {
			n.Lock = l
			n.Lock.Keep()
			return err
		}
		if err := l.Release(); err != nil {
			return err
		}
	}
}

// AnotherRuns says whether it was an agent that kept the lock from being taken.
func AnotherRuns(err error) bool {
	var locked *lock.TakenError
	return errors.As(err, &locked) && !locked.Stranger
}

// Left is what an agent left behind that did not stop in order.
type Left struct {
	Entries []journal.Entry // of the journal
	Results []plan.Result   // of restoring them
}

// PutBackLeft restores what a dead agent left behind, before anything that takes its time: an agent that is killed
// again right after its start has done this much. Where the writes were passed on, Inherit takes them over.
func (n *Node) PutBackLeft(passed bool, log *slog.Logger) (left Left) {
	if passed {
		return left
	}
	left.Entries = n.Journal.Entries()
	left.Results = n.Writer.Restore(nil, false)
	for _, r := range left.Results {
		log.Info("left behind by an agent that did not stop in order", "cgroup", r.Change.Cgroup.Path, "knob",
			r.Change.Knob, "outcome", r.Outcome, "in_force", r.InForce, "error", r.Err)
	}
	return left
}

// Successor is an agent that goes on with what another one has written.
type Successor interface {
	Adopt(entries []journal.Entry)
	Recovered(entries []journal.Entry, results []plan.Result)
}

// Inherit takes over the journal's entries after a handover. left is what PutBackLeft restored.
func (n *Node) Inherit(ctx context.Context, a Successor, passed bool, left Left, log *slog.Logger) error {
	if passed && ctx.Err() == nil {
		a.Adopt(n.Journal.Entries())
	} else {
		more := n.PutBackLeft(false, log) // what was passed on in the moment of our end, or refused a moment ago
		a.Recovered(append(left.Entries, more.Entries...), append(left.Results, more.Results...))
	}
	return lock.EndHandover(n.StateDir)
}

// Successor says at the end of an agent whether another one takes over. When in doubt, none does.
func (d Dirs) Successor(log *slog.Logger) func() bool {
	return func() bool {
		passed, err := lock.HandOver(d.StateDir)
		if err != nil {
			log.Warn("another agent cannot take over", "error", err)
		}
		return passed
	}
}

// Restore puts back what the journal has, and with toSpec what differs from a declared limit.
func (n *Node) Restore(toSpec bool) ([]plan.Result, error) {
	results := n.Writer.Restore(nil, toSpec)
	if toSpec {
		repaired, err := n.repair()
		return append(results, repaired...), err
	}
	return results, nil
}

// repair writes the declared limit wherever the file holds another value.
func (n *Node) repair() ([]plan.Result, error) {
	found, err := cgroupfs.OfHost(n.Tree, "", &config.File{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	pods, err := found.Pods()
	if err != nil {
		return nil, err
	}
	var results []plan.Result
	for _, c := range leftover.Deviations(n.Tree, pods) {
		results = append(results, n.Writer.RestoreTo(c.Cgroup, c.Knob, c.To, c.Why))
	}
	return results, nil
}
