package main

import (
	"context"
	"errors"
	"fmt"
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
	child    *experiment.Child
	keeper   *keeper
	cpus     cpu.Set
	requests string // the file from which plimsoll diagnose reads what the target has reserved
	passes   int    // of the batch job; 0: it is given time
}

// measure measures all situations.
func (s *settings) measure(ctx context.Context, p parties) (r *result, err error) {
	b := &bench{settings: s, parties: p}
	if b.server, err = frame.Memcached(1, connections); err != nil { // one thread, for the one CPU that the target has reserved
		return nil, err
	}
	if b.stress, err = experiment.Program("stress-ng"); err != nil {
		return nil, err
	}
	if b.cpus, err = experiment.Allowed(); err != nil {
		return nil, err
	}
	if err := frame.Confine(b.node()); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	slots, err := b.rounds(ctx)
	if err != nil {
		return nil, err
	}
	r = summarize(slots)
	r.Conditions = conditions{Machine: b.Machine(),
		Seconds: s.slot.Seconds(), Rounds: s.repeat, Rate: s.rate, Bound: experiment.Milliseconds(s.bound), Request: targetRequest, Emulated: s.emulated}
	return r, nil
}

// prepare starts what all situations have, and finds the size of the batch job.
func (b *bench) prepare(ctx context.Context) (err error) {
	b.Undo(b.server.Stop)
	if err := b.server.Start(b.enter(b.target)); err != nil {
		return err
	}
	if !b.emulated {
		if b.passes, err = b.calibrate(ctx); err != nil {
			return err
		}
	}
	if err := b.tellRequests(); err != nil {
		return err
	}
	if !slices.ContainsFunc(b.situations, func(s situation) bool { return s.Reserved }) {
		return nil
	}
	b.keeper, err = startKeeper(b.parties, b.node())
	return err
}

// calibrate finds how many passes of the batch job take as much CPU time as a measurement is to last. It is not wall time,
// which would count what others take meanwhile.
func (b *bench) calibrate(ctx context.Context) (int, error) {
	used, err := b.Spent(b.target, func() error {
		_, err := runJob(ctx, calibratePass, 0, b.enter(b.target))
		return err
	})
	if err == nil && used <= 0 {
		err = errors.New("the batch job used no CPU time")
	}
	if err != nil {
		return 0, err
	}
	return max(1, int(calibratePass*b.slot/used)), nil
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

// tellRequests writes down what the target has reserved.
func (b *bench) tellRequests() error {
	dir, err := b.Dir("reservation")
	if err != nil {
		return err
	}
	b.requests = filepath.Join(dir, "requests.yaml")
	return os.WriteFile(b.requests, []byte(configuration(b.target, strategy.ReserveNone, b.node())), 0o600)
}

// surround starts the neighbour; limits and weights are what the two have reserved.
func (b *bench) surround(n neighbour) error {
	if n.Kind == nobody {
		return nil
	}
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod}
	if n.Capped {
		limit = experiment.Limited(float64(runtime.NumCPU()) - targetRequest)
	}
	if err := b.Limit(b.neighbour, limit); err != nil {
		return err
	}
	cmd, err := n.command(b.stress)
	if err != nil {
		return err
	}
	b.child, err = experiment.Launch(cmd, b.enter(b.neighbour))
	return err
}

// silence ends the neighbour.
func (b *bench) silence() error {
	defer func() { b.child = nil }()
	return errors.Join(b.child.Ended(), b.child.Stop(stopPatience))
}

func (b *bench) rounds(ctx context.Context) ([]slot, error) {
	b.Say("%d situations, rounds: %d", len(b.situations), b.repeat)
	return experiment.Turns(b.Say, b.repeat, b.seed, b.situations, func(_ int, sit situation) (slot, error) { return b.measureSlot(ctx, sit) },
		func(s slot) string {
			return fmt.Sprintf("%-26s batch %5.2f s (%3.0f %% of its CPU)  memcached p99 %6.2f ms", s.situation.name(), s.took.Seconds(),
				100*s.utilization, experiment.Milliseconds(s.load.Latency.Quantile(0.99)))
		})
}

// measureSlot measures one situation once: the batch job, then memcached.
func (b *bench) measureSlot(ctx context.Context, sit situation) (s slot, err error) {
	s.situation = sit
	if err := b.surround(sit.Neighbour); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, b.silence()) }()
	if b.keeper != nil {
		if err := b.keeper.keep(ctx, sit.Reserved); err != nil {
			return s, err
		}
	}
	if err := experiment.Pause(ctx, afterChange); err != nil {
		return s, err
	}
	if err := b.batch(ctx, &s); err != nil {
		return s, fmt.Errorf("batch job: %w", err)
	}
	s.asked, err = b.diagnose(ctx, func() (err error) {
		s.load, err = b.request(ctx, b.rate, b.slot)
		return err
	})
	if err != nil {
		return s, fmt.Errorf("memcached: %w", err)
	}
	if b.search {
		s.most, s.least, err = highest(lowest, b.highest, searchSteps, b.bound, func(rate float64) (time.Duration, error) {
			return b.p99(ctx, rate)
		})
	}
	return s, err
}

// p99 is that of memcached's response time at a rate: the median of a few stretches, for one that another program of the
// machine disturbs is to decide nothing.
func (b *bench) p99(ctx context.Context, rate float64) (time.Duration, error) {
	var found []float64
	for range stretches {
		out, err := b.request(ctx, rate, b.slot/searchFraction)
		if err != nil {
			return 0, err
		}
		p99 := out.Latency.Quantile(0.99)
		if out.Errors > 0 { // what is not answered in time took longer than any
			p99 = max(p99, grace)
		}
		found = append(found, p99.Seconds())
	}
	return time.Duration(experiment.Median(found) * float64(time.Second)), nil
}

// batch runs the batch job and records what it received.
func (b *bench) batch(ctx context.Context, s *slot) (err error) {
	s.split, err = b.diagnose(ctx, func() error {
		var beside time.Duration
		used, err := b.Spent(b.target, func() (err error) {
			beside, err = b.Spent(b.neighbour, func() (err error) {
				s.took, err = runJob(ctx, b.passes, b.slot, b.enter(b.target))
				return err
			})
			return err
		})
		s.utilization = used.Seconds() / s.took.Seconds() / targetRequest
		s.neighbours = beside.Seconds() / s.took.Seconds()
		return err
	})
	return err
}

// request loads memcached over connections of its own.
func (b *bench) request(ctx context.Context, rate float64, length time.Duration) (*load.Outcome, error) {
	g, err := dial(b.server.Address())
	if err != nil {
		return nil, err
	}
	if err := frame.Foremost(); err != nil {
		b.Say("careful: the load generator competes with what it measures: %v", err)
	}
	out, err := g.run(ctx, load.Poisson(b.seed, uint64(rate), rate, length))
	return out, errors.Join(err, g.close())
}

// highest finds the highest rate between two at which the p99 is within the bound, by halving their distance on the
// scale of ratios. Where it is not even at the lowest, that is 0. It tells the p99 at the lowest too.
func highest(low, high float64, steps int, bound time.Duration, p99 func(rate float64) (time.Duration, error)) (most float64, least time.Duration, err error) {
	if least, err = p99(low); err != nil || least > bound {
		return 0, least, err
	}
	for range steps - 1 {
		rate := geometric(low, high)
		got, err := p99(rate)
		if err != nil {
			return 0, least, err
		}
		if got <= bound {
			low = rate
		} else {
			high = rate
		}
	}
	return low, least, nil
}
