package experiment

import (
	"fmt"
	"math"
	"strings"

	"plimsoll/internal/strategy"
)

// What counts as a difference. The p99 of a run of half a minute moves by a tenth by itself.
const (
	clearly    = 0.15
	sameCPU    = 0.05
	rare       = 0.02 // of the periods throttled: hardly any
	busy       = 0.15 // of the machine used by others than the service
	worthTrust = 1000 // requests for which a p99 is worth quoting
)

// conclude says in words what the figures show, also where they do not show what was hoped for.
func (r *Result) conclude() []string {
	say := r.disturbances()
	none, unlimited := r.Mode(Mode(strategy.None)), r.Mode(Unlimited)
	if answered(none) && answered(unlimited) {
		say = append(say, r.costOfLimit(none, unlimited))
	}
	for i := range r.Modes {
		m := &r.Modes[i]
		if answered(none) && answered(m) && m != none && !Mode(m.Name).Unlimited() {
			say = append(say, r.effect(m, none))
		}
	}
	if auto := r.Mode(Mode(strategy.Auto)); answered(auto) && answered(unlimited) {
		say = append(say, fmt.Sprintf("Against no limit at all: p99 of auto is %.2f times that of unlimited (%s "+
			"against %s).", auto.P99/unlimited.P99, spell(auto.P99), spell(unlimited.P99)))
	}
	if only := r.Mode(RequestsOnly); answered(only) {
		say = append(say, r.requestsOnly(only))
	}
	return append(append(say, r.work()...), r.caveats()...)
}

// work says what the agent wrote for its effect.
func (r *Result) work() []string {
	var parts []string
	for _, m := range r.Modes {
		if m.Writes > 0 && m.Seconds > 0 {
			parts = append(parts, fmt.Sprintf("%s %.2f", m.Name, float64(m.Writes)/m.Seconds))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{"Writes of the agent a second: " + strings.Join(parts, ", ") + "."}
}

func answered(m *ModeResult) bool { return m != nil && m.P99 > 0 }

// costOfLimit says what throttling does to the service before anything is done about it.
func (r *Result) costOfLimit(none, unlimited *ModeResult) string {
	use := 100 * none.CPUs / r.Conditions.Limit
	if none.ThrottledRatio < rare {
		return fmt.Sprintf("The limit hardly throttles this load (%.1f %% of the periods at a mean use of %.0f %%): "+
			"there is nothing to gain here.", 100*none.ThrottledRatio, use)
	}
	text := fmt.Sprintf("The limit: mean use is only %.0f %% of it, yet %.1f %% of the periods are throttled, and "+
		"p99 is %.1f times that without a limit", use, 100*none.ThrottledRatio, none.P99/unlimited.P99)
	if none.P99 < unlimited.P99*(1+clearly) {
		return text + ". Throttling does not show in the latency of this run."
	}
	return text + fmt.Sprintf(" (%s against %s).", spell(none.P99), spell(unlimited.P99))
}

// requestsOnly says what it is to have no limits but for weights.
func (r *Result) requestsOnly(only *ModeResult) string {
	text := fmt.Sprintf("Nobody limited, weights by request alone (requestsOnly): p99 %s", spell(only.P99))
	for _, m := range []Mode{Mode(strategy.Auto), Mode(strategy.None)} {
		if other := r.Mode(m); answered(other) {
			text += fmt.Sprintf(", %.2f times that of %s", only.P99/other.P99, m)
		}
	}
	if r.Conditions.Loaded {
		return text +
			fmt.Sprintf(". Without limits the neighbours compete for each CPU: they are ordinary work in this mode, "+
				"which requests the other %g CPUs.",
				float64(r.Conditions.CPUs)-r.Conditions.Limit)
	}
	return text + ". Nobody else wants the CPUs here, and a weight decides only between two: try it with --loaded."
}

// effect compares a policy with none.
func (r *Result) effect(m, none *ModeResult) string {
	text := fmt.Sprintf("%s: p99 %s", m.Name, change(m.P99, none.P99))
	switch d := m.P99/none.P99 - 1; {
	case d <= -clearly:
		text += fmt.Sprintf(" (%s to %s)", spell(none.P99), spell(m.P99))
	case d >= clearly:
		text += ": it made the latency WORSE in this run"
	default:
		text += ": no clear difference in this run"
	}
	text += fmt.Sprintf(", throttled %.1f %% to %.1f %%, ", 100*none.ThrottledRatio, 100*m.ThrottledRatio)
	if math.Abs(m.CPUs/none.CPUs-1) <= sameCPU {
		return text + "average CPU the same."
	}
	return text + fmt.Sprintf("average CPU %s.", change(m.CPUs, none.CPUs))
}

func change(to, from float64) string { return fmt.Sprintf("%+.0f %%", 100*(to/from-1)) }

// disturbances say what the machine did besides, before anything is read into the figures.
func (r *Result) disturbances() []string {
	var say []string
	var others, use float64
	for _, m := range r.Modes {
		others = max(others, m.NodeUse-m.CPUs-m.Offline)
		counted := m.NodeUse
		if r.Conditions.Behind {
			counted -= m.Offline
		}
		if Mode(m.Name).Policy().Quota() {
			use = max(use, counted)
		}
	}
	if r.Conditions.Loaded {
		say = append(say, r.company())
	}
	if others > busy*float64(r.Conditions.CPUs) {
		say = append(say, fmt.Sprintf("Careful: others used up to %.2f of the %d CPUs and took time from the "+
			"service. What follows may be their doing: try again on a quiet machine.", others, r.Conditions.CPUs))
	}
	if threshold := r.threshold(); use > threshold {
		say = append(say, fmt.Sprintf("Careful: the machine used up to %.2f CPUs, above the guard's threshold of "+
			"%.2f: it was too busy for raised quotas, and they are taken back there.", use, threshold))
	}
	return say
}

// company says what the machine was kept busy with.
func (r *Result) company() string {
	least := math.Inf(1)
	for _, m := range r.Modes {
		least = min(least, m.NodeUse)
	}
	text := fmt.Sprintf("Offline work (class BE) kept the machine busy: %.2f or more of %d CPUs were used", least,
		r.Conditions.CPUs)
	if r.Conditions.Behind {
		text += ". The kernel keeps it behind the service (cpu.idle)"
		if r.Mode(RequestsOnly) != nil {
			text += ", but in requestsOnly"
		}
		return text + "; beside ordinary work as much, the guard would grant nothing."
	}
	return text + ". This kernel cannot keep it behind the service (cpu.idle, 5.15), so the guard grants nothing."
}

// caveats say what stands against taking the figures at their word.
func (r *Result) caveats() []string {
	var say []string
	fewest := math.MaxInt
	for _, m := range r.Modes {
		fewest = min(fewest, m.Requests)
		if m.Errors > 0 {
			say = append(say, fmt.Sprintf("Careful: %d of %d requests failed in mode %s and are in no percentile; "+
				"the first: %s.", m.Errors, m.Requests, m.Name, m.Cause))
		}
		if m.Late > r.Conditions.Work {
			say = append(say, fmt.Sprintf("Careful: in mode %s the load generator itself was late by up to %s; that "+
				"is part of the latencies.", m.Name, spell(m.Late)))
		}
		if m.GaveBack > giveBack.Seconds() {
			say = append(say, fmt.Sprintf("In mode %s a raised quota outlived the demand by %.1f s: more than the "+
				"bound of %v.", m.Name, m.GaveBack, giveBack))
		}
	}
	if !r.Conditions.CanBurst {
		say = append(say, "This kernel has no CPU burst (5.14 or later has): cpuBurstOnly can do nothing here.")
	}
	if len(r.Modes) > 0 && fewest < worthTrust {
		say = append(say, fmt.Sprintf("A p99 of %d requests depends on the slowest %d of them. For figures to quote: "+
			"make bench-demo.", fewest, int(math.Ceil(float64(fewest)/100))))
	}
	return say
}

// threshold is the use of the machine above which the guard takes raises back, as the agent of the experiment has it.
func (r *Result) threshold() float64 {
	return float64(strategy.Default().SharePoolThresholdPercent) / 100 * float64(r.Conditions.CPUs)
}
