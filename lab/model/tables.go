package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
	"plimsoll/lab/frame"
)

// cells prints every published cell beside what the published rule gives, and fails if one is too far off.
func (l *lab) cells() {
	l.print("published cells, published rule, %d periods each; z = (published - mine) / standard error\n\n", l.periods)
	l.print("%-34s %18s %18s %6s %6s\n", "cell", "published E/P", "mine E/P", "z(E)", "z(P)")
	worst, sum, count := 0.0, 0.0, 0
	for _, c := range published.Cells() {
		if c.Kind == published.Poisson {
			continue
		}
		k := frame.Must(published.Against(c, l.periods, l.seed))
		l.print("%-34v %9.4f/%6.2f %% %9.4f/%6.3f %% %+6.1f %+6.1f\n", c, c.WCET, 100*c.Miss, k.Mine.WCET.Value,
			100*k.Mine.Miss.Value, k.ZWCET, k.ZMiss)
		for _, z := range []float64{k.ZWCET, k.ZMiss} {
			worst = max(worst, math.Abs(z))
			sum += z * z
			count++
		}
	}
	l.print("\n%d figures: rms of z %.2f, worst %.1f\n\n", count, math.Sqrt(sum/float64(count)), worst)
	outside := l.brackets()
	if worst > 3 || outside > 0 {
		frame.Check(fmt.Errorf("the worst figure is %.1f standard errors off, %d Poisson cells are outside of "+
			"their brackets", worst, outside))
	}
}

// brackets prints the Poisson cells: the figures lie between ties that count as met and ties that count as broken.
func (l *lab) brackets() (outside int) {
	l.print("Poisson cells: ties met .. ties broken\n\n%-34s %18s %37s\n", "cell", "published E/P", "bracket E/P")
	for _, c := range published.Cells() {
		if c.Kind != published.Poisson {
			continue
		}
		low, high, err := published.Bracket(c, l.periods, l.seed)
		frame.Check(err)
		word := "within"
		if !c.Within(low, high) {
			word = "OUTSIDE"
			outside++
		}
		l.print("%-34v %9.4f/%6.2f %% %9.4f/%6.2f %% ..%9.4f/%6.2f %% %s\n", c, c.WCET, 100*c.Miss, low.WCET.Value,
			100*low.Miss.Value, high.WCET.Value, 100*high.Miss.Value, word)
	}
	l.print("\n")
	return outside
}

// tables prints the tables of the article (docs/MODEL.md), which were pictures: m = 10, 20, 30.
func (l *lab) tables() {
	for _, kind := range []published.Kind{published.Exponential, published.Pareto} {
		l.print("%s demand: E / P by the published rule (P by the strict rule), %d periods\n\n", kind, l.periods)
		l.print("| m | u | b=100%% | b=200%% | b=inf |\n|---|---|---|---|---|\n")
		for _, m := range []int{10, 20, 30} {
			for _, u := range []float64{0.3, 0.5, 0.7, 0.8, 0.9} {
				l.print("| %d | %.0f%% |", m, 100*u)
				for _, b := range []float64{1, 2, math.Inf(1)} {
					c := published.Cell{Kind: kind, M: m, Utilization: u, Burst: b}
					p, s := l.asPublished(c), l.of(c)
					l.print(" %.4f / %.3f%% (%.3f%%) |", p.WCET.Value, 100*p.Miss.Value, 100*s.Miss.Value)
				}
				l.print("\n")
			}
		}
		l.print("\n")
	}
}

// claims prints the figures that docs/MODEL.md quotes.
func (l *lab) claims() {
	for _, f := range []func(){l.seed000, l.cut, l.blindSpot, l.bound, l.control, l.correlation, l.memory, l.length} {
		f()
		l.print("\n")
	}
}

// seed000 tests "below 70 % average CPU utilization, no major impact".
func (l *lab) seed000() {
	l.print("the article: below an average of 70 %% no major impact? P(WCET > 1), strict, burst 100 %%\n")
	l.print("%-12s %4s %9s %9s %9s %9s\n", "demand", "m", "u=50%", "u=60%", "u=65%", "u=70%")
	for _, kind := range []published.Kind{published.Exponential, published.Pareto} {
		for _, m := range []int{5, 10, 20, 30} {
			l.print("%-12s %4d", kind, m)
			for _, u := range []float64{0.5, 0.6, 0.65, 0.7} {
				l.print(" %8.3f%%", 100*l.of(published.Cell{Kind: kind, M: m, Utilization: u, Burst: 1}).Miss.Value)
			}
			l.print("\n")
		}
	}
}

// cut tests "the maximum is about 500 %": the Pareto law whole,
// and under the condition that it stays below five quotas.
func (l *lab) cut() {
	l.print("Pareto demand, m=20 u=70 %%, burst without bound: P(WCET > 1) where 0.12 %% was published\n")
	for _, most := range []float64{math.Inf(1), 5} {
		law := frame.Must(loadline.Pareto(0.7/20, 4, most/20))
		r := l.simulate(alike(20, math.Inf(1), law), loadline.Options{Rule: loadline.Published})
		l.print("cut at %4.0f%% of the quota: %.4f%%\n", 100*most, 100*r.Miss.Value)
	}
}

// blindSpot compares the rules.
func (l *lab) blindSpot() {
	l.print("the published rule's blind spot: exponential demand, burst 100 %%: P(WCET > 1) / E(WCET)\n")
	l.print("%4s %5s %18s %18s\n", "m", "u", "published", "strict")
	for _, c := range []published.Cell{exponential(5, 0.5, 1), exponential(5, 0.7, 1), exponential(5, 0.9, 1),
		exponential(10, 0.9, 1), exponential(20, 0.9, 1), exponential(20, 0.7, 1)} {
		p, s := l.asPublished(c), l.of(c)
		l.print("%4d %4.0f%% %9.3f%% / %.4f %9.3f%% / %.4f\n", c.M, 100*c.Utilization, 100*p.Miss.Value, p.WCET.Value,
			100*s.Miss.Value, s.WCET.Value)
	}
}

// bound shows how near J is to P, and what the exact answer for bursts without bound is.
func (l *lab) bound() {
	l.print("J, the exact lower bound, beside the strict P\n%-34s %11s %11s %7s\n", "case", "J", "P", "P/J")
	for _, c := range []published.Cell{exponential(20, 0.5, 1), exponential(10, 0.5, 1),
		{Kind: published.Pareto, M: 20, Utilization: 0.7, Burst: 2},
		exponential(20, 0.7, 1), exponential(20, 0.7, 2), exponential(20, 0.9, 1)} {
		r := l.of(c)
		l.print("%-34v %10.5f%% %10.5f%% %7.3f\n", c, 100*r.Coincidence, 100*r.Miss.Value, r.Miss.Value/r.Coincidence)
	}
}

// control shows what the control variate is worth.
func (l *lab) control() {
	l.print("the control variate: variance of P without / with it\n")
	for _, c := range []published.Cell{exponential(10, 0.5, 1), exponential(20, 0.7, 1), exponential(20, 0.9, 1),
		exponential(5, 0.9, 1)} {
		with, without := l.of(c), l.simulate(frame.Must(c.Node()), loadline.Options{Plain: true})
		ratio := (without.Miss.High - without.Miss.Low) / (with.Miss.High - with.Miss.Low)
		l.print("%-34v %6.0f\n", c, ratio*ratio)
	}
}

// correlation shows what independence is worth.
func (l *lab) correlation() {
	rhos := []float64{0, 0.05, 0.1, 0.3}
	l.print("correlation between containers (Gaussian copula): P(WCET > 1), strict, exponential demand, burst "+
		"100 %%\n%-14s", "")
	for _, rho := range rhos {
		l.print(" rho=%-5v", rho)
	}
	l.print("\n")
	for _, c := range []published.Cell{exponential(10, 0.5, 1), exponential(20, 0.5, 1), exponential(20, 0.7, 1)} {
		l.print("m=%d u=%.0f%%%-5s", c.M, 100*c.Utilization, "")
		for _, rho := range rhos {
			r := l.simulate(frame.Must(c.Node()), loadline.Options{Rho: rho, Periods: min(l.periods, 2_000_000)})
			l.print(" %8.4f%%", 100*r.Miss.Value)
		}
		l.print("\n")
	}
}

// memory shows what a recording's order is worth: the same samples in their order and shuffled.
func (l *lab) memory() {
	l.print("autocorrelation: a recording of exponential demand with correlation 0.9 from period to period, m=10 " +
		"u=50 %%, burst 100 %%\n")
	n := recorded(10, 100_000, 0.05, 0.9)
	for _, replay := range []loadline.Replay{loadline.Offsets, loadline.Blocks, loadline.IID} {
		res := l.simulate(n, loadline.Options{Replay: replay, Periods: min(l.periods, 4_000_000), Resamples: -1})
		c := res.Containers[0]
		l.print("%-8v P %8.4f%%  throttled without burst %5.1f%%, with %5.1f%%\n", replay, 100*res.Miss.Value,
			100*c.ThrottledWithout, 100*c.ThrottledWith)
	}
}

// length shows how the interval hangs on the length of the recording.
func (l *lab) length() {
	l.print("the length of the recording: exponential demand, m=20 u=70 %%, burst 100 %%: P and its interval\n")
	for _, periods := range []int{1000, 3000, 10_000, 36_000} {
		res := l.simulate(recorded(20, periods, 0.7/20, 0),
			loadline.Options{Periods: loadline.DefaultPeriods, Resamples: 400})
		l.print("%6d periods: %.3f%% (%.3f%% to %.3f%%)\n", periods, 100*res.Miss.Value, 100*res.Miss.Low,
			100*res.Miss.High)
	}
}

// recorded is a node of m containers with the same recording of exponential demand: a normal autoregression seen
// through the law's quantiles, independent from period to period where phi is 0.
func recorded(m, periods int, mean, phi float64) loadline.Node {
	chance := rand.New(rand.NewPCG(uint64(periods), 1))
	samples := make([]float64, periods)
	z := chance.NormFloat64()
	for i := range samples {
		z = phi*z + math.Sqrt(1-phi*phi)*chance.NormFloat64()
		samples[i] = -mean * math.Log(math.Erfc(z/math.Sqrt2)/2)
	}
	return alike(m, 1, frame.Must(loadline.NewRecording(samples)))
}
