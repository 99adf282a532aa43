package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/capacity"
	"plimsoll/internal/figure"
	"plimsoll/internal/loadline"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
)

// simulateFlags are what a person may choose about a simulation.
type simulateFlags struct {
	utilization, burst   ratio
	cgroups              int
	rule, replay         string
	rho, alpha, job      float64
	truncate             ratio
	limit, cpus          float64
	seed                 uint64
	periods              int64
	interference, asJSON bool
	sweep                []string
	figure               string
}

func simulateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Say how often bursts of the containers of a node coincide, and what a burst brings each of them",
		Long: `Say how often a period ends with work undone that quota and burst admit, because the bursts of several containers
coincided: P(WCET > 1 period), and the expected time E(WCET), with intervals; and for each container how often it is
throttled and for how long, without and with its burst. The model is in docs/MODEL.md.

Demand is of a law (exp, pareto, poisson) or recorded (data). Ratios are written 0.7 or 70%; a number above 10 needs its %.`,
		Example: "  plimsoll simulate exp --utilization 0.7 --cgroups 10 --burst 1\n  plimsoll simulate data " +
			"web.npy --cgroups 10 --burst 200%",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withHint(misusef("what demand is not said"),
				"plimsoll simulate exp --utilization 0.7 --cgroups 10 --burst 1, or pareto, poisson, data FILE")
		},
	}
	for _, law := range []string{"exp", "pareto", "poisson"} {
		cmd.AddCommand(simulateLawCommand(law))
	}
	cmd.AddCommand(simulateDataCommand())
	return cmd
}

func simulateLawCommand(law string) *cobra.Command {
	f := &simulateFlags{truncate: ratio(math.Inf(1))}
	cmd := &cobra.Command{
		Use: law,
		Short: map[string]string{"exp": "exponential demand", "pareto": "Pareto demand, with a long tail",
			"poisson": "a Poisson number of equal jobs"}[law],
		Example: "  plimsoll simulate " + law + " --utilization 0.7 --cgroups 10 --burst 1\n" +
			"  plimsoll simulate " + law +
			" --utilization 0.7 --sweep burst=0..2:0.25 --sweep cgroups=5..40:5 --figure risk.svg",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, &capacity.Law{Kind: law, Alpha: f.alpha, Truncate: float64(f.truncate), Job: f.job})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.Var(&f.utilization, "utilization", "mean demand of a container / its quota (required)")
	switch law {
	case "pareto":
		flags.Float64Var(&f.alpha, "alpha", 4, "exponent of the tail")
		flags.Var(&f.truncate, "truncate", "largest demand, in quotas")
	case "poisson":
		flags.Float64Var(&f.job, "job", 0.1, "size of a job, in quotas")
	}
	return cmd
}

func simulateDataCommand() *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "data FILE...",
		Short: "recorded demand (`plimsoll record`)",
		Long: `Each container replays a recording; with more containers than recordings they take turns. Containers that were recorded
together, in one file, are replayed together, so what their demands have to do with each other is kept. The quota is
the node's CPUs / --cgroups, or --limit. FILE is of ` + "`plimsoll record`" + `, or of the record (.parquet), of which all files together
are one recording of all containers.`,
		Example: "  plimsoll simulate data web.npy --cgroups 10 --burst 200%\n  plimsoll simulate data a.npy b.npy " +
			"--cgroups 12 --limit 0.5 --cpus 8\n" +
			"  plimsoll simulate data /var/lib/plimsoll/*.parquet --burst 100%",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := capacity.Load(args, f.cpus, f.limit)
			if err != nil {
				return err
			}
			warnAll(cmd.ErrOrStderr(), d.Notes())
			return f.run(cmd, d)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&f.limit, "limit", 0, "limit of each container in CPUs (default: the node's CPUs / --cgroups)")
	flags.Float64Var(&f.cpus, "cpus", 0, "CPUs of the node (default: of the machine that was recorded)")
	flags.Var(&f.utilization, "utilization", "scale the recordings to this mean demand / quota (default: as recorded)")
	flags.StringVar(&f.replay, "replay", loadline.Offsets.String(),
		"how recordings are replayed: offsets, blocks or iid")
	return cmd
}

func (f *simulateFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.cgroups, "cgroups", 0, "number of containers")
	flags.Var(&f.burst, "burst", "burst in quotas; 1 or 100% is as much as the quota, inf or -1 has no bound")
	flags.Var(&f.burst, "buffer", "the same as --burst")
	flags.StringVar(&f.rule, "rule", loadline.Strict.String(), "strict, or published: as the published program counted")
	flags.Float64Var(&f.rho, "rho", 0, "correlation of the containers' demands (Gaussian copula): a stress test")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the simulation: the same seed gives the same figures")
	flags.Int64Var(&f.periods, "periods", loadline.DefaultPeriods, "periods to simulate")
	flags.BoolVar(&f.interference, "interference", false,
		"share out period by period, to say what each container waits for its neighbours")
	flags.StringArrayVar(&f.sweep, "sweep", nil,
		"vary burst, cgroups or utilization: NAME=A..B:STEP or NAME=A,B,... (repeatable)")
	flags.StringVar(&f.figure, "figure", "", "draw the sweep into this file, .svg or .png")
	jsonFlag(cmd, &f.asJSON)
}

func (f *simulateFlags) run(cmd *cobra.Command, d capacity.Demand) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.cgroups == 0 {
		f.cgroups = d.Containers()
	}
	base := capacity.Case{Containers: f.cgroups, Burst: float64(f.burst), Utilization: float64(f.utilization)}
	ranges, err := capacity.ParseSweep(f.sweep)
	if err != nil {
		return err
	}
	if err := f.complete(cmd, ranges, d); err != nil {
		return err
	}
	points := int64(1)
	for _, r := range ranges {
		points *= int64(len(r.Values))
	}
	bar := progress.Start(bars(cmd), "simulating", points)
	if len(ranges) == 0 {
		s, err := capacity.Simulate(d, base, o)
		bar.Stop()
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), s, f.asJSON)
	}
	sweep, err := capacity.Sweep(d, base, ranges, o, func(done int) { bar.Set(int64(done)) })
	bar.Stop()
	if err != nil {
		return err
	}
	err = show(cmd.OutOrStdout(), sweep, f.asJSON)
	if f.figure != "" {
		err = errors.Join(err, draw(f.figure, capacity.Draw(sweep, ranges)))
	}
	return err
}

// complete says what was left out.
func (f *simulateFlags) complete(cmd *cobra.Command, ranges []capacity.Range, d capacity.Demand) error {
	given := func(name string) bool {
		for _, r := range ranges {
			if r.Name == name {
				return true
			}
		}
		return cmd.Flags().Changed(name)
	}
	if _, laws := d.(*capacity.Law); laws && !given("utilization") {
		return withHint(misusef("--utilization is missing"), "mean demand / quota, such as 0.7")
	}
	if f.cgroups < 0 || f.cgroups > capacity.MostContainers {
		return misusef("--cgroups %d: 1 to %d are taken", f.cgroups, capacity.MostContainers)
	}
	if f.cgroups == 0 && !given("cgroups") {
		return withHint(misusef("--cgroups is missing"), "how many containers share the node?")
	}
	if !given("burst") && !given("buffer") {
		return withHint(misusef("--burst is missing"), "in quotas: 1 is the most that mainline kernels take")
	}
	if f.figure == "" {
		return nil
	}
	if err := figure.Known(f.figure); err != nil {
		return misusef("--figure %s: %w", f.figure, err)
	}
	if len(ranges) == 0 {
		return withHint(misusef("--figure needs a --sweep"), "--sweep burst=0..2:0.25")
	}
	return nil
}

func (f *simulateFlags) options() (loadline.Options, error) {
	o := loadline.Options{Periods: f.periods, Seed: f.seed, Rho: f.rho, Interference: f.interference}
	var err1, err2 error
	o.Rule, err1 = choose("--rule", f.rule, loadline.Strict, loadline.Published)
	if f.replay != "" {
		o.Replay, err2 = choose("--replay", f.replay, loadline.Offsets, loadline.Blocks, loadline.IID)
	}
	if f.periods < 1 {
		return o, misusef("--periods %d: at least 1", f.periods)
	}
	return o, errors.Join(err1, err2)
}

// choose finds the value of a name.
func choose[T fmt.Stringer](flag, name string, values ...T) (T, error) {
	var names []string
	for _, v := range values {
		if v.String() == name {
			return v, nil
		}
		names = append(names, v.String())
	}
	return values[0], withHint(misusef("%s %q is not known", flag, name), strings.Join(names, ", "))
}

// warnAll writes each note as a warning.
func warnAll(w io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintln(w, "plimsoll: warning:", report.Printable(n))
	}
}

// draw writes a picture.
func draw(name string, c *figure.Canvas) error {
	f, err := os.Create(name)
	if err != nil {
		return withHint(fmt.Errorf("draw: %w", err), "--figure names a file in a folder that you may write")
	}
	return errors.Join(c.Write(f, name), f.Close())
}
