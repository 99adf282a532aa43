package main

import (
	"errors"

	"github.com/spf13/cobra"

	"plimsoll/internal/web"
)

func reportCommand(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show per container how much it was throttled, burst, and ran above its limit",
		Long: `Show for each container, since the agent knows it: the share of its periods that ended throttled, the wall time
lost to that, how often it burst and for how much CPU time, the CPU time that it used above its limit, how often
its quota was raised and for how long.`,
		Example: "  plimsoll report\n  plimsoll report --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, askTimeout)
			defer cancel()
			r, err := g.client().Report(ctx)
			err = g.elsewhere(err)
			if errors.Is(err, web.ErrNoAgent) {
				return withHint(err, "the counts live in the agent: start it with `plimsoll run`")
			}
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), r, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
