// Command burst measures requests that come at once to a service with a limit: how much later than without a limit all
// are answered, under each policy, and how much CPU time the agent takes meanwhile.
//
// Problem: the demo's p99 depends on the slowest thirty of 3,000 requests, and two equal runs differ in it by a
// tenth. A request is slow there because others came with it.
//
// Approach: repeat just that: one to three requests at once, at any phase of the period, each time after so much
// idle time that the mean use is that of the demo. The modes take turns in short rounds, and the result is the mean
// difference to the same round without a limit, with its 95 % interval.
//
// Known limits: the load generator and the agent run on the same machine, and take time from a service that uses all of
// its CPUs, as they do on any node that is full. The interval is that of a normal distribution: with a handful of
// rounds it is too narrow.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const (
	limitCPUs   = 0.5
	utilization = 0.45
	mostAtOnce  = 3
	perSlot     = 2 // bursts of each size
	work        = 40 * time.Millisecond
	openAtOnce  = 16
)

// modes are those that are compared; the first is what the others are compared with.
func modes() []experiment.Mode {
	return []experiment.Mode{experiment.Unlimited, experiment.Mode(strategy.CFSQuotaBurstOnly),
		experiment.Mode(strategy.Auto)}
}

// settings are what was asked for.
type settings struct {
	frame.Settings
	rounds int
	seed   uint64
}

func main() { frame.Main("burst", &settings{rounds: 30, seed: 1}) }

// Flags implements frame.Experiment.
func (s *settings) Flags(set *flag.FlagSet) {
	set.IntVar(&s.rounds, "rounds", s.rounds, "rounds in which the modes take turns, about 14 s each")
	set.Uint64Var(&s.seed, "seed", s.seed, "seed of the order and of the idle times")
}

// Check implements frame.Experiment.
func (s *settings) Check() error { return frame.Within("-rounds", s.rounds, 2, 1000) }

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	group  string // the service's
	limit  cpu.Bandwidth
	server experiment.Service
	client *load.Client
	agent  *experiment.Agent
	size   int           // of a request
	cost   time.Duration // CPU time of a request
	rng    *rand.Rand
}

// burst is what was measured of one.
type burst struct {
	mode   experiment.Mode
	round  int
	atOnce int
	took   time.Duration // until all were answered
	agent  time.Duration // CPU time of the agent meanwhile
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	b := &bench{Bench: f, limit: experiment.Limited(limitCPUs), client: load.NewClient(openAtOnce),
		rng: rand.New(rand.NewPCG(s.seed, 0))}
	defer b.client.Close()
	b.prepare(ctx)
	slots := frame.Turns(f, s.rounds, s.seed, modes(), func(round int, mode experiment.Mode) []burst {
		return b.slot(ctx, mode, round)
	}, func(list []burst) string { return string(list[0].mode) })
	return &result{Schema: schema, Kernel: experiment.Kernel(), Work: experiment.Milliseconds(b.cost), Limit: limitCPUs,
		Rounds: s.rounds, Rows: summarize(slices.Concat(slots...))}, nil
}

// prepare starts the service, finds the size of a request while nothing limits it, and starts the agent.
func (b *bench) prepare(ctx context.Context) {
	b.group, b.server.Binary = frame.Must(b.Add("web")), b.Plimsoll
	b.Serve(&b.server, b.group)
	var err error
	b.size, b.cost, err = b.Calibrate(ctx, b.group, work,
		func(size int) error { return b.client.Get(ctx, b.server.URL(size)) }, b.Say)
	frame.Check(err)
	frame.Check(b.Limit(b.group, b.limit))
	b.agent = b.Agent(experiment.Setup{})
}

// slot measures one mode in one round.
func (b *bench) slot(ctx context.Context, mode experiment.Mode, round int) (list []burst) {
	frame.Check(b.Under(b.agent, mode, b.group, b.limit, func() error {
		for i := range perSlot * mostAtOnce {
			one := burst{mode: mode, round: round, atOnce: 1 + i%mostAtOnce}
			if err := experiment.Pause(ctx, b.idle(one.atOnce)); err != nil {
				return err
			}
			if err := b.send(ctx, &one); err != nil {
				return err
			}
			list = append(list, one)
		}
		return nil
	}))
	return list
}

// idle is how long the service is idle before so many requests: at another phase of the period each time.
func (b *bench) idle(atOnce int) time.Duration {
	mean := time.Duration(float64(atOnce) * float64(b.cost) / (limitCPUs * utilization))
	return mean - b.limit.Period/2 + time.Duration(b.rng.Int64N(int64(b.limit.Period)))
}

// send sends the requests of a burst and waits for all answers.
func (b *bench) send(ctx context.Context, one *burst) error {
	before, after, err := experiment.Around(b.agent.Child().Used, func() error {
		failed := make([]error, one.atOnce)
		var wait sync.WaitGroup
		begin := time.Now()
		for i := range failed {
			wait.Go(func() { failed[i] = b.client.Get(ctx, b.server.URL(b.size)) })
		}
		wait.Wait()
		one.took = time.Since(begin)
		return errors.Join(failed...)
	})
	one.agent = after - before
	return err
}

// Schema names the format of the JSON. Fields are added, never renamed, within a version.
const schema = "plimsoll.lab.burst/v1"

// normal is how many standard errors a 95 % interval reaches to either side.
const normal = 1.96

// result is what was found.
type result struct {
	Schema string  `json:"schema"`
	Kernel string  `json:"kernel"`
	Work   float64 `json:"work_ms"` // CPU time of a request
	Limit  float64 `json:"limit_cpus"`
	Rounds int     `json:"rounds"`
	Rows   []row   `json:"rows"`
}

// row is one mode with so many requests at once.
type row struct {
	AtOnce int     `json:"at_once"`
	Mode   string  `json:"mode"`
	Mean   float64 `json:"mean_ms"`        // until all were answered
	Later  float64 `json:"later_ms"`       // than without a limit
	Within float64 `json:"later_error_ms"` // the 95 % interval is that much to either side
	Agent  float64 `json:"agent_cpu_ms"`   // in a burst
}

// summarize compares each mode with the first in the same round.
func summarize(all []burst) []row {
	var rows []row
	for atOnce := 1; atOnce <= mostAtOnce; atOnce++ {
		base := means(all, modes()[0], atOnce)
		for _, mode := range modes() {
			r := row{AtOnce: atOnce, Mode: string(mode)}
			var later []float64
			for round, mine := range means(all, mode, atOnce) {
				r.Mean += mine.took
				r.Agent += mine.agent
				later = append(later, mine.took-base[round].took)
			}
			if n := float64(len(later)); n > 0 {
				r.Mean, r.Agent = r.Mean/n, r.Agent/n
			}
			r.Later, r.Within = interval(later)
			rows = append(rows, r)
		}
	}
	return rows
}

// mean is that of the bursts of a round, in milliseconds.
type mean struct{ took, agent float64 }

// means are those of a mode, by round.
func means(all []burst, mode experiment.Mode, atOnce int) map[int]mean {
	list, n := map[int]mean{}, map[int]float64{}
	for _, b := range all {
		if b.mode == mode && b.atOnce == atOnce {
			n[b.round]++
			m := list[b.round]
			m.took += (experiment.Milliseconds(b.took) - m.took) / n[b.round]
			m.agent += (experiment.Milliseconds(b.agent) - m.agent) / n[b.round]
			list[b.round] = m
		}
	}
	return list
}

// interval is the mean of some values, and how far its 95 % interval reaches.
func interval(values []float64) (center, reach float64) {
	n := float64(len(values))
	if n < 2 {
		return 0, math.Inf(1)
	}
	for _, v := range values {
		center += v / n
	}
	var squares float64
	for _, v := range values {
		squares += (v - center) * (v - center)
	}
	return center, normal * math.Sqrt(squares/(n-1)/n)
}

// WriteText writes the table.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Requests of %.1f ms of CPU time to a service with a limit of %g CPUs, so many at once; %d "+
		"rounds, kernel %s.\n\n", r.Work, r.Limit, r.Rounds, r.Kernel)
	var t experiment.Table
	t.Row("at once|mode|all answered|later than unlimited|CPU time of the agent")
	for _, row := range r.Rows {
		later := "-"
		if row.Mode != string(experiment.Unlimited) {
			later = fmt.Sprintf("%.1f ms +- %.1f", row.Later, row.Within)
		}
		t.Row("%d|%s|%.1f ms|%s|%.2f ms", row.AtOnce, row.Mode, row.Mean, later, row.Agent)
	}
	t.Write(page)
	fmt.Fprintln(page, "All answered: mean time until the last answer. Later: mean of the differences, round by "+
		"round, with the 95 % interval.")
}
