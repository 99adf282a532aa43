package experiment

import (
	"bytes"
	"fmt"
	"slices"
	"text/tabwriter"

	"plimsoll/internal/strategy"
)

// BenchRequests is how many requests a mode needs for its p99 to be a figure.
const BenchRequests = 3000

// Figure is one property that the project promises, as measured.
type Figure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	AtLeast  float64 `json:"at_least"`
	AtMost   float64 `json:"at_most"`        // 0: no upper bound
	None     bool    `json:"none,omitempty"` // the value must be 0
	Measured bool    `json:"measured"`
	// Chance is where the value could lie though nothing were different; up to there it keeps the promise too. Where
	// there is no bound, the value is only reported.
	Chance *Interval `json:"chance,omitempty"`
}

// Met says whether the promise is kept.
func (f Figure) Met() bool {
	most := f.AtMost
	if f.Chance != nil && most > 0 {
		most = max(most, f.Chance.High)
	}
	return f.Measured && f.Value >= f.AtLeast && (most == 0 || f.Value <= most) && (!f.None || f.Value == 0)
}

// Promised says whether anything is promised of the value, or it is only reported.
func (f Figure) Promised() bool { return f.AtLeast != 0 || f.AtMost != 0 || f.None }

// Figures compares the result with the project's aims. Throttled ratios and CPU are medians over rounds, latencies are
// those of all rounds' requests together.
func (r *Result) Figures() []Figure {
	none, auto := r.Mode(Mode(strategy.None)), r.Mode(Mode(strategy.Auto))
	burst, unlimited := r.Mode(Mode(strategy.CPUBurstOnly)), r.Mode(Unlimited)
	throttled := func(m *ModeResult) float64 {
		return MedianOf(m.Rounds, func(r Round) float64 { return r.ThrottledRatio })
	}
	cpus := func(m *ModeResult) float64 { return MedianOf(m.Rounds, func(r Round) float64 { return r.CPUs }) }
	p99 := func(m *ModeResult) float64 { return m.P99 }
	requests := Figure{Name: "requests in each mode", AtLeast: BenchRequests, Measured: len(r.Modes) > 0}
	for i, m := range r.Modes {
		if i == 0 || float64(m.Requests) < requests.Value {
			requests.Value = float64(m.Requests)
		}
	}
	figures := []Figure{requests}
	if none != nil {
		work := Figure{Name: "CPU of a request, none / calibrated", AtLeast: 1 - sameWork, AtMost: 1 + sameWork}
		if r.Conditions.Work > 0 {
			work.Value, work.Measured = none.Work/r.Conditions.Work, true
		}
		figures = append(figures, work, Figure{Name: "throttled, none", Value: throttled(none), AtLeast: 0.15,
			Measured: true})
	}
	figures = append(figures, compare("throttled, cpuBurstOnly / none", burst, none, throttled, 0, 1.0/3),
		compare("throttled, auto / none", auto, none, throttled, 0, 1.0/5),
		compare("p99, auto / none", auto, none, p99, 0, 0.5),
		compare("p99, auto / unlimited", auto, unlimited, p99, 0, 2),
		compare("average CPU, auto / none", auto, none, cpus, 0.95, 1.05))
	for i := range r.Modes {
		if m := &r.Modes[i]; Mode(m.Name).Policy().Quota() {
			figures = append(figures, Figure{Name: "seconds until a raise is given back, " + m.Name, Value: m.GaveBack,
				AtMost: giveBack.Seconds(), Measured: true})
		}
	}
	return append(figures, r.subscribed()...)
}

// sameWork is how near to what it was calibrated to the CPU time of a request stays, or the load was another one.
const sameWork = 1.0 / workTolerance

// What throttle events are to bring, against a service that has no limit.
const (
	nearUnlimited = 1.05
	hardlyLost    = 0.005 // of the time lost under none
	hardlyAny     = 0.01  // of the throttles under none still begin
	fewWrites     = 0.2   // of those without the kernel's burst
)

// subscribed is what is promised where throttles are ended as they begin. Both runs without a limit are compared with,
// each with the interval that chance alone (noise.go) gives the other one.
func (r *Result) subscribed() []Figure {
	first, again, none := r.Mode(Unlimited), r.Mode(UnlimitedAgain), r.Mode(Mode(strategy.None))
	if again == nil {
		return nil
	}
	p99 := func(m *ModeResult) float64 { return m.P99 }
	lost := func(m *ModeResult) float64 { return Ratio(m.Lost, m.Seconds) }
	begun := func(m *ModeResult) float64 { return Ratio(float64(m.Ended), m.Seconds) }
	writes := func(m *ModeResult) float64 { return Ratio(float64(m.Writes), m.Seconds) }
	same := compare("p99, unlimited again / unlimited", again, first, p99, 0, 0)
	var mirrored *Interval
	if first != nil {
		seed := r.Conditions.Seed
		there, back := chance(again.latencies, first.latencies, 0.99, seed), chance(first.latencies, again.latencies,
			0.99, seed)
		same.Chance, mirrored = &there, &back
	}
	figures := []Figure{same}
	spiky, auto := r.Mode(Mode(strategy.CFSQuotaBurstOnly)), r.Mode(Mode(strategy.Auto))
	for _, m := range []*ModeResult{spiky, auto} {
		if m == nil {
			continue
		}
		one := compare("p99, "+m.Name+" / unlimited", m, first, p99, 0, nearUnlimited)
		two := compare("p99, "+m.Name+" / unlimited again", m, again, p99, 0, nearUnlimited)
		one.Chance, two.Chance = same.Chance, mirrored
		figures = append(figures, one, two, compare("time lost, "+m.Name+" / none", m, none, lost, 0, hardlyLost),
			compare("throttles that still begin, "+m.Name+" / none", m, none, begun, 0, hardlyAny))
	}
	return append(figures, compare("writes, auto / cfsQuotaBurstOnly", auto, spiky, writes, 0, fewWrites))
}

func compare(name string, a, b *ModeResult, of func(*ModeResult) float64, atLeast, atMost float64) Figure {
	f := Figure{Name: name, AtLeast: atLeast, AtMost: atMost}
	if a != nil && b != nil && of(b) > 0 {
		f.Value, f.Measured = of(a)/of(b), true
	}
	return f
}

// Median is the middle value, or the mean of the two; 0 when there is none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// WriteFigures writes each figure beside its target.
func WriteFigures(page *bytes.Buffer, figures []Figure) {
	tw := tabwriter.NewWriter(page, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "figure\tmeasured\ttarget\t")
	for _, f := range figures {
		value, verdict := fmt.Sprintf("%.3g", f.Value), "missed"
		switch {
		case !f.Measured:
			value, verdict = "-", "not measured"
		case !f.Promised():
			verdict = ""
		case f.Met():
			verdict = "met"
		}
		if f.Value >= 1000 {
			value = fmt.Sprintf("%.0f", f.Value)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", f.Name, value, f.target(), verdict)
	}
	tw.Flush() // into memory: cannot fail
}

func (f Figure) target() string {
	switch {
	case f.Chance != nil && f.AtMost > 0 && f.Chance.High > f.AtMost:
		return fmt.Sprintf("<= %.3g, or %.3g (A/A)", f.AtMost, f.Chance.High)
	case f.Chance != nil && f.AtMost == 0:
		return fmt.Sprintf("95 %%: %.3g to %.3g", f.Chance.Low, f.Chance.High)
	case f.None:
		return "0"
	case !f.Promised():
		return ""
	case f.AtMost == 0:
		return fmt.Sprintf(">= %.4g", f.AtLeast)
	case f.AtLeast == 0:
		return fmt.Sprintf("<= %.3g", f.AtMost)
	}
	return fmt.Sprintf("%.3g to %.3g", f.AtLeast, f.AtMost)
}
