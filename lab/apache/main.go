// Command apache repeats the published CPU Burst experiments with Debian's Apache, which compresses a text of 1 MiB
// for each request, and prints what was measured beside what was published.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"plimsoll/lab/experiment"
)

type flags struct {
	experiment.Config
	against  string
	json     bool
	svg      string
	plimsoll string
	modes    string
}

func main() {
	os.Exit(experiment.Fail("apache", run()))
}

func run() error {
	f, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	server, err := newApache()
	if err != nil {
		return err
	}
	if f.Agent, err = experiment.FindBinary(f.plimsoll); err != nil {
		return err
	}
	ctx, stop := experiment.UntilAsked()
	defer stop()
	result, err := experiment.Run(ctx, f.Config, server, experiment.Say)
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, result.Chart(), 0o644); err != nil {
			return fmt.Errorf("write the chart: %w", err)
		}
	}
	return experiment.Tell(comparison{result, studies()[f.against]}, f.json)
}

// parse reads the flags. The study that is compared with decides the load and the modes where they are not given.
func parse(args []string) (flags, error) {
	var f flags
	f.Config = experiment.Config{Name: "apache", Version: "lab"}
	set := flag.NewFlagSet("apache", flag.ExitOnError)
	seconds := set.Float64("seconds", 30, "seconds of load for each mode")
	utilization := set.Float64("utilization", 0, "mean CPU use, in percent of the limit (default: 45, or as published)")
	set.IntVar(&f.Rounds, "rounds", 0, "rounds in which the modes take turns (0: of about 10 s each)")
	set.IntVar(&f.Requests, "requests", 0, "go on until each mode has had so many requests")
	set.Float64Var(&f.Limit, "limit", 0.5, "CPU limit of Apache (published: 4, on larger machines)")
	set.Uint64Var(&f.Seed, "seed", 1, "seed of the arrivals")
	set.StringVar(&f.against, "against", "koordinator", "published figures to compare with: koordinator (all policies), kernel (kernel burst only, at 62.5 % of the limit)")
	set.StringVar(&f.modes, "modes", "", "modes to measure, separated by commas (default: those of the comparison)")
	experiment.AgentFlags(set, &f.CgroupRoot, &f.plimsoll)
	set.BoolVar(&f.json, "json", false, "print the result as JSON")
	set.StringVar(&f.svg, "svg", "", "write a chart to this file")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	study, ok := studies()[f.against]
	if !ok {
		return f, fmt.Errorf("-against %q: must be koordinator or kernel", f.against)
	}
	if *utilization == 0 {
		*utilization = study.utilization
	}
	f.Modes = study.modes
	if f.modes != "" {
		var err error
		if f.Modes, err = experiment.ParseModes(strings.Split(f.modes, ",")); err != nil {
			return f, err
		}
	}
	f.Utilization = *utilization / 100
	f.PerMode = experiment.Seconds(*seconds)
	f.Config = f.Config.Complete()
	return f, nil
}
