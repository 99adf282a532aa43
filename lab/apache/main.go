// Command apache repeats the published CPU Burst experiments with Debian's Apache, which compresses a text of 1 MiB
// for each request, and prints what was measured beside what was published.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// settings say what is measured.
type settings struct {
	frame.Settings
	experiment.Config
	against     string
	utilization float64 // percent of the limit
	modes       string
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{Settings: frame.Settings{Groups: frame.NoGroups}, against: "koordinator",
		Config: experiment.Config{Name: "apache", Version: "lab", Limit: 0.5, Seed: 1, PerMode: 30 * time.Second}}
}

func main() { frame.Main("apache", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.PerMode, "seconds", "seconds of load for each mode")
	set.Float64Var(&s.utilization, "utilization", 0,
		"mean CPU use, in percent of the limit (default: 45, or as published)")
	set.IntVar(&s.Rounds, "rounds", 0, "rounds in which the modes take turns (0: of about 10 s each)")
	set.IntVar(&s.Requests, "requests", 0, "go on until each mode has had so many requests")
	set.Float64Var(&s.Limit, "limit", s.Limit, "CPU limit of Apache (published: 4, on larger machines)")
	set.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the arrivals")
	set.StringVar(&s.against, "against", s.against, "published figures to compare with: koordinator (all policies), "+
		"kernel (kernel burst only, at 62.5 % of the limit)")
	set.StringVar(&s.modes, "modes", "", "modes to measure, separated by commas (default: those of the comparison)")
	set.StringVar(&s.SVG, "svg", "", "write a chart to this file")
}

// Check implements frame.Experiment. The study that is compared with decides the load and the modes where they are not
// given.
func (s *settings) Check() (err error) {
	study, ok := studies()[s.against]
	if !ok {
		return fmt.Errorf("-against %q: must be koordinator or kernel", s.against)
	}
	s.Modes = study.modes
	if s.modes != "" {
		s.Modes, err = experiment.ParseModes(strings.Split(s.modes, ","))
	}
	s.Utilization = cmp.Or(s.utilization, study.utilization) / 100
	s.Config = s.Complete()
	return err
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (comparison, error) {
	server, err := frame.Apache()
	if err != nil {
		return comparison{}, err
	}
	s.CgroupRoot, s.Agent = s.Root, s.Plimsoll
	r, err := experiment.Run(ctx, s.Config, server, b.Say)
	return comparison{r, studies()[s.against]}, err
}

const (
	none  = experiment.Mode(strategy.None)
	burst = experiment.Mode(strategy.CPUBurstOnly)
	spiky = experiment.Mode(strategy.CFSQuotaBurstOnly)
	auto  = experiment.Mode(strategy.Auto)
)

// study is an experiment that somebody has published.
type study struct {
	source      string
	utilization float64 // to measure at, in percent of the limit
	modes       []experiment.Mode
	after       experiment.Mode // compared with none
	rows        []row
	note        string
}

// row is one published figure: before, after, and the change as far as it was given.
type row struct {
	what          string
	before, after string
	change        string
	of            func(experiment.ModeResult) float64
	spell         func(float64) string
}

func studies() map[string]study {
	p99 := func(m experiment.ModeResult) float64 { return m.P99 }
	mean := func(m experiment.ModeResult) float64 { return m.Mean }
	throttled := func(m experiment.ModeResult) float64 { return 100 * m.ThrottledRatio }
	ms := func(v float64) string { return fmt.Sprintf("%.1f ms", v) }
	percent := func(v float64) string { return fmt.Sprintf("%.1f %%", v) }
	return map[string]study{
		"koordinator": {
			source:      "Koordinator and ACK, Apache with a limit of 4 CPUs",
			utilization: 45, modes: []experiment.Mode{experiment.Unlimited, none, burst, spiky, auto}, after: auto,
			rows: []row{
				{"RT p99, Alibaba Cloud Linux", "107.37 ms", "67.18 ms", "-37.4 %", p99, ms},
				{"RT p99, CentOS", "111.69 ms", "71.30 ms", "-36.2 %", p99, ms},
				{"throttled", "33 %", "0 %", "", throttled, percent},
			},
			note: "Published at 32 % of 4 CPUs; at a limit of less than one CPU a single request fills a good part " +
				"of a period, so the tail without burst is longer.",
		},
		"kernel": {
			source:      "the authors of CPU Burst, at 62.5 % of a limit of 4 CPUs",
			utilization: 62.5, modes: []experiment.Mode{none, burst}, after: burst,
			rows: []row{
				{"RT mean", "30+ ms", "9.6 ms", "-68 %", mean, ms},
				{"RT p99", "500+ ms", "27.37 ms", "-94.5 %", p99, ms},
			},
			note: "Published with a mean response of 9.6 ms; a request here takes longer than that alone. The " +
				"mainline kernel takes at most the quota as burst.",
		},
	}
}

// comparison is what was measured, beside what was published.
type comparison struct {
	*experiment.Result
	study study
}

// WriteText writes both for people.
func (c comparison) WriteText(page *bytes.Buffer) {
	c.Result.WriteText(page)
	page.WriteByte('\n')
	writeBeside(page, c.study, c.Result)
}

// writeBeside writes each published figure beside what was measured.
func writeBeside(page *bytes.Buffer, s study, result *experiment.Result) {
	fmt.Fprintf(page, "Published by %s, and measured here (none, then %s):\n", s.source, s.after)
	before, after := result.Mode(none), result.Mode(s.after)
	if before == nil || after == nil {
		fmt.Fprintf(page, "not compared: modes %s and %s were not both measured\n", none, s.after)
		return
	}
	var t experiment.Table
	t.Row("figure|published||measured")
	for _, r := range s.rows {
		from, to := r.of(*before), r.of(*after)
		change := ""
		if r.change != "" && from > 0 {
			change = fmt.Sprintf("%+.1f %%", 100*(to/from-1))
		}
		t.Row("%s|%s -> %s|%s|%s -> %s|%s", r.what, r.before, r.after, r.change, r.spell(from), r.spell(to), change)
	}
	experiment.Columns(page, 0, t)
	fmt.Fprintln(page, s.note)
}
