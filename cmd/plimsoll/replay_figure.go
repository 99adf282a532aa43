package main

import (
	"math"
	"strconv"

	"plimsoll/internal/figure"
	"plimsoll/internal/replay"
	"plimsoll/internal/report"
)

// replayFigure draws what was beside what would have been. Where more than one container was replayed, it is the one
// that lost most.
func replayFigure(r report.Replay, result replay.Result, o replay.Setup) *figure.Canvas {
	most := 0
	for i, c := range result.Containers {
		if c.Was.Lost.Value > result.Containers[most].Was.Lost.Value {
			most = i
		}
	}
	c, told := result.Containers[most], r.Containers[most]
	top := max(told.Limits[0], told.Limits[1])
	for _, list := range [][]float64{c.WasCurves.Used, c.WasCurves.DemandHigh, c.NewCurves.Used} {
		for _, v := range list {
			if !math.IsNaN(v) {
				top = max(top, v)
			}
		}
	}
	scale, unit := 1/60.0, "minutes"
	if o.To.Sub(o.From).Minutes() < 3 {
		scale, unit = 1, "seconds"
	}
	x := figure.Axis{Label: unit + " from " + o.From.Format("15:04:05 MST"), Max: o.To.Sub(o.From).Seconds() * scale}
	y := figure.Axis{Label: "CPUs; share of the time", Max: 1.05 * top}
	step := o.Step.Seconds() * scale
	was := figure.Panel{Title: "what was: " + told.Was.Lost.String() + " lost", X: x, Y: y,
		Rules: limitRule(told.Limits[0])}
	would := figure.Panel{Title: "what would have been: " + told.Would.Lost.String() + " lost", X: x, Y: y,
		Rules: limitRule(told.Limits[1])}
	w := c.WasCurves
	was.Curves = append(was.Curves, known(figure.Curve{Bare: true, Name: "demand, with its bounds", Lo: w.DemandLow,
		Hi: w.DemandHigh, Y: w.Demand}, step)...)
	was.Curves = append(was.Curves, known(figure.Curve{Bare: true, Name: "CPU time used", Y: w.Used}, step)...)
	was.Curves = append(was.Curves, known(figure.Curve{Bare: true, Name: "throttled, share of the time", Y: w.Lost},
		step)...)
	would.Curves = append(would.Curves, known(figure.Curve{Bare: true, Name: "CPU time used", Y: c.NewCurves.Used},
		step)...)
	would.Curves = append(would.Curves,
		known(figure.Curve{Bare: true, Name: "throttled, share of the time", Y: c.NewCurves.Lost}, step)...)
	return figure.Lines{Title: told.Name, Subtitle: o.From.Format("2006-01-02 15:04 MST") + ", " + r.Asked(),
		Panels: []figure.Panel{was, would}, Note: "Where a curve is missing, nothing was recorded."}.Draw()
}

func limitRule(cpus float64) []figure.Rule {
	if cpus == 0 {
		return nil
	}
	return []figure.Rule{{Name: "limit " + strconv.FormatFloat(math.Round(1000*cpus)/1000, 'f', -1, 64), Y: cpus}}
}

// known are the parts of a curve that have values, one a step.
func known(c figure.Curve, step float64) (list []figure.Curve) {
	part := figure.Curve{Name: c.Name, Bare: c.Bare}
	end := func() {
		if len(part.X) > 0 {
			list = append(list, part)
		}
		part = figure.Curve{Name: c.Name, Bare: c.Bare}
	}
	for i, v := range c.Y {
		if math.IsNaN(v) {
			end()
			continue
		}
		part.X, part.Y = append(part.X, (float64(i)+0.5)*step), append(part.Y, v)
		if len(c.Lo) > 0 {
			part.Lo, part.Hi = append(part.Lo, c.Lo[i]), append(part.Hi, c.Hi[i])
		}
	}
	end()
	return list
}
