package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

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
			if err := g.client().Resume(ctx); err != nil {
				return g.holdHint(g.elsewhere(err), "so that the next start is not held: rm -f ")
			}
			fmt.Fprintln(cmd.OutOrStdout(), "resumed: changes are written again")
			return nil
		},
	}
}
