package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/lock"
	"plimsoll/internal/plan"
	"plimsoll/internal/progress"
	"plimsoll/internal/web"
)

// readyEvery is how often a standby agent checks whether it may take over.
const readyEvery = 50 * time.Millisecond

// standBy takes the lock of the machine, or waits for the end of the agent that has it. passed says that the writes of
// that agent are left to this one. It waits for the handover only when ready: an agent that knows no pods yet would
// restore them.
func (m *machine) standBy(ctx context.Context, g *globals, read web.ReadAccess, ready func() error, log *slog.Logger) (passed bool, err error) {
	if err := m.takeLock(g); !anotherRuns(err) {
		return false, err
	}
	log.Info("another agent runs here: standing by until it ends")
	var inLine atomic.Bool
	waiting, end := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		wrong := web.Waiting(waiting, read, func() error {
			if err := ready(); err != nil || inLine.Load() {
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
	for ready() != nil {
		if err := m.takeLock(g); !anotherRuns(err) {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(readyEvery):
		}
	}
	line, err := lock.WaitForHandover(ctx, g.stateDir)
	if err != nil {
		return false, err
	}
	inLine.Store(true)
	m.lock, passed, err = line.Take(ctx, m.place(g))
	return passed, err
}

// takeOverTimeout is how long a command leaves the lock to a successor. A successor tries to take it every 10 ms.
const takeOverTimeout = 2 * time.Second

// takeUnusedLock takes the lock of the machine where no agent runs and no successor takes over. A successor that does not
// take over in time, such as a stopped process, is ignored: no other process would restore the limits.
func (m *machine) takeUnusedLock(g *globals) error {
	for end := time.Now().Add(takeOverTimeout); ; time.Sleep(readyEvery) {
		if err := m.takeLock(g); err != nil {
			return err
		}
		waits, err := lock.SuccessorWaits(g.stateDir)
		if err != nil || !waits || time.Now().After(end) {
			return err
		}
		if err := m.lock.Release(); err != nil {
			return err
		}
		m.lock = nil
	}
}

// anotherRuns says whether it was an agent that kept the lock from being taken.
func anotherRuns(err error) bool {
	var locked *lock.TakenError
	return errors.As(err, &locked) && !locked.Stranger
}

// putBackLeft restores what a dead agent left behind, before anything that takes its time: an agent that is killed again
// right after its start has done this much.
func (m *machine) putBackLeft(passed bool, log *slog.Logger) []plan.Result {
	if passed {
		return nil // inherit takes it over
	}
	results := m.writer.Restore(nil, false)
	recovered(log, results)
	return results
}

// inherit takes over the journal's entries after a handover. left is what came of those that were restored.
func (m *machine) inherit(ctx context.Context, g *globals, a *agent.Agent, passed bool, left []plan.Result, log *slog.Logger) error {
	if passed && ctx.Err() == nil {
		a.Adopt(m.journal.Entries())
	} else {
		results := m.putBackLeft(false, log) // what was passed on in the moment of our end, or refused a moment ago
		a.Recovered(append(left, results...))
	}
	return lock.EndHandover(g.stateDir)
}

// successor says at the end of an agent whether another one takes over. When in doubt, none does.
func (g *globals) successor(log *slog.Logger) func() bool {
	return func() bool {
		passed, err := lock.HandOver(g.stateDir)
		if err != nil {
			log.Warn("another agent cannot take over", "error", err)
		}
		return passed
	}
}

func retireCommand(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "retire",
		Short: "Before an uninstallation: put everything back, and have the agent write nothing until it is stopped",
		Long: `Put everything back, and have the agent write nothing until it is stopped: what comes then has nothing left to put
back, not even if it is a SIGKILL. The next agent knows nothing of it; ` + "`plimsoll hold`" + ` is for that. Where no agent runs it is
` + "`plimsoll restore`" + `.`,
		Example: "  plimsoll retire && systemctl stop plimsoll",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, steerTimeout)
			defer cancel()
			bar := progress.Start(bars(cmd), "putting back", 0)
			results, err := g.client().Retire(ctx)
			bar.Stop()
			if err == nil {
				g.advise(cmd.ErrOrStderr(), "the agent writes nothing until it is stopped: `plimsoll resume` ends that")
			}
			if errors.Is(err, web.ErrNoAgent) {
				results, _, err = restore(ctx, g, false, cmd.ErrOrStderr())
			}
			if err != nil {
				return err
			}
			return showRestored(cmd.OutOrStdout(), results, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
