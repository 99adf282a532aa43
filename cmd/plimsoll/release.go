package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

func releaseCommand(g *globals) *cobra.Command {
	var length time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "release CONTAINER",
		Short: "Step aside for another writer of a limit, such as docker update --cpus",
		Long: `Lower the values with which another program's write of the limit would fail, and keep them low for a while. The kernel refuses a
quota below the burst (EINVAL, "invalid argument"), so ` + "`docker update --cpus`" + ` and ` + "`systemctl set-property CPUQuota=`" + ` may
fail while a burst is set.

` + containerForms + `.`,
		Example: "  plimsoll release my-container && docker update --cpus 0.5 my-container",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if length <= 0 {
				return misusef("--for %s: a release needs a time above 0", length)
			}
			ctx, cancel := within(cmd, steerTimeout)
			defer cancel()
			r, err := g.client().Release(ctx, g.container(args[0]), length)
			err = g.elsewhere(err)
			if errors.Is(err, web.ErrNoAgent) {
				return withHint(err, "`plimsoll restore` puts back what an agent left that no longer runs")
			}
			if err != nil {
				return err
			}
			return showReleased(cmd, r, length, asJSON)
		},
	}
	cmd.Flags().DurationVar(&length, "for", time.Minute, "how long nothing of the group is written again")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func showReleased(cmd *cobra.Command, r web.Released, length time.Duration, asJSON bool) error {
	out := cmd.OutOrStdout()
	if !asJSON {
		fmt.Fprintf(out, "%s is released for %s\n", named(r.Target), length)
	}
	if err := show(out, report.NewResults(r.Results), asJSON); err != nil {
		return err
	}
	for _, res := range r.Results {
		if res.Outcome == plan.Refused || res.Outcome == plan.Trampled {
			return withHint(fmt.Errorf("%s of %s was not put back: %s: %s", res.Change.Knob, res.Change.Cgroup.Path,
				res.Outcome, res.Err),
				"`plimsoll status` shows what is in force")
		}
	}
	return nil
}
