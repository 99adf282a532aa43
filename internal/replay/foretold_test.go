package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
)

// TestForetold: what a replay foretells of auto, beside the same load under auto. The time that auto saves is right
// within 6 %, the CPU time above the limit within its bounds, and the time that is still lost, on average, within 15 %;
// where all of it is alike, within 2 %. Of the web's requests none loses any, and that is foretold.
func TestForetold(t *testing.T) {
	part := map[string]float64{"requests": 0.15, "bursts": 0.15, "batch": 0.15, "collector": 0.02}
	for name, load := range loads() {
		var lost, lostForetold time.Duration
		for seed := range uint64(5) {
			c := compare(t, recorded(t, load, strategy.None, seed), minute())
			real := compare(t, recorded(t, load, strategy.Auto, seed), minute())
			if got, came := c.Would.Above, real.Was.Above.Value; came < got.Low-20*ms ||
				float64(came) > 1.05*float64(got.High) {
				t.Errorf("%s %d: above the limit: foretold %v, came %v", name, seed, got, came)
			}
			if saved, came := c.Was.Lost.Value-c.Would.Lost.Value, c.Was.Lost.Value-real.Was.Lost.Value; !near(saved,
				came, 0.06, 5*ms) {
				t.Errorf("%s %d: foretold to save %v, saved %v", name, seed, saved, came)
			}
			lost, lostForetold = lost+real.Was.Lost.Value, lostForetold+c.Would.Lost.Value
			t.Logf("%s %d: lost %v; auto: foretold %v, came %v; above: foretold %v, came %v", name, seed,
				c.Was.Lost.Value, c.Would.Lost, real.Was.Lost.Value, c.Would.Above, real.Was.Above.Value)
		}
		if !near(lostForetold, lost, part[name], 0) {
			t.Errorf("%s: foretold to lose %v in all, lost %v", name, lostForetold, lost)
		}
	}
}

// grains is a load of jobs whose threads do 5 ms after 5 ms. Each job is done by the thread that would be free first
// without a limit, and each grain comes at an instant of its own.
func grains(threads int, jobs []sim.Job) sim.Load {
	var list []sim.Job
	free := make([]time.Duration, threads)
	for _, j := range jobs {
		lane := 0
		for i := range free {
			if free[i] < free[lane] {
				lane = i
			}
		}
		free[lane] = max(free[lane], j.At) + j.Cost
		for range max(1, j.Cost/grain) {
			list = append(list, sim.Job{At: j.At + time.Duration(len(list)), Cost: grain, Lane: lane + 1})
		}
	}
	return sim.Script(threads, list...)
}

// TestForetoldDelays: the p99 delay under auto that is foretold is the one that comes, on average over minutes, within
// the aim of the lab, 15 % and 5 ms; that it is 0 is foretold too.
func TestForetoldDelays(t *testing.T) {
	const minutes = 12
	for _, c := range []struct {
		name    string
		threads int
		quota   time.Duration
		every   func(*rand.Rand) time.Duration
		cost    func(*rand.Rand) time.Duration
		jobs    int // at once
	}{
		{"requests", 2, quota, sim.Exponential(200 * ms), sim.Exponential(40 * ms), 1},
		{"bursts", 2, quota, func(r *rand.Rand) time.Duration { return time.Second + sim.Exponential(500*ms)(r) },
			sim.Exponential(100 * ms), 2},
		{"web", 1, 30 * ms, sim.Exponential(50 * ms), sim.Exponential(10 * ms), 1},
		{"batch", 1, 30 * ms, func(r *rand.Rand) time.Duration { return 4*time.Second + sim.Exponential(500*ms)(r) },
			sim.Fixed(time.Second), 1},
	} {
		var came, foretold time.Duration
		for seed := range uint64(minutes) {
			r := rand.New(rand.NewPCG(seed, 0))
			var jobs []sim.Job
			for at := 10 * time.Second; at < 80*time.Second; at += c.every(r) {
				for range c.jobs {
					jobs = append(jobs, sim.Job{At: at, Cost: c.cost(r)})
				}
			}
			load := grains(c.threads, jobs)
			none, _ := recordedAt(t, c.quota, load, strategy.None, seed)
			_, auto := recordedAt(t, c.quota, load, strategy.Auto, seed)
			_, free := recordedAt(t, time.Duration(c.threads)*time.Second, load, strategy.None, seed)
			came += percentile(later(auto, free), 0.99) / minutes
			foretold += compare(t, none, minute()).Would.Delay.Value / minutes
		}
		t.Logf("%s: %v came, %v was foretold", c.name, came, foretold)
		if !near(foretold, came, 0.15, 5*ms) {
			t.Errorf("%s: %v came, %v was foretold", c.name, came, foretold)
		}
	}
}

// later is how much later than in another run work was done that came in the minute.
func later(done, free []sim.Response) (late []sample) {
	for _, list := range [][]sim.Response{done, free} {
		slices.SortFunc(list, func(a, b sim.Response) int { return a.Arrived.Compare(b.Arrived) })
	}
	for i, r := range done {
		if i < len(free) && !r.Arrived.Before(minute().From) && r.Arrived.Before(minute().To) {
			late = append(late, sample{max(0, r.Done.Sub(free[i].Done)), r.Cost})
		}
	}
	return late
}
