package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/agent"
	"plimsoll/internal/agent/dryrun"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/hint"
	"plimsoll/internal/host"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext/loader"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/web"
)

func planCommand(g *globals) *cobra.Command {
	f := &runFlags{}
	var asJSON, ofAgent bool
	var watch time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show every change that `run` would make now, with its why, and write nothing",
		Long: `Show every change that ` + "`plimsoll run`" + ` would make, with its why, and write nothing. It watches for a moment first, for
a quota is raised only when a container is throttled. Beside a running agent, and after one that was killed, it goes by
what that agent has written. It does not know what Kubernetes requests: --of-agent and ` + "`kubectl plimsoll plan`" + ` do.`,
		Example: "  plimsoll plan --policy auto\n  plimsoll plan --policy auto --include '/lab/*' --watch 30s\n  " +
			"plimsoll plan --of-agent",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p report.Plan
			var err error
			bar := progress.For(bars(cmd), "watching for throttling", watch)
			if ofAgent {
				p, err = planOfAgent(cmd, g, f, watch)
			} else {
				p, err = dryRun(g, f, watch)
			}
			bar.Stop()
			if err != nil {
				return err
			}
			if err := show(cmd.OutOrStdout(), p, asJSON); err != nil || ofAgent {
				return err
			}
			g.hintAtAgent(cmd)
			return nil
		},
	}
	f.register(cmd, "")
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&ofAgent, "of-agent", false,
		"ask the running agent, which knows what Kubernetes requests, instead of looking at the node")
	cmd.Flags().DurationVar(&watch, "watch", 2*time.Second,
		"how long to watch for throttling; with --of-agent, at most "+web.MaxWatch.String())
	return cmd
}

// planOfAgent asks the running agent, which has a configuration of its own.
func planOfAgent(cmd *cobra.Command, g *globals, f *runFlags, watch time.Duration) (p report.Plan, err error) {
	if f.file != "" || len(f.include) > 0 {
		return p, withHint(misusef("--of-agent does not go with --config or --include"),
			"the agent has its own; --policy tries another policy")
	}
	if err := checkPlan(f.policy, watch); err != nil {
		return p, err
	}
	ctx, cancel := within(cmd, watch+askTimeout)
	defer cancel()
	return g.client().Plan(ctx, f.policy, watch)
}

// checkPlan refuses what an agent would refuse.
func checkPlan(policy string, watch time.Duration) error {
	if watch < 0 || watch > web.MaxWatch {
		return misusef("--watch %s: an agent watches for at most %s", watch, web.MaxWatch)
	}
	_, err := config.FromFlags(policy, nil)
	return hint.Misuse(err)
}

// hintAtAgent says where the plan of an agent is that knows more than the node shows.
func (g *globals) hintAtAgent(cmd *cobra.Command) {
	ctx, cancel := within(cmd, askTimeout)
	defer cancel()
	if s, err := g.client().Status(ctx); err == nil && s.Kubernetes != nil {
		g.advise(cmd.ErrOrStderr(),
			"the agent that runs here knows what Kubernetes requests, which this plan does not: "+
				"`plimsoll plan --of-agent` asks it")
	}
}

// dryRun takes turns whose changes are collected and not made.
func dryRun(g *globals, f *runFlags, watch time.Duration) (p report.Plan, err error) {
	if watch < 0 {
		return p, misusef("--watch %s: not a time to watch for", watch)
	}
	file, err := f.load()
	if err != nil {
		return p, err
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		return p, err
	}
	defer dir.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	found, err := cgroupfs.OfHost(tree, "", file, log)
	if err != nil {
		return p, err
	}
	a, err := newAgent(g, dir, tree, found, file, host.Throttles{}, log)
	if err != nil {
		return p, err
	}
	o := a.DryRunOptions()
	o.Tree, o.Host, o.Schedulers, o.Log = tree, a.Host, a.Schedulers, log
	left, err := journal.Left(g.StateDir)
	if err != nil {
		log.Warn("what another agent has written counts as its owner's", "error", err)
	}
	changes, err := dryrun.Collect(context.Background(), o, left, watch)
	p = report.NewPlan(changes, leftOut(tree, found, file, len(changes) == 0)...)
	p.Names = found.NamesOf(changes)
	return p, err
}

// dryRun makes a dry run beside a running agent.
func (g *globals) dryRun(a *agent.Agent, entries func() []journal.Entry) web.DryRun {
	return func(ctx context.Context, policy string, watch time.Duration) ([]plan.Change, error) {
		dir, tree, err := g.OpenTree()
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		o := a.DryRunOptions()
		o.Tree, o.Host, o.Schedulers = tree, host.Host{Host: sysfs.NewHost("/"), Tree: tree}, &loader.Schedulers{}
		view := &dryrun.Discoverer{Discoverer: o.Discover}
		if policy != "" {
			own, err := config.FromFlags(policy, nil)
			if err != nil {
				return nil, err
			}
			view.Policy = own.Node().Policy
		}
		o.Discover, o.Log = view, slog.New(slog.DiscardHandler)
		return dryrun.Collect(ctx, o, entries(), watch)
	}
}
