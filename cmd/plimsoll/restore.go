package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"plimsoll/internal/config"
	"plimsoll/internal/journal/leftover"
	"plimsoll/internal/lock"
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
declared (systemd property, runtime state).

With --unless-running it does nothing beside a running agent, also while one takes over from another, and exits with 0.
That is for ExecStopPost= of a service: the agent that runs then is not the one that was stopped.`,
		Example: "  plimsoll restore\n  plimsoll restore --to-spec    # also what others left behind",
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
				g.advise(cmd.ErrOrStderr(), "the agent is held now, and writes nothing, also after a restart: `plimsoll resume` ends that")
			}
			if err != nil {
				return err
			}
			return showRestored(cmd.OutOrStdout(), results, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&unlessRunning, "unless-running", false, "do nothing where an agent runs (for ExecStopPost= of a service)")
	cmd.Flags().BoolVar(&toSpec, "to-spec", false, "also repair limits that deviate from what their owners declared")
	return cmd
}

// restore asks the agent, or restores by itself where none runs. held says that the agent writes nothing from now on.
func restore(ctx context.Context, g *globals, toSpec bool, notes io.Writer) (results []plan.Result, held bool, err error) {
	if err := g.answers(ctx); err != nil {
		return nil, false, withHint(err, "if it hangs for good, end it with `kill -9` and call this again")
	}
	results, err = g.client().Hold(ctx, true, "plimsoll restore")
	if err == nil && toSpec {
		return nil, true, withHint(errors.New("an agent runs and is held now; --to-spec needs it stopped"), "stop it and call this again")
	}
	if err == nil || !errors.Is(err, web.ErrNoAgent) {
		return results, err == nil, err
	}
	m, err := g.openMachine((*machine).takeLock)
	var locked *lock.TakenError
	if errors.As(err, &locked) && !locked.Stranger {
		return nil, false, withHint(err, "it does not answer in --state-dir "+g.stateDir+"; "+g.stateDirHint(locked))
	}
	if err != nil {
		return nil, false, err
	}
	defer m.close()
	results, err = m.restore(toSpec, notes)
	return results, false, err
}

// restoreUnlessRunning restores where no agent runs. It never asks an agent, because a running agent must not be held.
func restoreUnlessRunning(g *globals, toSpec bool, notes io.Writer) ([]plan.Result, error) {
	m, err := g.openMachine((*machine).takeUnusedLock)
	if anotherRuns(err) {
		_, err = fmt.Fprintf(notes, "plimsoll: nothing is restored: %s\n", report.Printable(err.Error()))
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	defer m.close()
	return m.restore(toSpec, notes)
}

// restore puts back what the journal has, and with toSpec what differs from a declared limit.
func (m *machine) restore(toSpec bool, notes io.Writer) ([]plan.Result, error) {
	for _, note := range m.strangers() {
		fmt.Fprintln(notes, "plimsoll:", report.Printable(note))
	}
	results := m.writer.Restore(nil, toSpec)
	if toSpec {
		repaired, err := repair(m)
		return append(results, repaired...), err
	}
	return results, nil
}

// repair writes the declared limit wherever the file holds another value.
func repair(m *machine) ([]plan.Result, error) {
	found, err := scanner(m.tree, "", &config.File{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	pods, err := found.Pods()
	if err != nil {
		return nil, err
	}
	var results []plan.Result
	for _, c := range leftover.Deviations(m.tree, pods) {
		results = append(results, m.writer.RestoreTo(c.Cgroup, c.Knob, c.To, c.Why))
	}
	return results, nil
}

// showRestored shows what was put back. What the kernel refused is an error.
func showRestored(w io.Writer, results []plan.Result, asJSON bool) error {
	if err := show(w, report.NewResults(results), asJSON); err != nil {
		return err
	}
	for _, r := range results {
		if r.Outcome == plan.Refused {
			return fmt.Errorf("%s of %s could not be put back to %s: %s", r.Change.Knob, r.Change.Cgroup.Path, r.Change.To, r.Err)
		}
	}
	return nil
}
