package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

func statusCommand(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is changed on this node: requested, in force, since when, why",
		Long: `Show what is changed on this node: for each container its limit, the quota and burst that are in force (and
what was asked for where the kernel has another value), since when, until when it is paused, and why.
Without a running agent the journal says what still stands in the kernel's files.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, askTimeout)
			defer cancel()
			s, err := g.status(ctx)
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), s, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// status reads the agent, or the journal where none runs.
func (g *globals) status(ctx context.Context) (report.Status, error) {
	s, err := g.client().Status(ctx)
	err = g.elsewhere(err)
	if !errors.Is(err, web.ErrNoAgent) {
		return s, err
	}
	s, err = inTime(ctx, func() (report.Status, error) { return offlineStatus(g, time.Now()) })
	if err != nil {
		return s, fmt.Errorf("no agent is running, and: %w", err)
	}
	return s, nil
}

// inTime ends with the context, also while a file lets itself be waited for: a read has no deadline of its own.
func inTime(ctx context.Context, read func() (report.Status, error)) (s report.Status, err error) {
	done := make(chan struct{})
	var got report.Status
	var failed error
	go func() {
		defer close(done)
		got, failed = read()
	}()
	select {
	case <-done:
		return got, failed
	case <-ctx.Done():
		return s, withHint(errors.New("the journal and the control groups are not read in time"),
			"the machine is overloaded, or a file of the state directory or a control group hangs: try again")
	}
}
