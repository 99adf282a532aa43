// Command receipts holds a receipt against what it claims: how much shorter Apache is throttled because of Plimsoll, as
// the agent measures it with `receipts`, and as `plimsoll demo` does, by taking turns with and without.
//
// Approach: first the demo's experiment, on Apache and with two modes, gives the wall time throttled in a minute of
// load with and without refills. Then the same server gets the same kind of load from an agent that withholds a part of
// the spells, for longer. Its estimate, times the number of spells, is the same difference,
// and its interval has to cover it.
//
// Known limits: the difference of the demo is measured too, over some minutes, and its own error is in neither
// interval. Throttles that are in no spell, as after a withheld one that was cut, are in the demo's difference and not
// in the receipt.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"text/tabwriter"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

type settings struct {
	frame.Settings
	limit       float64 // CPUs
	utilization float64 // percent of the limit
	length      time.Duration
	beside      time.Duration
	percent     float64 // of the spells
	policy      string
	seed        uint64
}

func usual() *settings {
	return &settings{limit: 0.5, utilization: 45, length: 20 * time.Minute, beside: 5 * time.Minute, percent: 10,
		policy: string(strategy.CFSQuotaBurstOnly), seed: 1}
}

func main() { frame.Main("receipts", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.length, "seconds", "seconds of load with receipts")
	frame.SecondsVar(set, &s.beside, "beside", "seconds of load for each mode that is compared with")
	set.Float64Var(&s.limit, "limit", s.limit, "CPU limit of Apache")
	set.Float64Var(&s.utilization, "utilization", s.utilization, "mean CPU use, in percent of the limit")
	set.Float64Var(&s.percent, "percent", s.percent, "receipts: how many percent of the spells are withheld")
	set.StringVar(&s.policy, "policy", s.policy,
		"cfsQuotaBurstOnly, which is compared with none, or auto, with cpuBurstOnly")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the arrivals")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	if _, err := s.without(); err != nil {
		return err
	}
	return cmp.Or(frame.Within("-limit", s.limit, 0.05, float64(runtime.NumCPU())),
		frame.Within("-utilization", s.utilization, 5, 90),
		frame.Within("-percent", s.percent, 0.1, 50), frame.Within("-seconds", s.length, 5*time.Second, 24*time.Hour),
		frame.Within("-beside", s.beside, 5*time.Second, 24*time.Hour))
}

// without is the mode that a withheld spell is in.
func (s *settings) without() (experiment.Mode, error) {
	switch strategy.Policy(s.policy) {
	case strategy.CFSQuotaBurstOnly:
		return experiment.Mode(strategy.None), nil
	case strategy.Auto:
		return experiment.Mode(strategy.CPUBurstOnly), nil
	}
	return "", fmt.Errorf("-policy %q: must be cfsQuotaBurstOnly or auto", s.policy)
}

// result is what was measured. Times are seconds of wall time throttled in a minute of load.
type result struct {
	Conditions experiment.Conditions   `json:"conditions"`
	Policy     string                  `json:"policy"`
	Against    string                  `json:"against"`
	Percent    float64                 `json:"percent"`
	Seconds    float64                 `json:"seconds"`
	Without    float64                 `json:"without_seconds_a_minute"`
	With       float64                 `json:"with_seconds_a_minute"`
	Saved      report.Caused           `json:"saved_a_minute"`
	Receipt    report.ContainerReceipt `json:"receipt"`
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, b *frame.Bench) (*result, error) {
	site := frame.Must(frame.Apache())
	against, _ := s.without() // checked
	with := experiment.Mode(s.policy)
	c := experiment.Config{Name: "receipts-beside", Version: "lab", CgroupRoot: s.Root, Agent: s.Plimsoll,
		Limit:       s.limit,
		Utilization: s.utilization / 100, Modes: []experiment.Mode{against, with}, PerMode: s.beside, Seed: s.seed}
	compared := frame.Must(experiment.Run(ctx, c.Complete(), site, b.Say))
	minute := func(m experiment.Mode) float64 {
		r := compared.Mode(m)
		return 60 * experiment.Ratio(r.Lost, r.Seconds)
	}
	r := &result{Conditions: compared.Conditions, Policy: s.policy, Against: string(against), Percent: s.percent,
		Seconds: s.length.Seconds(), Without: minute(against), With: minute(with)}
	b.Say("throttled in a minute of load: %.2f s with policy %s, %.2f s with %s", r.Without, against, r.With, with)
	r.Receipt = s.receipt(ctx, b, site, compared.Conditions.Rate)
	n := float64(r.Receipt.Treated+r.Receipt.Withheld) * 60 / s.length.Seconds()
	x := r.Receipt.Saved
	r.Saved = report.Caused{Mean: x.Mean * n, Low: x.Low * n, High: x.High * n, Known: x.Known}
	return r, nil
}

// receipt loads the server beside an agent with receipts.
func (s *settings) receipt(ctx context.Context, b *frame.Bench, site *frame.Site,
	rate float64) report.ContainerReceipt {
	group := frame.Must(b.Add("web"))
	b.Serve(site, group)
	frame.Check(b.Limit(group, experiment.Limited(s.limit)))
	a := b.Agent(experiment.Setup{})
	text := fmt.Sprintf("strategy: {policy: none}\noverrides:\n  - {cgroup: %q, policy: %s, receipts: %g%%, "+
		"startupSeconds: 0}\n", group, s.policy, s.percent)
	now := func() (list []report.ContainerReceipt, err error) {
		status, err := a.Status(ctx)
		return report.ReceiptsOf(status).Containers, err
	}
	frame.Check(a.Follow(ctx, text, func() error {
		if list, err := now(); err != nil || len(list) == 1 {
			return err
		}
		return errors.New("no receipt in the status")
	}))
	b.Say("%v of load at %.2f requests a second, %g %% of the spells withheld", s.length, rate, s.percent)
	client := load.NewClient(open)
	defer client.Close()
	due := load.Poisson(s.seed, 1000, rate, s.length)
	load.Run(ctx, due, load.Bounds{Timeout: 30 * time.Second, Open: open},
		func(ctx context.Context) error { return client.Get(ctx, site.URL(0)) })
	frame.Check(context.Cause(ctx))
	frame.Check(experiment.Pause(ctx, 3*time.Second)) // for the last spell
	list := frame.Must(now())
	if len(list) != 1 {
		frame.Check(fmt.Errorf("%d receipts in the status", len(list)))
	}
	return list[0]
}

const open = 256 // requests under way at once

// Aims: the interval covers the difference that the demo measures.
func (r *result) Aims() []experiment.Figure {
	known := r.Saved.Known
	return []experiment.Figure{
		{Name: "throttled a minute less, by turns [s]", Value: r.Without - r.With, AtLeast: r.Saved.Low,
			AtMost: r.Saved.High, Measured: known},
		{Name: "lower end of the receipt's interval [s]", Value: r.Saved.Low, AtLeast: 0, AtMost: max(r.Saved.High, 0),
			Measured: known},
	}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	c := r.Conditions
	fmt.Fprintf(page, "Apache with a limit of %g CPUs at %.0f %% of it, %.2f requests a second; kernel %s, cgroup "+
		"%s.\n", c.Limit, 100*c.Utilization, c.Rate, c.Kernel, c.Cgroup)
	x := r.Receipt
	interval := "no interval yet: fewer than 30 spells of one kind"
	if r.Saved.Known {
		interval = fmt.Sprintf("%.2f to %.2f s", r.Saved.Low, r.Saved.High)
	}
	experiment.Columns(page, tabwriter.AlignRight, [][]string{
		{"throttled in a minute of load", "", "measured"},
		{"policy " + r.Against, fmt.Sprintf("%.2f s", r.Without), fmt.Sprintf("%.0f s, by turns", c.Seconds)},
		{"policy " + r.Policy, fmt.Sprintf("%.2f s", r.With), ""},
		{"difference", fmt.Sprintf("%.2f s", r.Without-r.With), ""},
		{"receipt: saved", fmt.Sprintf("%.2f s", r.Saved.Mean),
			fmt.Sprintf("%.0f s, %d of %d spells withheld", r.Seconds, x.Withheld, x.Withheld+x.Treated)},
		{"its interval of 95 %", "", interval},
	})
	fmt.Fprintf(page, "A spell was throttled for %.1f ms, a withheld one for %.1f ms: %s.\n", 1e3*x.TreatedLost,
		1e3*x.WithheldLost, x.Verdict)
	less, word := 1e3*x.Neighbours.Mean, "less"
	if less < 0 {
		less, word = -less, "more"
	}
	fmt.Fprintf(page,
		"Neighbours used %.2f ms of CPU time %s in the 100 ms after a spell that was not withheld began.\n", less, word)
	frame.WriteAims(page, nil, r.Aims())
}
