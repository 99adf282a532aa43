package main

import (
	"fmt"
	"time"

	"plimsoll/internal/hint"

	"github.com/spf13/cobra"
)

func pauseCommand(g *globals) *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "pause CONTAINER",
		Short: "Keep a container at its limit for a while, for a load test",
		Long: `Keep a container at its limit for a while: a load test then measures what the limit alone gives.

` + containerForms + `.`,
		Example: "  plimsoll pause default/web/nginx --for 30m\n  plimsoll resume default/web/nginx",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pause(cmd, g, args[0], length)
		},
	}
	cmd.Flags().DurationVar(&length, "for", 30*time.Minute,
		"how long the container is kept at its limit; 0 ends a pause")
	return cmd
}

func pause(cmd *cobra.Command, g *globals, arg string, length time.Duration) error {
	ctx, cancel := within(cmd, steerTimeout)
	defer cancel()
	t, err := g.client().Pause(ctx, g.container(arg), length)
	if err != nil {
		return g.elsewhere(err)
	}
	out := cmd.OutOrStdout()
	if length == 0 {
		fmt.Fprintf(out, "%s is no longer paused\n", named(t))
		return nil
	}
	fmt.Fprintf(out, "%s is kept at its limit for %s\n", named(t), length)
	g.advise(cmd.ErrOrStderr(), "`plimsoll resume "+hint.Word(t.Cgroup)+"` ends that")
	return nil
}
