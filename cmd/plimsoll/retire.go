package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

func retireCommand(g *globals) *cobra.Command {
	var asJSON bool
	var of string
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
			if err := g.answers(ctx); err != nil {
				return withHint(err, killHint)
			}
			other, err := g.otherInstallation(ctx, of)
			if err != nil {
				return err
			}
			if other {
				fmt.Fprintf(cmd.ErrOrStderr(), "plimsoll: the agent of this node is not that of %s: it is left alone\n",
					report.Printable(of))
				return showRestored(cmd.OutOrStdout(), nil, asJSON)
			}
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
	cmd.Flags().StringVar(&of, "installation", "",
		"NAMESPACE/NAME: leave an agent alone that was started with another --installation, or without")
	return cmd
}

// otherInstallation says whether an agent runs that was not started with this --installation; "" is any. An agent that
// does not say its installation is an error: it may be another one's.
func (g *globals) otherInstallation(ctx context.Context, of string) (bool, error) {
	if of == "" {
		return false, nil
	}
	s, err := g.client().Status(ctx)
	if errors.Is(err, web.ErrNoAgent) {
		return false, nil
	}
	return s.Installation != of, err
}
