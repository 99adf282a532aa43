// Command density finds out how many replicas of the demo's service one machine holds, without and with Plimsoll,
// when the 99th percentile of the response time must stay below a bound.
//
// The replicas' limits share the machine's CPUs evenly, so nothing is overcommitted: more replicas means a smaller
// limit for each, for the same load on each. Throttling is what ends it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const (
	openAtOnce = 64
	timeout    = 10 * time.Second
)

// settings say what a replica does, and how well.
type settings struct {
	frame.Settings
	bound  time.Duration // on p99
	use    float64       // CPUs that a replica uses on average
	work   time.Duration // CPU time of a request
	step   time.Duration // of load for each number of replicas
	seed   uint64
	cpus   int
	policy strategy.Policy
}

// usual are the settings without flags.
func usual() *settings {
	return &settings{bound: 100 * time.Millisecond, use: 0.1, work: 20 * time.Millisecond, step: 8 * time.Second,
		seed: 1, cpus: runtime.NumCPU(), policy: strategy.Auto}
}

func main() { frame.Main("density", usual()) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	frame.SecondsVar(set, &s.step, "seconds", "seconds of load for each number of replicas")
	set.StringVar((*string)(&s.policy), "policy", string(s.policy), "policy to compare with none")
	set.DurationVar(&s.bound, "p99", s.bound, "bound on the 99th percentile of the response time")
	set.DurationVar(&s.work, "work", s.work, "CPU time of a request")
	set.Float64Var(&s.use, "use", s.use, "CPUs that a replica uses on average")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the arrivals")
}

// Check implements frame.Experiment.
func (s *settings) Check() error {
	if err := (strategy.Patch{Policy: &s.policy}).Check(); err != nil {
		return err
	}
	switch {
	case s.policy == strategy.None:
		return errors.New("-policy none: is what the policy is compared with")
	case s.step < time.Second:
		return fmt.Errorf("-seconds %g: must be 1 or more", s.step.Seconds())
	case s.work < time.Millisecond:
		return fmt.Errorf("-work %v: must be 1ms or more", s.work)
	case s.bound <= s.work:
		return fmt.Errorf("-p99 %v: must be more than the work of one request, %v", s.bound, s.work)
	case s.use <= 0 || s.most() < 1:
		return fmt.Errorf("-use %g: must be above 0 and leave room for one replica on %d CPUs", s.use, s.cpus)
	}
	return nil
}

// most is how many replicas could do their work at all: with nine tenths of the machine, for the load generator
// needs some too.
func (s *settings) most() int { return int(0.9 * float64(s.cpus) / s.use) }

// replica is one service in its group.
type replica struct {
	experiment.Service
	group string
}

// bench is the machine with the replicas that were needed so far. They are kept for the next step.
type bench struct {
	*frame.Bench
	*settings
	agent    *experiment.Agent
	client   *load.Client
	replicas []*replica
	limit    cpu.Bandwidth // of the groups that were measured last
	measured []string
	size     int
	rate     float64
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	b := &bench{Bench: f, settings: s, client: load.NewClient(openAtOnce * s.most())}
	defer b.client.Close()
	b.calibrate(ctx)
	b.agent = f.Agent(experiment.Setup{})
	return &result{settings: s, Rate: b.rate, CPUs: s.cpus, Use: s.use, Bound: experiment.Milliseconds(s.bound),
		Without: b.search(ctx, strategy.None), With: b.search(ctx, s.policy)}, nil
}

// calibrate finds the size of a request with the first replica, which is not limited yet.
func (b *bench) calibrate(ctx context.Context) {
	b.grow(1)
	first := b.replicas[0]
	size, cost, err := b.Calibrate(ctx, first.group, b.work,
		func(size int) error { return b.client.Get(ctx, first.URL(size)) }, b.Say)
	frame.Check(err)
	b.size, b.rate = size, b.use/cost.Seconds()
	b.Say("a request costs %.1f ms of CPU time; up to %d replicas are tried, %v each", 1e3*cost.Seconds(), b.most(),
		b.step)
}

// grow starts replicas until there are n.
func (b *bench) grow(n int) {
	for len(b.replicas) < n {
		group := frame.Must(b.Add(fmt.Sprintf("web%d", len(b.replicas))))
		r := &replica{Service: experiment.Service{Binary: b.settings.Plimsoll}, group: group}
		b.replicas = append(b.replicas, r)
		b.Serve(r, group)
	}
}

func (b *bench) search(ctx context.Context, policy strategy.Policy) side {
	found := side{Policy: policy}
	found.Most = frame.Must(most(b.most(), func(n int) (bool, error) {
		var s step
		frame.In(fmt.Sprintf("%d replicas, policy %s", n, policy), func() { s = b.try(ctx, policy, n) })
		b.Say("%-17s  %2d replicas  p99 %4.0f ms  throttled %4.1f %%", policy, n, 1e3*s.P99.Seconds(), 100*s.Throttled)
		found.Steps = append(found.Steps, s)
		return s.fits(b.bound), nil
	}))
	return found
}

// try measures n replicas under a policy. The limits are changed while the agent is passive.
func (b *bench) try(ctx context.Context, policy strategy.Policy, n int) step {
	b.grow(n)
	frame.Check(b.agent.Apply(strategy.None, b.measured, b.limit))
	b.measured = nil
	b.limit = experiment.Limited(b.limitOf(n))
	for i, r := range b.replicas {
		frame.Check(b.Limit(r.group, b.limit))
		if i < n {
			b.measured = append(b.measured, r.group)
		}
	}
	frame.Check(b.agent.Apply(policy, b.measured, b.limit))
	return b.load(ctx, n)
}

// load puts its own arrivals on each of n replicas at once.
func (b *bench) load(ctx context.Context, n int) step {
	outcomes := make([]*load.Outcome, n)
	before, after := frame.Around(func() cpu.Counters { return b.counters(n) }, func() {
		var wait sync.WaitGroup
		for i, r := range b.replicas[:n] {
			wait.Go(func() {
				due := load.Poisson(b.seed, uint64(i), b.rate, b.step)
				outcomes[i] = load.Run(ctx, due, load.Bounds{Timeout: timeout, Open: openAtOnce},
					func(ctx context.Context) error { return b.client.Get(ctx, r.URL(b.size)) })
			})
		}
		wait.Wait()
		frame.Check(context.Cause(ctx))
	})
	all := load.Pool(outcomes...)
	return step{Replicas: n, Limit: b.limit.CPUs(), P99: all.Latency.Quantile(0.99), Requests: all.Requests(),
		Errors: all.Errors, Throttled: experiment.Ratio(after.Throttled-before.Throttled, after.Periods-before.Periods)}
}

// counters are those of n replicas together.
func (b *bench) counters(n int) (sum cpu.Counters) {
	for _, r := range b.replicas[:n] {
		c := frame.Must(b.Tree().Counters(r.group))
		sum.Periods += c.Periods
		sum.Throttled += c.Throttled
	}
	return sum
}

// most finds the largest number up to limit for which fits is true, given that it is true up to some number and false
// from there on: by doubling, then by halving. 0 when not even one fits.
func most(limit int, fits func(n int) (bool, error)) (int, error) {
	good, bad := 0, limit+1
	for good+1 < bad {
		n := (good + bad) / 2
		if bad == limit+1 { // no upper end is known yet
			n = min(max(1, 2*good), limit)
		}
		ok, err := fits(n)
		if err != nil {
			return 0, err
		}
		if ok {
			good = n
		} else {
			bad = n
		}
	}
	return good, nil
}

// step is what was measured with so many replicas.
type step struct {
	Replicas  int           `json:"replicas"`
	Limit     float64       `json:"limit_cpus"` // of each
	P99       time.Duration `json:"p99_ns"`
	Requests  int           `json:"requests"`
	Errors    int           `json:"errors"`
	Throttled float64       `json:"throttled_ratio"` // of all replicas together
}

// fits says whether the bound is kept. A request without an answer did not keep it.
func (s step) fits(bound time.Duration) bool {
	return s.Requests > 0 && s.P99 <= bound && 100*s.Errors <= s.Requests
}

// side is one policy's part of the result.
type side struct {
	Policy strategy.Policy `json:"policy"`
	Most   int             `json:"most_replicas"`
	Steps  []step          `json:"steps"`
}

// otherCause says so when it was not throttling that broke the bound.
func (s side) otherCause(bound time.Duration) string {
	for _, step := range s.Steps {
		if step.Replicas == s.Most+1 && !step.fits(bound) && step.Throttled < hardly {
			return fmt.Sprintf(" It was not throttling that ended it (%.1f %% of the periods with %d replicas): the "+
				"CPUs themselves were busy.", 100*step.Throttled, step.Replicas)
		}
	}
	return ""
}

// hardly any of the periods are throttled below this ratio.
const hardly = 0.01

// result is what the search found.
type result struct {
	*settings
	CPUs    int     `json:"cpus"`
	Use     float64 `json:"use_cpus"`            // of a replica
	Rate    float64 `json:"requests_per_second"` // of a replica
	Bound   float64 `json:"bound_ms"`            // on p99
	Without side    `json:"without"`
	With    side    `json:"with"`
}

// WriteText writes what the search found for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Replicas on %d CPUs; each uses %.2f CPUs (%v a request, %.1f requests a second), p99 must be "+
		"at most %v.\n", r.cpus, r.use, r.work, r.Rate, r.bound)
	fmt.Fprintf(page, "The limits of all replicas together are the machine's %d CPUs. %v of load for each row.\n\n",
		r.cpus, r.step)
	var t experiment.Table
	t.Row("policy|replicas|limit of each|p99|throttled|requests|errors|bound kept")
	for _, side := range []side{r.Without, r.With} {
		for _, s := range side.Steps {
			kept := "no"
			if s.fits(r.bound) {
				kept = "yes"
			}
			t.Row("%s|%d|%.3f|%.0f ms|%.1f %%|%d|%d|%s", side.Policy, s.Replicas, s.Limit,
				experiment.Milliseconds(s.P99), 100*s.Throttled, s.Requests, s.Errors, kept)
		}
	}
	t.Write(page)
	fmt.Fprintf(page, "\n%s\n", r.conclusion())
}

// conclusion says what the search means in cores, also when it means nothing.
func (r *result) conclusion() string {
	text := fmt.Sprintf("Most replicas within the bound: %d with policy %s, %d with %s.", r.Without.Most,
		r.Without.Policy, r.With.Most, r.With.Policy)
	switch {
	case r.With.Most == 0 && r.Without.Most == 0:
		return text + " The bound is too tight for this machine and this work."
	case r.With.Most <= r.Without.Most:
		return text + " Plimsoll did not raise the density in this run." + r.Without.otherCause(r.bound)
	case r.Without.Most == 0:
		return text + " Without Plimsoll, no number of replicas kept the bound."
	}
	need := float64(r.With.Most) * float64(r.cpus) / float64(r.Without.Most)
	text += fmt.Sprintf(" Without Plimsoll %d replicas, with the limit that each needs, would take %.2f CPUs instead "+
		"of %d: %.2f CPUs saved.", r.With.Most, need, r.cpus, need-float64(r.cpus))
	if r.With.Most == r.settings.most() {
		text += " No larger number was tried: it would fill the machine."
	}
	return text
}

// limitOf is the limit of each of so many replicas.
func (s *settings) limitOf(replicas int) float64 {
	return experiment.Limited(float64(s.cpus) / float64(replicas)).CPUs()
}
