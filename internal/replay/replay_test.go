package replay

import (
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/trial"
)

const ms = time.Millisecond

func t0() time.Time { return time.Date(2026, 11, 25, 3, 12, 0, 0, time.UTC) }

// recorded runs a load on the simulated kernel under a strategy, and records it as the flight recorder does.
func recorded(t *testing.T, load sim.Load, quota time.Duration, s strategy.Strategy, span time.Duration, seed uint64) (*Series, *outcome) {
	t.Helper()
	const path = "/lab/a"
	begin := t0().Add(-10 * time.Second)
	w, err := trial.New(trial.Scenario{Kernel: sim.Config{CPUs: 4, Version: 2, BurstFile: true, Start: begin, Seed: seed}, Threshold: s.SharePoolThresholdPercent,
		Events: true, Ahead: true, Groups: []trial.Group{{Path: path, Quota: quota, Period: 100 * ms, Load: load, Strategy: s, Expiry: begin}}})
	if err != nil {
		t.Fatal(err)
	}
	rec := &Series{Cgroup: path, Name: "a", Period: 100 * ms, Begin: begin, Limits: []Limit{{begin, quota}}}
	truth := &outcome{}
	for at := time.Duration(0); at < span+10*time.Second; at += 100 * ms {
		used, lost := w.Kernel.Used(path), w.Kernel.ThrottledWall(path)
		w.Run(100*ms, nil)
		p := Place{Used: w.Kernel.Used(path) - used, Lost: w.Kernel.ThrottledWall(path) - lost}
		rec.Places = append(rec.Places, p)
		if at >= 10*time.Second {
			truth.lost += p.Lost
			truth.used += p.Used
			truth.above += max(0, p.Used-quota)
		}
	}
	w.Run(drain, nil)
	for _, r := range w.Kernel.Responses(path) {
		if !r.Arrived.Before(t0()) {
			truth.add(r.Latency(), r.Cost)
		}
	}
	return rec, truth
}

func auto() strategy.Strategy {
	s := strategy.Default()
	s.Policy, s.SharePoolThresholdPercent, s.StartupSeconds = strategy.Auto, 90, 0
	return s
}

func TestExplore(t *testing.T) {
	bursts := func(every time.Duration, cost sim.Cost, threads int) sim.Load { // all threads at once
		return sim.Load{Threads: threads, Jobs: func(r *rand.Rand) func() (sim.Job, bool) {
			at, n := -every, 0
			return func() (sim.Job, bool) {
				if n%threads == 0 {
					at += every
				}
				n++
				return sim.Job{At: at, Cost: cost(r)}, true
			}
		}}
	}
	for name, load := range map[string]sim.Load{
		"worker": sim.Poisson(8, sim.Exponential(40*ms), 2),
		"jvm":    bursts(1300*ms, sim.Exponential(120*ms), 2),
		"batch":  sim.Periodic(5*time.Second, sim.Fixed(1600*ms), 1),
	} {
		for seed := range uint64(2) {
			none := auto()
			none.Policy = strategy.None
			rec, was := recorded(t, load, 50*ms, none, time.Minute, seed)
			_, want := recorded(t, load, 50*ms, auto(), time.Minute, seed)
			_, free := recorded(t, load, 400*ms, none, time.Minute, seed)
			o := Setup{From: t0(), To: t0().Add(time.Minute), CPUs: 4, Strategy: auto(), Step: time.Second, Seed: 99}
			begin := time.Now()
			r, err := Compare([]*Series{rec}, nil, o, func() {})
			if err != nil {
				t.Fatal(err)
			}
			c := r.Containers[0]
			t.Logf("%s: took %v rate %.2f steady %.2f of %.2f", name, time.Since(begin), rec.rate(rec.episodes(), 4), rec.history(4).steady, was.used.Seconds()/60)
			t.Logf("   was: lost %v above %v used %v p99 latency %v (free %v); model %v", was.lost, was.above, was.used, percentile(was.late, .99), percentile(free.late, .99), *c.Model)
			t.Logf("   rec: %v", c.Was)
			t.Logf("   want: lost %v above %v used %v p99 latency %v", want.lost, want.above, want.used, percentile(want.late, .99))
			t.Logf("   got: %v", c.Would)
		}
	}
}
