package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

func planCommand(g *globals) *cobra.Command {
	f := &runFlags{}
	var asJSON bool
	var watch time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show every change that `run` would make now, with its why, and write nothing",
		Long: `Show every change that ` + "`plimsoll run`" + ` would make, with its why, and write nothing. It watches for a moment first, for
a quota is raised only when a container is throttled.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := rehearse(g, f, watch)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), report.NewPlan(changes, nil), asJSON)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON (docs/OPERATIONS.md documents it)")
	cmd.Flags().DurationVar(&watch, "watch", 2*time.Second, "how long to watch for throttling")
	return cmd
}

// rehearse takes turns whose changes are collected and not made.
func rehearse(g *globals, f *runFlags, watch time.Duration) ([]plan.Change, error) {
	file, err := f.load()
	if err != nil {
		return nil, err
	}
	dir, tree, err := g.openTree()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	found, err := scanner(tree, "", file, log)
	if err != nil {
		return nil, err
	}
	a, err := newAgent(g, dir, tree, found, file, hearing{}, log)
	if err != nil {
		return nil, err
	}
	notes := &notebook{at: map[written]int{}}
	a.Writer, a.DryRun = notes, true
	for end := time.Now().Add(watch); ; {
		turn := a.Tick(time.Now())
		if !turn.Next.Before(end) {
			return notes.changes, nil
		}
		time.Sleep(time.Until(turn.Next))
	}
}

// notebook is a writer that writes nothing down but in itself. Of several changes of a knob it keeps the last.
type notebook struct {
	changes []plan.Change
	at      map[written]int
}

type written struct {
	id   workload.ID
	knob plan.Knob
}

func (n *notebook) Do(changes []plan.Change) []plan.Result {
	plan.Order(changes)
	results := make([]plan.Result, 0, len(changes))
	for _, c := range changes {
		key := written{c.Cgroup, c.Knob}
		if i, ok := n.at[key]; ok {
			n.changes[i] = c
		} else {
			n.at[key] = len(n.changes)
			n.changes = append(n.changes, c)
		}
		results = append(results, plan.Result{Change: c, Outcome: plan.Skipped, At: time.Now()})
	}
	return results
}

func (*notebook) Restore(func(journal.Entry) bool, bool) []plan.Result { return nil }
func (*notebook) Rebase(workload.ID, plan.Knob, plan.Value) error      { return nil }
func (*notebook) Forget(workload.ID, plan.Knob) error                  { return nil }
func (*notebook) SetHold(bool)                                         {}
