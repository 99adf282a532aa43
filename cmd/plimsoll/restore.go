package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"plimsoll/internal/lock"
	"plimsoll/internal/node"
	"plimsoll/internal/plan"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

func restoreCommand(g *globals) *cobra.Command {
	var asJSON, toSpec, unlessRunning bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back everything that Plimsoll wrote",
		Long: `Put back everything that Plimsoll wrote. What others wrote, or have changed since, is left alone.
Beside a running agent it asks that one to put everything back and to hold: ` + "`plimsoll resume`" + ` ends that.

With --to-spec also what others left behind is repaired: a container whose limit is not the one that its owner has
declared (systemd property, runtime state). It needs the agent stopped.

With --unless-running it does nothing beside a running agent, also while one takes over from another, and exits with 0.
That is for ExecStopPost= of a service: the agent that runs then is not the one that was stopped.`,
		Example: "  plimsoll restore\n  plimsoll restore --to-spec    # also what others left behind; no agent may run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, steerTimeout)
			defer cancel()
			var results []plan.Result
			var held bool
			var err error
			bar := progress.Start(bars(cmd), "putting back", 0)
			if unlessRunning {
				results, err = restoreUnlessRunning(g, toSpec, cmd.ErrOrStderr())
			} else {
				results, held, err = restore(ctx, g, toSpec, cmd.ErrOrStderr())
			}
			bar.Stop()
			if held {
				g.advise(cmd.ErrOrStderr(),
					"the agent is held now, and writes nothing, also after a restart: `plimsoll resume` ends that")
			}
			if err != nil {
				return err
			}
			return showRestored(cmd.OutOrStdout(), results, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&unlessRunning, "unless-running", false,
		"do nothing where an agent runs (for ExecStopPost= of a service)")
	cmd.Flags().BoolVar(&toSpec, "to-spec", false, "also repair limits that deviate from what their owners declared")
	return cmd
}

// restore asks the agent, or restores by itself where none runs. held says that the agent writes nothing from now on.
func restore(ctx context.Context, g *globals, toSpec bool,
	notes io.Writer) (results []plan.Result, held bool, err error) {
	if err := g.answers(ctx); err != nil {
		return nil, false, withHint(err, killHint)
	}
	if !toSpec {
		results, err = g.client().Hold(ctx, true, "plimsoll restore")
	} else if _, err = g.client().Status(ctx); err == nil { // not held: it could not repair anything
		err = withHint(errors.New("an agent runs: --to-spec needs it stopped"), "stop it and call this again")
	}
	if err == nil || !errors.Is(err, web.ErrNoAgent) {
		return results, err == nil, err
	}
	n, err := g.Open((*node.Node).TakeLock)
	var locked *lock.TakenError
	if errors.As(err, &locked) && !locked.Stranger {
		return nil, false, withHint(err, "it does not answer in --state-dir "+g.StateDir+"; "+g.StateDirHint(locked))
	}
	if err != nil {
		return nil, false, err
	}
	defer n.Close()
	results, err = restored(n, toSpec, notes)
	return results, false, err
}

// restoreUnlessRunning restores where no agent runs. It never asks an agent, because a running agent must not be held.
func restoreUnlessRunning(g *globals, toSpec bool, notes io.Writer) ([]plan.Result, error) {
	n, err := g.Open((*node.Node).TakeUnusedLock)
	if node.AnotherRuns(err) {
		_, err = fmt.Fprintf(notes, "plimsoll: nothing is restored: %s\n", report.Printable(err.Error()))
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	defer n.Close()
	return restored(n, toSpec, notes)
}

// restored puts everything back, once it has said who else has a lock and what the journal has lost.
func restored(n *node.Node, toSpec bool, notes io.Writer) ([]plan.Result, error) {
	for _, note := range n.Notes() {
		fmt.Fprintln(notes, "plimsoll:", report.Printable(note))
	}
	return n.Restore(toSpec)
}

// showRestored shows what was put back. What the kernel refused is an error.
func showRestored(w io.Writer, results []plan.Result, asJSON bool) error {
	if err := show(w, report.NewResults(results), asJSON); err != nil {
		return err
	}
	for _, r := range results {
		if r.Outcome == plan.Refused {
			return fmt.Errorf("%s of %s could not be put back to %s: %s", r.Change.Knob, r.Change.Cgroup.Path,
				r.Change.To, r.Err)
		}
	}
	return nil
}
