package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/capacity"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/trace/sampler"
)

// adviseFlags are what a person may choose about the advice.
type adviseFlags struct {
	live                         bool
	length                       length
	cgroups                      int
	limit, cpus                  float64
	target, throttled, mostBurst ratio
	seed                         uint64
	periods                      int64
	asJSON                       bool
}

func adviseCommand(g *globals) *cobra.Command {
	f := &adviseFlags{target: 0.999, throttled: 0.01, mostBurst: 1}
	cmd := &cobra.Command{
		Use:   "advise FILE... | --live [CONTAINER...]",
		Short: "Say what burst and what limits recorded containers need, and what that costs their neighbours",
		Long: `Say, from recordings, the largest burst with which bursts coincide no more often than the target allows, how many
containers fit, whether a burst is enough or the limit must rise, and how sure that is.

One recording: the node has --cgroups containers like it. Several: they take turns. --live records the containers of this
node first, or those that are named, each with its own limit. FILE is of ` + "`plimsoll record`" + `, or of the record (.parquet), of
which all files together are one recording of all containers.`,
		Example: `  plimsoll advise web.npy --limit 0.5 --cgroups 10
  plimsoll advise /var/lib/plimsoll/*.parquet
  plimsoll advise --live --for 5m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			d, err := f.demand(cmd, g, args)
			if err != nil {
				return err
			}
			warnAll(cmd.ErrOrStderr(), d.Notes())
			if f.cgroups == 0 {
				if f.cgroups, err = d.Fit(f.limit); err != nil {
					return err
				}
			}
			bar := progress.Start(bars(cmd), "computing", 0)
			a, err := f.question().Advise(d)
			bar.Stop()
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), a, f.asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "record the containers of this node first")
	f.length.flags(cmd, time.Minute, " with --live")
	flags.IntVar(&f.cgroups, "cgroups", 0,
		"number of containers (default: as many as fit with their limits, or as were recorded)")
	flags.Float64Var(&f.limit, "limit", 0,
		"limit of each container in CPUs (default: that of the recording, or the node's CPUs / --cgroups)")
	flags.Float64Var(&f.cpus, "cpus", 0, "CPUs of the node (default: of the machine that was recorded)")
	flags.Var(&f.target, "target", "P(WCET = 1 period) to keep")
	flags.Var(&f.throttled, "throttled", "share of a container's periods that may be throttled")
	flags.Var(&f.mostBurst, "kernel-burst", "largest burst that the kernel grants, in quotas; mainline: 1")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the simulations")
	flags.Int64Var(&f.periods, "periods", 0, "periods of each simulation (default: 1,000,000)")
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// demand is what was recorded, or is now.
func (f *adviseFlags) demand(cmd *cobra.Command, g *globals, args []string) (*capacity.Recordings, error) {
	if !f.live {
		if len(args) == 0 {
			return nil, withHint(misusef("no recording is named"), "plimsoll record CONTAINER --for 1h, or --live")
		}
		d, err := capacity.Load(args, f.cpus, f.limit)
		if err == nil && d.CPUs() == 0 {
			err = withHint(errors.New("the recordings do not say how many CPUs their machine had"), "give --cpus")
		}
		return d, err
	}
	ctx, stop := untilAsked(cmd) // ends the recording
	defer stop()
	d, err := capacity.NewRecordings(f.cpus, f.limit)
	if err != nil {
		return nil, err
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	groups, err := f.limited(ctx, cmd, g, tree, args)
	if err != nil {
		return nil, err
	}
	r, done, err := sampler.New(tree, groups)
	if err != nil {
		return nil, err
	}
	defer done()
	periods, err := f.length.in(r.Period)
	if err != nil {
		return nil, err
	}
	defer showProgress(&r, bars(cmd), periods)()
	t, err := r.Run(ctx, periods)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	if t.Series, err = d.Busy(t.Series); err != nil {
		return nil, err
	}
	return d, d.Add("live", t)
}

// limited are the groups that are named, or all containers that have a limit and the usual period.
func (f *adviseFlags) limited(ctx context.Context, cmd *cobra.Command, g *globals, tree *cgroup.Tree,
	args []string) ([]report.Container, error) {
	here, err := g.containerIndex(ctx, tree, &config.File{})
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		return here.Find(args)
	}
	var list []report.Container
	for _, c := range here.Containers() {
		b, err := tree.Bandwidth(c.Cgroup)
		if err != nil || !b.Limited() {
			continue
		}
		if b.Period != cpu.DefaultPeriod {
			fmt.Fprintf(cmd.ErrOrStderr(), "plimsoll: warning: %s is left out: its period is %s\n",
				report.Printable(c.Name), b.Period)
			continue
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, withHint(errors.New("no container with a limit is found on this node"),
			"name control groups: plimsoll advise --live /lab/a /lab/b")
	}
	return list, nil
}

// check finds what is wrong with the flags before anything is recorded, which may take an hour.
func (f *adviseFlags) check(cmd *cobra.Command) error {
	switch flags := cmd.Flags(); {
	case !f.live && (flags.Changed("for") || flags.Changed("samples")):
		return withHint(misusef("--for and --samples go with --live"), "plimsoll advise --live --for 5m")
	case f.cgroups < 0 || f.cgroups > capacity.MostContainers:
		return misusef("--cgroups %d: 1 to %d are taken", f.cgroups, capacity.MostContainers)
	case !(f.target > 0 && f.target < 1):
		return withHint(misusef("--target %g: between 0 and 1", f.target), "99.9%, say")
	case !(f.throttled > 0 && f.throttled < 1):
		return withHint(misusef("--throttled %g: between 0 and 1", f.throttled), "1%, say")
	case !(f.mostBurst > 0) || math.IsInf(float64(f.mostBurst), 1):
		return withHint(misusef("--kernel-burst %g: a number of quotas above 0", f.mostBurst), "mainline grants 1")
	case f.periods < 0:
		return withHint(misusef("--periods %d: 1 or more", f.periods), "1,000,000 are usual")
	case f.live:
		return f.length.check(cmd)
	}
	return nil
}

// question is what the model is asked.
func (f *adviseFlags) question() capacity.Question {
	return capacity.Question{Containers: f.cgroups, Limit: f.limit, Target: float64(f.target),
		Throttled: float64(f.throttled), MostBurst: float64(f.mostBurst), Seed: f.seed, Periods: f.periods}
}
