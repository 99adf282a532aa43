package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

const (
	lowest         = 500.0 // requests a second that the search begins with
	searchSteps    = 6
	stretches      = 3 // that a step of the search is measured in
	stopPatience   = 30 * time.Second
	calibratePass  = 20 // passes of the job that measure the cost of one
	searchFraction = 10 // a stretch takes so much less than a measurement
)

// bench is a measurement under way.
type bench struct {
	*settings
	parties
	server   *frame.Site // memcached
	stress   string      // program
	keeper   *keeper
	cpus     cpu.Set
	requests string // the file from which plimsoll diagnose reads what the target has reserved
	passes   int    // of the batch job; 0: it is given time
}

// measure measures all situations.
func (s *settings) measure(ctx context.Context, p parties) *result {
	b := &bench{settings: s, parties: p}
	b.stress, b.cpus = frame.Must(experiment.Program("stress-ng")), frame.Must(experiment.Allowed())
	b.server = frame.Must(frame.Memcached(1, connections)) // one thread, for the one CPU that the target has reserved
	frame.Check(frame.Confine(b.node()))
	b.prepare(ctx)
	b.Say("%d situations, rounds: %d", len(b.situations), b.repeat)
	slot := func(_ int, sit situation) figures { return b.measureSlot(ctx, sit) }
	slots := frame.Turns(b.Bench, b.repeat, b.seed, b.situations, slot, func(f figures) string {
		return fmt.Sprintf("%-26s batch %5.2f s (%3.0f %% of its CPU)  memcached p99 %6.2f ms", f.name(), f.Took,
			100*f.Utilization, f.P99)
	})
	r := summarize(slots, b.situations)
	r.Conditions = conditions{Machine: b.Machine(), Seconds: s.slot.Seconds(), Rounds: s.repeat, Rate: s.rate,
		Bound: experiment.Milliseconds(s.bound), Request: targetRequest, Emulated: s.emulated}
	return r
}

// prepare starts what all situations have, and finds the size of the batch job.
func (b *bench) prepare(ctx context.Context) {
	b.Undo(b.server.Stop)
	frame.Check(b.server.Start(b.enter(b.target)))
	if !b.emulated {
		b.passes = b.calibrate(ctx)
	}
	b.requests = filepath.Join(b.Dir("reservation"), "requests.yaml")
	frame.Check(os.WriteFile(b.requests, []byte(configuration(b.target, strategy.ReserveNone, b.node())), 0o600))
	if slices.ContainsFunc(b.situations, func(s situation) bool { return s.Reserved }) {
		b.keeper = startKeeper(b.parties, b.node())
	}
}

// calibrate finds how many passes of the batch job take as much CPU time as a measurement is to last. It is not wall
// time, which would count what others take meanwhile.
func (b *bench) calibrate(ctx context.Context) int {
	used := frame.Must(b.Spent(b.target, func() error { b.runJob(ctx, calibratePass); return nil }))
	if used <= 0 {
		frame.Check(errors.New("the batch job used no CPU time"))
	}
	return max(1, int(calibratePass*b.slot/used))
}

// node is the CPU of the node's own programs, which this one, the load and the agent are: in a cluster, too, they have
// CPUs that no container has for itself.
func (b *bench) node() cpu.Set { return b.cpus[:1] }

// enter puts a process into a group, with all CPUs that the group may use.
func (b *bench) enter(group string) func(pid int) error {
	return func(pid int) error {
		return errors.Join(b.Enter(group, pid), frame.Spread(pid, b.cpus))
	}
}

// surround starts the neighbour; limits and weights are what the two have reserved.
func (b *bench) surround(f *frame.Bench, n neighbour) {
	if n.Kind == nobody {
		return
	}
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod}
	if n.Capped {
		limit = experiment.Limited(float64(runtime.NumCPU()) - targetRequest)
	}
	frame.Check(b.Limit(b.neighbour, limit))
	child := frame.Must(experiment.Launch(frame.Must(n.command(b.stress)), b.enter(b.neighbour)))
	f.Undo(func() error { return errors.Join(child.Ended(), child.Stop(stopPatience)) })
}

// measureSlot measures one situation once: the batch job, then memcached.
func (b *bench) measureSlot(ctx context.Context, sit situation) figures {
	s := figures{situation: sit}
	b.Scope(ctx, func(f *frame.Bench) {
		b.surround(f, sit.Neighbour)
		if b.keeper != nil {
			b.keeper.keep(ctx, sit.Reserved)
		}
		frame.Check(experiment.Pause(ctx, afterChange))
		frame.In("batch job", func() { b.batch(ctx, &s) })
		frame.In("memcached", func() {
			s.Asked = b.diagnose(ctx, func() { s.answered(b.request(ctx, b.rate, b.slot)) })
		})
		if b.search {
			p99 := func(rate float64) time.Duration { return b.p99(ctx, rate) }
			most, least := highest(lowest, b.highest, searchSteps, b.bound, p99)
			s.Most, s.Least = most, experiment.Milliseconds(least)
		}
	})
	return s
}

// p99 is that of memcached's response time at a rate: the median of a few stretches, for one that another program of
// the machine disturbs is to decide nothing.
func (b *bench) p99(ctx context.Context, rate float64) time.Duration {
	var found []float64
	for range stretches {
		out := b.request(ctx, rate, b.slot/searchFraction)
		p99 := out.Latency.Quantile(0.99)
		if out.Errors > 0 { // what is not answered in time took longer than any
			p99 = max(p99, grace)
		}
		found = append(found, p99.Seconds())
	}
	return experiment.Seconds(experiment.Median(found))
}

// batch runs the batch job and records what it received.
func (b *bench) batch(ctx context.Context, s *figures) {
	s.Batch = b.diagnose(ctx, func() {
		var beside time.Duration
		used := frame.Must(b.Spent(b.target, func() (err error) {
			beside, err = b.Spent(b.neighbour, func() error {
				s.Took = b.runJob(ctx, b.passes).Seconds()
				return nil
			})
			return err
		}))
		s.Utilization, s.Neighbour = used.Seconds()/s.Took/targetRequest, beside.Seconds()/s.Took
	})
}

// request loads memcached over connections of its own.
func (b *bench) request(ctx context.Context, rate float64, length time.Duration) *load.Outcome {
	g := frame.Must(dial(b.server.Address()))
	if err := frame.Foremost(); err != nil {
		b.Say("careful: the load generator competes with what it measures: %v", err)
	}
	out, err := g.run(ctx, load.Poisson(b.seed, uint64(rate), rate, length))
	frame.Check(errors.Join(err, g.close()))
	return out
}

// highest finds the highest rate between two at which the p99 is within the bound, by halving their distance on the
// scale of ratios. Where it is not even at the lowest, that is 0. It tells the p99 at the lowest too.
func highest(low, high float64, steps int, bound time.Duration, p99 func(rate float64) time.Duration) (
	most float64, least time.Duration) {
	if least = p99(low); least > bound {
		return 0, least
	}
	for range steps - 1 {
		if rate := math.Sqrt(low * high); p99(rate) <= bound {
			low = rate
		} else {
			high = rate
		}
	}
	return low, least
}
