package main

import (
	"errors"

	"github.com/spf13/cobra"

	"plimsoll/internal/progress"
	"plimsoll/internal/web"
)

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
