package main

import (
	"fmt"
	"path/filepath"
	"time"

	"plimsoll/internal/figure"
	"plimsoll/internal/loadline"
	"plimsoll/internal/trace"
	"plimsoll/lab/frame"
)

// throttled is what a burst brings one container, by the exact law.
func throttled() *figure.Canvas {
	f := figure.Lines{Title: "What a burst brings its container", Subtitle: "Share of a container's periods that are " +
		"throttled. Exact, for periods that are independent of each other.", Note: "loadline.Queue. Mainline kernels " +
		"grant a burst of up to 100 % of the quota."}
	for _, l := range []law{exponential(), pareto()} {
		p := figure.Panel{Title: l.name + " demand", X: figure.Axis{Label: "burst, % of the quota", Min: 0, Max: 4,
			Percent: true},
			Y: figure.Axis{Label: "throttled periods, %", Min: 1e-4, Max: 1, Log: true,
				Percent: true}, Rules: []figure.Rule{{Name: "1 %", Y: 0.01}}}
		for _, u := range []float64{0.3, 0.5, 0.7, 0.9} {
			q := frame.Must(loadline.NewQueue(frame.Must(l.of(u)), 1))
			c := figure.Curve{Name: fmt.Sprintf("mean demand %.0f %%", 100*u)}
			for i := 0; i <= 16; i++ {
				b := float64(i) / 4
				c.X, c.Y = append(c.X, b), append(c.Y, q.Throttled(b))
			}
			p.Curves = append(p.Curves, c)
		}
		f.Panels = append(f.Panels, p)
	}
	return f.Draw()
}

// shown is how much of the recording is drawn.
const shown = 30 * time.Second

// secondAndPeriod is what monitoring sees of a service, and what the limit sees.
func secondAndPeriod(dir string) *figure.Canvas {
	t := frame.Must(trace.Load(filepath.Join(dir, "service.npy")))
	s := t.Series[0]
	s.Used = s.Used[:min(len(s.Used), int(shown/t.Period))]
	second := int(time.Second / t.Period)
	fine, coarse := figure.Curve{Name: fmt.Sprintf("mean over %s, the period of limits", t.Period), Step: true,
		Bare: true}, figure.Curve{Name: "mean over 1 s", Step: true}
	most := 0.0
	for i, v := range s.Used {
		fine.X, fine.Y = append(fine.X, float64(i)*t.Period.Seconds()), append(fine.Y, v*t.CPUs)
		most = max(most, v*t.CPUs)
	}
	for i, v := range s.Coarse(second) {
		coarse.X, coarse.Y = append(coarse.X, float64(i)), append(coarse.Y, v*t.CPUs)
	}
	last := float64(len(s.Used)) * t.Period.Seconds() // the last step has a width too
	fine.X, fine.Y = append(fine.X, last), append(fine.Y, fine.Y[len(fine.Y)-1])
	coarse.X, coarse.Y = append(coarse.X, last), append(coarse.Y, coarse.Y[len(coarse.Y)-1])
	mean := s.Figures().Mean * t.CPUs
	return figure.Lines{Title: "What a second hides",
		Subtitle: "CPU use of the demo's HTTP service without a limit, recorded by plimsoll record.",
		Panels: []figure.Panel{{
			X:      figure.Axis{Label: "seconds", Min: 0, Max: last},
			Y:      figure.Axis{Label: "CPU use, % of one CPU", Min: 0, Max: most * 1.05, Percent: true},
			Curves: []figure.Curve{fine, coarse},
			Rules:  []figure.Rule{{Name: fmt.Sprintf("mean %.0f %%", 100*mean), Y: mean}}}},
		Note: "docs/figures/service.npy"}.Draw()
}
