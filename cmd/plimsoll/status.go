package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

func statusCommand(g *globals) *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show what is changed on this node: requested, in force, since when, why",
		Long: `Show what is changed on this node: for each container its limit, the quota and burst that are in force (and
the requested value where the kernel has another one), since when, until when it is paused, and why.
Without a running agent the journal shows which values of Plimsoll are still in the kernel's files.

NAME is a container or pod, or a part of its name or path: only what has it is shown.`,
		Example: `  plimsoll status
  plimsoll status nginx --sort lost
  plimsoll status --watch
  plimsoll status --json | jq '.containers[] | {name, why}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.name = strings.Join(args, "")
			if _, err := report.ParseOrder(f.sort); err != nil {
				return misusef("--sort: %w", err)
			}
			if f.watch {
				return f.keepShowing(cmd, g)
			}
			return f.once(cmd, g)
		},
	}
	jsonFlag(cmd, &f.json)
	cmd.Flags().StringVar(&f.sort, "sort", string(report.ByName),
		"order of the containers: name, lost (wall time), use (CPUs) or throttled (periods)")
	cmd.Flags().BoolVar(&f.watch, "watch", false, "show it anew each second, until Ctrl-C")
	return cmd
}

// statusFlags are what a person may choose about a status.
type statusFlags struct {
	name, sort  string
	json, watch bool
}

func (f *statusFlags) once(cmd *cobra.Command, g *globals) error {
	ctx, cancel := within(cmd, askTimeout)
	defer cancel()
	s, err := g.status(ctx)
	if err == nil && f.name != "" {
		s, err = s.Named(g.container(f.name))
	}
	if err != nil {
		return err
	}
	if f.watch && !f.json {
		fmt.Fprint(cmd.OutOrStdout(), clearScreen(cmd.OutOrStdout()))
	}
	if !f.json || cmd.Flags().Changed("sort") {
		s = s.Sorted(report.Order(f.sort))
	}
	return show(cmd.OutOrStdout(), s, f.json)
}

// keepShowing shows a status each second. An error takes its place, and is not the end: the agent may come back.
func (f *statusFlags) keepShowing(cmd *cobra.Command, g *globals) error {
	ctx, stop := untilAsked(cmd)
	defer stop()
	cmd.SetContext(ctx)
	for tick := time.NewTicker(time.Second); ; {
		err := f.once(cmd, g)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EPIPE):
			return err
		case err != nil:
			complain(cmd.ErrOrStderr(), "plimsoll", g.flags(), err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
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
