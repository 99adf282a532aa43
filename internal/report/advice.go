package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// AdviceSchema names the format of `plimsoll advise --json`. Fields are added, never renamed, within a version.
const AdviceSchema = "plimsoll.advice/v1"

// Advice says what a node's containers may burst, and what limits they need. Bursts are in quotas, limits in CPUs.
type Advice struct {
	Schema    string  `json:"schema"`
	Target    float64 `json:"target"`         // P(WCET = 1 period) to keep, as asked
	Tolerated float64 `json:"throttled_most"` // share of periods that may be throttled, as asked
	MostBurst float64 `json:"kernel_burst"`   // the most burst that the kernel grants, as asked
	CPUs      float64 `json:"cpus"`           // of the node
	Count     int     `json:"containers"`     // containers on the node
	Committed float64 `json:"committed"`      // sum of the limits / CPUs
	// false: the mean demand exceeds the limits or the CPUs, and only `kinds` is of use
	Stable  bool       `json:"stable"`
	Largest Quotas     `json:"burst_largest"` // the largest burst that keeps the target; `null`: any
	Granted float64    `json:"burst_granted"` // what of it the kernel grants
	Miss    float64    `json:"p_miss"`        // P(WCET > 1 period) with the burst that is granted
	MissCI  [2]float64 `json:"p_miss_ci95"`   // the interval of 95 %
	// how many like it keep the target; absent where they are of several kinds
	MostPods *int `json:"most_containers,omitempty"`
	// share of resampled recordings that keep the target; absent where they are of several kinds
	Sure *float64 `json:"sure,omitempty"`
	// correlation of the demands from which on the target is not kept; 1: it always is, 0: there is no room; `null`:
	// not known, as without the order and the common clock of the recordings it is not kept
	TurningRho Correlation   `json:"turning_rho"`
	Kinds      []AdvisedKind `json:"kinds"`      // a recording each
	Period     time.Duration `json:"period_ns"`  // of the recording
	Periods    int           `json:"periods"`    // of the shortest recording
	Conditions []string      `json:"conditions"` // under which the figures hold
}

// AdvisedKind is one recorded container, and how many like it there are.
type AdvisedKind struct {
	Name      string  `json:"name"`       // of the recorded container
	Count     int     `json:"count"`      // how many like it there are
	Limit     float64 `json:"limit_cpus"` // of today
	Mean      float64 `json:"mean_cpus"`  // mean demand
	Saturated bool    `json:"saturated"`  // it wants more than its limit on average
	// share of its periods that are throttled without a burst, 0 to 1
	ThrottledWithout float64 `json:"throttled_without"`
	ThrottledWith    float64 `json:"throttled_with"`             // the same with the burst that is granted
	DelayWithout     float64 `json:"mean_delay_periods_without"` // mean delay in periods without a burst
	DelayWith        float64 `json:"mean_delay_periods"`         // mean delay in periods with the burst that is granted
	// the burst for no more throttled periods than `throttled_most`
	Needed     float64 `json:"burst_needed"`
	Enough     bool    `json:"burst_is_enough"`          // the kernel grants that burst
	LimitAlone float64 `json:"limit_without_burst_cpus"` // the limit that would do without a burst
	// the limit that would do with the burst that is granted
	LimitBurst float64 `json:"limit_with_burst_cpus"`
	// CPUs that all of the kind give back, against the limit of today; below 0: they need more
	Saving float64 `json:"saving_cpus"`
}

// Quotas is a burst in quotas; without bound it is null in JSON.
type Quotas float64

// MarshalJSON writes a burst without bound as null.
func (q Quotas) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(q), 1) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(q))
}

// Correlation is null in JSON where it is not known (NaN).
type Correlation float64

// MarshalJSON writes NaN as null.
func (c Correlation) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(c)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(c))
}

// Text says it in words.
func (a Advice) Text(w io.Writer) error {
	var p page
	p.printf("%s on %s CPUs; the limits add up to %s of them.\nFrom %d recorded periods of %s.\n", a.subject(),
		trim(a.CPUs), percent(a.Committed), a.Periods, a.Period)
	if a.Stable {
		a.node(&p)
	} else {
		p.printf("\nOn average more is wanted than the limits or the CPUs have: the backlog grows for ever, and no " +
			"burst helps.\n")
	}
	for _, k := range a.Kinds {
		p.printf("\n%s\n", k.Name)
		for _, line := range k.lines(a) {
			p.printf("  %s\n", line)
		}
	}
	p.printf("\nThis holds under these conditions:\n")
	for _, c := range a.Conditions {
		p.printf("- %s\n", c)
	}
	return p.writeTo(w)
}

func (a Advice) subject() string {
	if len(a.Kinds) == 1 {
		return fmt.Sprintf("%d containers like %s, with %s CPUs each,", a.Count, Printable(a.Kinds[0].Name),
			cpus(a.Kinds[0].Limit))
	}
	return fmt.Sprintf("%d containers of %d recordings", a.Count, len(a.Kinds))
}

// node says what the containers may burst together.
func (a Advice) node(p *page) {
	kept, wanted := certainty(a.Miss), percentOf(a.Target)
	switch largest := float64(a.Largest); {
	case largest == 0 && a.Miss > 1-a.Target:
		p.printf("\nNo burst: P(WCET = 1 period) is %s without any, below the target of %s.\n", kept, wanted)
	case largest == 0:
		p.printf("\nNo burst keeps P(WCET = 1 period) at %s; without any it is %s.\n", wanted, kept)
	case math.IsInf(largest, 1):
		p.printf("\nAny burst keeps P(WCET = 1 period) at %s or more; the kernel grants %s of the quota.\n", wanted,
			quotas(a.Granted))
	case largest > a.Granted:
		p.printf("\nA burst of up to %s of the quota keeps P(WCET = 1 period) at %s or more; the kernel grants %s.\n",
			quotas(largest), wanted, quotas(a.Granted))
	default:
		p.printf("\nA burst of up to %s of the quota keeps P(WCET = 1 period) at %s or more.\n", quotas(largest),
			wanted)
	}
	if a.Granted > 0 {
		p.printf("With %s of the quota it is %s (95 %%: %s to %s).\n", quotas(a.Granted), kept, certainty(a.MissCI[1]),
			certainty(a.MissCI[0]))
	}
	if a.Sure != nil {
		p.printf("How sure: the target is kept in %.0f of 100 resamplings of the recording.\n", 100**a.Sure)
	}
	switch {
	case math.IsNaN(float64(a.TurningRho)):
		p.printf("At which correlation between the containers' demands the verdict turns is not known: it depends on " +
			"the order of the recorded periods, or on which were recorded together.\n")
	case a.TurningRho >= 1:
		p.printf("It is kept whatever the correlation between the containers' demands.\n")
	case a.TurningRho > 0:
		p.printf("The verdict turns at a correlation of %.2f between the containers' demands.\n", a.TurningRho)
	case a.Miss <= 1-a.Target:
		p.printf("It leaves no room for any correlation between the containers' demands.\n")
	}
	if a.MostPods != nil {
		k, how := a.Kinds[0], "with that burst"
		if a.Granted == 0 {
			how = "without a burst"
		}
		p.printf("Up to %d containers like it keep the target %s; their limits add up to %s of the CPUs.\n",
			*a.MostPods, how, percent(float64(*a.MostPods)*k.Limit/a.CPUs))
	}
}

// lines are the advice for one kind.
func (k AdvisedKind) lines(a Advice) []string {
	now := fmt.Sprintf("Now: %d with a limit of %s CPUs, mean demand %s CPUs (%s).", k.Count, cpus(k.Limit),
		cpus(k.Mean), percent(k.Mean/k.Limit))
	if k.Saturated {
		return []string{now, "It wants more than its limit on average: no burst helps.", k.raise(a)}
	}
	lines := []string{now, fmt.Sprintf("Without a burst %s of its periods are throttled, mean delay %s periods.",
		chance(k.ThrottledWithout), delay(k.DelayWithout))}
	if a.Granted > 0 {
		lines = append(lines, fmt.Sprintf("With a burst of %s: %s, mean delay %s periods.", quotas(a.Granted),
			chance(k.ThrottledWith), delay(k.DelayWith)))
	}
	most := percentOf(a.Tolerated)
	switch {
	case k.ThrottledWithout <= a.Tolerated:
		return append(lines, fmt.Sprintf("The limit alone is enough for at most %s throttled periods. %s", most,
			k.lower(a)))
	case k.Enough:
		return append(lines, fmt.Sprintf("Burst is enough for at most %s throttled periods: it takes %s of the "+
			"quota. %s", most, quotas(k.Needed), k.lower(a)))
	}
	return append(lines, fmt.Sprintf("Burst is not enough for at most %s throttled periods: that would take %s of "+
		"the quota.", most, quotas(k.Needed)), k.raise(a))
}

// raise says what limit it needs.
func (k AdvisedKind) raise(a Advice) string {
	text := fmt.Sprintf("At most %s throttled: a limit of %s CPUs", percentOf(a.Tolerated), cpus(k.LimitBurst))
	if a.Granted > 0 {
		text += fmt.Sprintf(" with a burst of %s, or of %s CPUs without", quotas(a.Granted), cpus(k.LimitAlone))
	}
	if k.Saving < 0 {
		return text + fmt.Sprintf(". The limit must rise: %s CPUs more for %d.", cpus(-k.Saving), k.Count)
	}
	return text + fmt.Sprintf(" (%s CPUs less for %d).", cpus(k.Saving), k.Count)
}

// lower says what limit would do.
func (k AdvisedKind) lower(a Advice) string {
	if k.Saving <= 0 {
		return ""
	}
	text := fmt.Sprintf("A limit of %s CPUs would do", cpus(k.LimitBurst))
	if a.Granted > 0 {
		text = fmt.Sprintf("With a burst of %s a limit of %s CPUs would do (without: %s)", quotas(a.Granted),
			cpus(k.LimitBurst), cpus(k.LimitAlone))
	}
	return text + fmt.Sprintf(": a saving of %s CPUs for %d.", cpus(k.Saving), k.Count)
}

// quotas spells a burst.
func quotas(b float64) string {
	if b >= 10 {
		return fmt.Sprintf("%.0f %%", 100*b)
	}
	return fmt.Sprintf("%.3g %%", 100*b)
}

// percentOf spells a target: 99.9 %, 99.99 %.
func percentOf(p float64) string {
	return trim(100*p) + " %"
}

func trim(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", x), "0"), ".")
}
