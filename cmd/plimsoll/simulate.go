package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

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
		Example: "  plimsoll simulate exp --utilization 0.7 --cgroups 10 --burst 1\n  plimsoll simulate data web.npy --cgroups 10 --burst 200%",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withHint(misusef("what demand is not said"), "plimsoll simulate exp --utilization 0.7 --cgroups 10 --burst 1, or pareto, poisson, data FILE")
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
		Use:   law,
		Short: map[string]string{"exp": "exponential demand", "pareto": "Pareto demand, with a long tail", "poisson": "a Poisson number of equal jobs"}[law],
		Example: "  plimsoll simulate " + law + " --utilization 0.7 --cgroups 10 --burst 1\n" +
			"  plimsoll simulate " + law + " --utilization 0.7 --sweep burst=0..2:0.25 --sweep cgroups=5..40:5 --figure risk.svg",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, &laws{kind: law, alpha: f.alpha, truncate: float64(f.truncate), job: f.job})
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
the node's CPUs / --cgroups, or --limit. FILE is of ` + "`plimsoll record`" + `, or of the flight recorder (.parquet), of which all files together
are one recording of all containers.`,
		Example: "  plimsoll simulate data web.npy --cgroups 10 --burst 200%\n  plimsoll simulate data a.npy b.npy --cgroups 12 --limit 0.5 --cpus 8\n" +
			"  plimsoll simulate data /var/lib/plimsoll/*.parquet --burst 100%",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := loadTapes(args, f.cpus, f.limit)
			if err != nil {
				return err
			}
			d.warn(cmd.ErrOrStderr())
			return f.run(cmd, d)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&f.limit, "limit", 0, "limit of each container in CPUs (default: the node's CPUs / --cgroups)")
	flags.Float64Var(&f.cpus, "cpus", 0, "CPUs of the node (default: of the machine that was recorded)")
	flags.Var(&f.utilization, "utilization", "scale the recordings to this mean demand / quota (default: as recorded)")
	flags.StringVar(&f.replay, "replay", loadline.Offsets.String(), "how recordings are replayed: offsets, blocks or iid")
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
	flags.BoolVar(&f.interference, "interference", false, "share out period by period, to say what each container waits for its neighbours")
	flags.StringArrayVar(&f.sweep, "sweep", nil, "vary burst, cgroups or utilization: NAME=A..B:STEP or NAME=A,B,... (repeatable)")
	flags.StringVar(&f.figure, "figure", "", "draw the sweep into this file, .svg or .png")
	jsonFlag(cmd, &f.asJSON)
}

// demands makes the node of a case: of laws, or of recordings.
type demands interface {
	node(c scenario) (loadline.Node, []string, error)
	name() string
	title(c scenario) string
	conditions() []string
	containers() int // as many as the data have; 0: not said
	load(c scenario) (float64, error)
}

// scenario is what a sweep varies. A utilization of 0 is that of the data.
type scenario struct {
	cgroups            int
	burst, utilization float64
}

func (f *simulateFlags) run(cmd *cobra.Command, d demands) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.cgroups == 0 {
		f.cgroups = d.containers()
	}
	base := scenario{f.cgroups, float64(f.burst), float64(f.utilization)}
	ranges, err := parseSweep(f.sweep)
	if err != nil {
		return err
	}
	if err := f.complete(cmd, ranges, d); err != nil {
		return err
	}
	points := int64(1)
	for _, r := range ranges {
		points *= int64(len(r.values))
	}
	bar := progress.Start(bars(cmd), "simulating", points)
	if len(ranges) == 0 {
		s, err := simulate(d, base, o)
		bar.Stop()
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), s, f.asJSON)
	}
	sweep, err := f.sweepOver(d, base, ranges, o, bar)
	bar.Stop()
	if err != nil {
		return err
	}
	err = show(cmd.OutOrStdout(), sweep, f.asJSON)
	if f.figure != "" {
		err = errors.Join(err, draw(f.figure, sweepFigure(sweep, ranges)))
	}
	return err
}

// mostCgroups bounds the number of containers: a node has thousands.
const mostCgroups = 1_000_000

// complete says what was left out.
func (f *simulateFlags) complete(cmd *cobra.Command, ranges []sweepRange, d demands) error {
	given := func(name string) bool {
		for _, r := range ranges {
			if r.name == name {
				return true
			}
		}
		return cmd.Flags().Changed(name)
	}
	if _, laws := d.(*laws); laws && !given("utilization") {
		return withHint(misusef("--utilization is missing"), "mean demand / quota, such as 0.7")
	}
	if f.cgroups < 0 || f.cgroups > mostCgroups {
		return misusef("--cgroups %d: 1 to %d are taken", f.cgroups, mostCgroups)
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

// simulate runs one case.
func simulate(d demands, c scenario, o loadline.Options) (report.Simulation, error) {
	node, names, err := d.node(c)
	if err != nil {
		return report.Simulation{}, err
	}
	r, err := loadline.Simulate(node, o)
	if err != nil {
		return report.Simulation{}, err
	}
	s := report.Simulation{Miss: r.Miss.Value, MissCI: [2]float64{r.Miss.Low, r.Miss.High}, WCET: r.WCET.Value, WCETCI: [2]float64{r.WCET.Low, r.WCET.High},
		Method: r.Method, Rule: r.Rule.String(), Periods: r.Periods, Title: d.title(c), Conditions: conditions(d, o)}
	total := 0.0
	for i, out := range r.Containers {
		n := node.Containers[i]
		total += n.Demand.Mean()
		s.Containers = append(s.Containers, report.SimulatedContainer{ThrottledWithout: out.ThrottledWithout, ThrottledWith: out.ThrottledWith, Delay: out.DelayWith,
			Name: names[i], Use: n.Demand.Mean() / n.Quota, DelayWithout: out.DelayWithout, Interference: out.Interference})
	}
	s.Price = r.Waiting / total
	if committed := node.Committed() / node.Capacity; committed > 1+1e-9 {
		s.Conditions = append(s.Conditions, fmt.Sprintf("the limits add up to %.4g %% of the node: what a container is sure of is less than its limit", 100*committed))
	}
	return s, nil
}

// conditions are those under which the figures are valid.
func conditions(d demands, o loadline.Options) []string {
	list := d.conditions()
	if o.Rho > 0 {
		return append(list, fmt.Sprintf("the demands of one period are correlated with rho = %g, its periods independent of each other", o.Rho))
	}
	return append(list, "demands of different containers have nothing to do with each other: --rho 0.1 shows what it means if they have")
}

// draw writes a picture.
func draw(name string, c *figure.Canvas) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return errors.Join(c.Write(f, name), f.Close())
}
