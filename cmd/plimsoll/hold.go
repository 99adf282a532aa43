package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/killswitch"
	"plimsoll/internal/web"
)

func holdCommand(g *globals) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Kill switch: stop writing, keep measuring",
		Long: `Stop writing to the kernel and keep measuring. What was written stays as it is: ` + "`plimsoll restore`" + ` puts it
back and holds. ` + "`plimsoll resume`" + ` ends the hold. A file named hold in the state directory does the same, also when the
agent does not answer: touch /run/plimsoll/hold. The file and the status contain the time and the reason.`,
		Example: "  plimsoll hold --reason incident-7\n  plimsoll resume",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, steerTimeout)
			defer cancel()
			err := g.answers(ctx)
			if err == nil {
				_, err = g.client().Hold(ctx, false, reason)
			}
			if err != nil {
				return g.holdHint(g.elsewhere(err), "to start it held: mkdir -p "+g.StateDir+" && touch ")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "held: nothing is written from now on; what was written stays")
			g.advise(cmd.ErrOrStderr(), "`plimsoll restore` puts it back, `plimsoll resume` ends the hold")
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "by command", "the reason, for the log and the status")
	return cmd
}

// holdHint says how to use the kill switch where no agent runs.
func (g *globals) holdHint(err error, advice string) error {
	if errors.Is(err, web.ErrNoAgent) {
		return withHint(err, advice+string(killswitch.In(g.StateDir)))
	}
	return err
}

func resumeCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [CONTAINER]",
		Short: "End a hold, or the pause of one container",
		Long: `End a hold, or the pause or release of one container.

` + containerForms + `.`,
		Example: "  plimsoll resume\n  plimsoll resume default/web/nginx",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return pause(cmd, g, args[0], 0)
			}
			ctx, cancel := within(cmd, steerTimeout)
			defer cancel()
			err := g.answers(ctx)
			if err == nil {
				err = g.client().Resume(ctx)
			}
			if err != nil {
				return g.holdHint(g.elsewhere(err), "so that the next start is not held: rm -f ")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "resumed: changes are written again")
			return nil
		},
	}
}
