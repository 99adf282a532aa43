package main

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/node"
	"plimsoll/internal/receipt/disk"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// openReceipts has an agent go on with the experiments of the agent before. The caller has the lock, so that no other
// agent writes them any more, and the agent has taken no turn yet.
func (g *globals) openReceipts(n *node.Node, a *agent.Agent, log *slog.Logger) *disk.File {
	return disk.Open(g.StateDir, n.Journal.Boot(), a, log)
}

func receiptsCommand(g *globals) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "receipts [CONTAINER]",
		Short: "Show what refills save each container, measured by an experiment",
		Long: `Show what refills and raises cause, as an experiment measures it: with "receipts: 1%" in the configuration they
are withheld in a random part of the busy spells, and the difference in wall time throttled, with its interval of
95 %, is what they save. What neighbours lose in the 100 ms after a spell began is measured in the same way. Where the
interval says harm, the container is not refilled any more.

CONTAINER is a container or pod, or a part of its name or path: only what has it is shown.`,
		Example: "  plimsoll receipts\n  plimsoll receipts default/web/nginx --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := within(cmd, askTimeout)
			defer cancel()
			s, err := g.client().Status(ctx)
			if err = g.elsewhere(err); errors.Is(err, web.ErrNoAgent) {
				return withHint(err, "the experiment lives in the agent: start it with `plimsoll run`")
			}
			if name := strings.Join(args, ""); err == nil && name != "" {
				s, err = s.Named(g.container(name))
			}
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), report.ReceiptsOf(s), asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
