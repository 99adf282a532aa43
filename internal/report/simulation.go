package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Simulation is what the model says of one node.
type Simulation struct {
	Miss float64 `json:"p_miss"` // P(WCET > 1 period), 0 to 1
	WCET float64 `json:"e_wcet"` // E(WCET), in periods
	// the interval of 95 %, which includes the shortness of a recording
	MissCI     [2]float64           `json:"p_miss_ci95"`
	WCETCI     [2]float64           `json:"e_wcet_ci95"` // the interval of 95 %
	Method     string               `json:"method"`      // how it was computed
	Rule       string               `json:"rule"`        // `strict` or `published`
	Periods    int64                `json:"periods"`     // periods simulated
	Containers []SimulatedContainer `json:"containers"`  // a container each

	// What only the text says.
	Title      string   `json:"-"`
	Price      float64  `json:"-"` // mean delay by the neighbours, in periods, over all demand
	Conditions []string `json:"-"`
}

// SimulatedContainer is one container of a simulation. A delay is mean backlog / mean demand, in periods.
type SimulatedContainer struct {
	// share of the periods that are throttled without a burst, 0 to 1
	ThrottledWithout float64 `json:"throttled_without"`
	ThrottledWith    float64 `json:"throttled_with"`     // the same with the burst
	Delay            float64 `json:"mean_delay_periods"` // mean backlog / mean demand with the burst, in periods

	Name         string  `json:"-"`
	Use          float64 `json:"-"` // mean demand / quota
	DelayWithout float64 `json:"-"`
	Interference float64 `json:"-"` // mean delay by the neighbours; NaN: not requested
}

// Text writes it for people.
func (s Simulation) Text(w io.Writer) error {
	var p page
	p.printf("%s\n\n", s.Title)
	p.table([][]string{
		{"", "", "95 % INTERVAL"},
		{"P(WCET > 1 period)", chance(s.Miss), chance(s.MissCI[0]) + " to " + chance(s.MissCI[1])},
		{"P(WCET = 1 period)", certainty(s.Miss), certainty(s.MissCI[1]) + " to " + certainty(s.MissCI[0])},
		{"E(WCET)", periods(s.WCET), periods(s.WCETCI[0]) + " to " + periods(s.WCETCI[1])},
	})
	p.printf("\n")
	s.containers(&p)
	p.printf("\nWCET > 1 period: a period ends with work undone that quota and burst admit, because bursts "+
		"coincided (rule: %s).\n", s.Rule)
	p.printf("Delays are means in periods: the first two by the container's own limit, the last by its " +
		"neighbours' bursts.\n")
	p.printf("%s; %d periods.\n", s.Method, s.Periods)
	for _, c := range s.Conditions {
		p.printf("- %s\n", c)
	}
	return p.writeTo(w)
}

// containers writes a row for each kind of container.
func (s Simulation) containers(p *page) {
	rows := [][]string{{"CONTAINERS", "MEAN OF QUOTA", "THROTTLED WITHOUT", "WITH BURST", "DELAY WITHOUT", "WITH BURST",
		"BY NEIGHBOURS"}}
	var kinds []SimulatedContainer
	count := map[int]int{}
	for _, c := range s.Containers {
		if math.IsNaN(c.Interference) {
			c.Interference = s.Price
		}
		k := slices.IndexFunc(kinds, func(o SimulatedContainer) bool { o.Interference = c.Interference; return o == c })
		if k < 0 {
			k, kinds = len(kinds), append(kinds, c)
		}
		count[k]++
	}
	for k, c := range kinds {
		name := fmt.Sprintf("%d", count[k])
		if c.Name != "" {
			name += " x " + Printable(c.Name)
		}
		rows = append(rows, []string{name, percent(c.Use), chance(c.ThrottledWithout), chance(c.ThrottledWith),
			delay(c.DelayWithout), delay(c.Delay), delay(c.Interference)})
	}
	p.table(rows)
}

// Point is one simulation of a sweep.
type Point struct {
	Burst       float64    `json:"burst"`       // in quotas; `null`: without bound
	Cgroups     int        `json:"cgroups"`     // containers on the node
	Utilization float64    `json:"utilization"` // mean demand / quota
	Result      Simulation `json:"result"`      // the simulation
}

// MarshalJSON writes an infinite burst as null.
func (p Point) MarshalJSON() ([]byte, error) {
	type plain Point
	var burst *float64
	if !math.IsInf(p.Burst, 1) {
		burst = &p.Burst
	}
	return json.Marshal(struct {
		Burst *float64 `json:"burst"`
		plain
	}{burst, plain(p)})
}

// SweepSchema names the format of a sweep.
const SweepSchema = "plimsoll.sweep/v1"

// Sweep is a table of simulations.
type Sweep struct {
	Schema     string   `json:"schema"`
	Points     []Point  `json:"points"` // in the order of the table
	Title      string   `json:"-"`
	Conditions []string `json:"-"`
}

// Text writes the table, and draws the risk beside it.
func (s Sweep) Text(w io.Writer) error {
	var p page
	p.printf("%s\n\n", s.Title)
	rows := [][]string{{"CGROUPS", "MEAN", "BURST", "P(WCET > 1)", "95 % INTERVAL", "E(WCET)", "THROTTLED", "WITH IT",
		"RISK"}}
	for _, q := range s.Points {
		r := q.Result
		without, with := 0.0, 0.0
		for _, c := range r.Containers {
			without += c.ThrottledWithout / float64(len(r.Containers))
			with += c.ThrottledWith / float64(len(r.Containers))
		}
		rows = append(rows, []string{fmt.Sprint(q.Cgroups), percent(q.Utilization), Burst(q.Burst), chance(r.Miss),
			chance(r.MissCI[0]) + " to " + chance(r.MissCI[1]),
			fmt.Sprintf("%.4f", r.WCET), chance(without), chance(with), bar(r.Miss)})
	}
	p.table(rows)
	p.printf("\nMEAN: of the quota. THROTTLED: periods without a burst, and with it. RISK: P(WCET > 1), from 0.0001 " +
		"%% to 100 %%.\n\n")
	for _, c := range s.Conditions {
		p.printf("- %s\n", c)
	}
	return p.writeTo(w)
}

// Burst spells a burst in quotas.
func Burst(b float64) string {
	if math.IsInf(b, 1) {
		return "inf"
	}
	return fmt.Sprintf("%.4g %%", 100*b)
}

// bar draws a probability, logarithmically: a block is a third of a decade.
func bar(p float64) string {
	const blocks, least = 6, 1e-6
	eighths := []rune(" ▏▎▍▌▋▊▉")
	if p <= least {
		return ""
	}
	n := int(math.Round(8 * blocks * (1 - math.Log(p)/math.Log(least))))
	cells := slices.Repeat([]rune{'█'}, n/8)
	if n%8 > 0 {
		cells = append(cells, eighths[n%8])
	}
	return string(cells)
}

// chance spells a probability with three digits, and without a power of ten.
func chance(p float64) string {
	if p == 0 || math.IsNaN(p) {
		return fmt.Sprintf("%g %%", 100*p)
	}
	if p < 1e-8 {
		return "< 0.000001 %"
	}
	digits := 2 - int(math.Floor(math.Log10(100*p)))
	return fmt.Sprintf("%.*f %%", max(digits, 1), 100*p)
}

// certainty spells 1 - p with as many digits as p has.
func certainty(p float64) string {
	if p <= 0 {
		return "100 %"
	}
	if p < 1e-8 {
		return "> 99.999999 %"
	}
	digits := 2 - int(math.Floor(math.Log10(100*p)))
	return fmt.Sprintf("%.*f %%", max(digits, 1), 100*(1-p))
}

func periods(n float64) string { return fmt.Sprintf("%.5g periods", n) }

// delay spells a delay with three digits.
func delay(n float64) string {
	switch {
	case n == 0 || math.IsNaN(n):
		return "0"
	case n < 1e-6:
		return "< 0.000001"
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(n)))), n)
}
