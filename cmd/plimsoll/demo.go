package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
)

// demoWork is the CPU time of a request of the demo.
const demoWork = 40 * time.Millisecond

// demoFlags are what a person may choose about the demo.
type demoFlags struct {
	seconds, limit        float64
	utilization           ratio
	rounds, requests      int
	modes                 []string
	seed                  uint64
	json, figures, loaded bool
	svg                   string
}

func demoCommand(g *globals) *cobra.Command {
	f := demoFlags{utilization: 0.45}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show on this machine what each policy does to the latency of a service",
		Long: `Starts an HTTP service in a control group with a CPU limit, puts a load on it that uses about half of that limit,
and measures response times without a limit, with weights by request alone, with the limit alone, and with each policy of a
real agent. In the mode requestsOnly nobody has a limit: with --loaded, what keeps the machine busy is then ordinary work.
Everything is made for the demo and removed in the end; nothing else on the machine is changed.`,
		Example: "  plimsoll demo\n  plimsoll demo --seconds 10 --limit 0.5 --svg demo.svg\n" +
			"  plimsoll demo --loaded --modes requestsOnly,none,auto     # why not just remove the limits?",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			outliveReaders()
			ctx, stop := untilAsked(cmd)
			defer stop()
			return demo(ctx, g, f, cmd)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.seconds, "seconds", 30, "seconds of load for each mode")
	flags.IntVar(&f.rounds, "rounds", 0, "rounds in which the modes take turns (0: of about 10 s each)")
	flags.IntVar(&f.requests, "requests", 0, "continue until each mode has had this many requests")
	flags.Float64Var(&f.limit, "limit", 0.5, "CPU limit of the service")
	flags.Var(&f.utilization, "utilization", "mean CPU use of the service / its limit")
	flags.StringSliceVar(&f.modes, "modes", names(experiment.Modes()), "modes to measure")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the arrivals: the same seed sends the same requests")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.BoolVar(&f.figures, "figures", false,
		"compare the result with the project's figures; the mode unlimited runs twice for that")
	flags.BoolVar(&f.loaded, "loaded", false,
		"offline work (class BE, cpu.idle; ordinary in mode requestsOnly) keeps every CPU busy meanwhile")
	flags.StringVar(&f.svg, "svg", "", "write a chart to this file")
	return cmd
}

func names(modes []experiment.Mode) []string {
	var list []string
	for _, m := range modes {
		list = append(list, string(m))
	}
	return list
}

// config is the configuration by the flags.
func (f demoFlags) config(g *globals, self string) (experiment.Config, error) {
	modes, err := experiment.ParseModes(f.modes)
	if err != nil {
		return experiment.Config{}, err
	}
	if at := slices.Index(modes, experiment.Unlimited); f.figures && at >= 0 &&
		!slices.Contains(modes, experiment.UnlimitedAgain) {
		modes = slices.Insert(modes, at+1, experiment.UnlimitedAgain)
	}
	c := experiment.Config{
		Name: "demo", CgroupRoot: g.CgroupRoot, Agent: self, Version: version,
		Limit: f.limit, Utilization: float64(f.utilization), Modes: modes, Work: demoWork,
		PerMode: time.Duration(f.seconds * float64(time.Second)), Rounds: f.rounds, Requests: f.requests, Seed: f.seed,
		Loaded: f.loaded,
	}
	return c.Complete(), nil
}

func demo(ctx context.Context, g *globals, f demoFlags, cmd *cobra.Command) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the plimsoll binary: %w", err)
	}
	c, err := f.config(g, self)
	if err != nil {
		return err
	}
	if err := c.Check(runtime.NumCPU()); err != nil {
		return fmt.Errorf("demo: %w", experiment.Advise(err))
	}
	// The agent of the demo would fail, once the service is up.
	if locked := g.Holder(); locked != nil && experiment.NeedsAgent(c.Modes) {
		return fmt.Errorf("demo: it runs an agent of its own: %w", locked)
	}
	bar := progress.For(bars(cmd), "measuring", c.PerMode*time.Duration(len(c.Modes)))
	result, err := experiment.Run(ctx, c, &experiment.Service{Binary: self}, func(format string, args ...any) {
		bar.Say(cmd.ErrOrStderr(), fmt.Sprintf(format, args...))
	})
	bar.Stop()
	if err != nil {
		return fmt.Errorf("demo: %w", experiment.Advise(err))
	}
	err = f.tell(result, cmd.OutOrStdout()) // the result took minutes, and is kept when the chart fails
	if f.svg != "" {
		var chart bytes.Buffer
		_ = result.Chart().SVG(&chart) // into memory: cannot fail
		if failed := os.WriteFile(f.svg, chart.Bytes(), 0o644); failed != nil {
			failed = withHint(fmt.Errorf("demo: write the chart: %w", failed),
				"--svg names a file in a folder that you may write")
			err = errors.Join(err, failed)
		}
	}
	return err
}

// tell prints the result.
func (f demoFlags) tell(result *experiment.Result, out io.Writer) error {
	if f.json {
		return report.WriteJSON(out, result)
	}
	var page bytes.Buffer
	result.WriteText(&page)
	if f.figures {
		page.WriteByte('\n')
		experiment.WriteFigures(&page, result.Figures())
	}
	_, err := out.Write(page.Bytes())
	return err
}

// demoServiceCommand is the process that the demo puts under load.
func demoServiceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo-service",
		Short: "The service of the demo: waits for a line on standard input, prints its address, serves until the " +
			"input ends",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return load.Serve(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
