package main

import (
	"math"
	"time"

	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

// historyFigure draws a container minute by minute: CPU time and time lost, and its response times where they are
// measured. Of several containers it is the one that lost most.
func historyFigure(h report.History) *figure.Canvas {
	most := 0
	for i := range h.Containers {
		if h.Containers[i].Figures.Throttled > h.Containers[most].Figures.Throttled {
			most = i
		}
	}
	c := h.Containers[most]
	use := func(f report.HistoryFigures) float64 { return f.Mean }
	peak := func(f report.HistoryFigures) float64 { return f.Peak }
	lost := func(f report.HistoryFigures) float64 { return f.Throttled.Minutes() }
	from := h.From.Truncate(time.Minute)
	x := figure.Axis{Label: "minutes from " + from.Format("15:04 MST"), Max: math.Ceil(h.To.Sub(from).Minutes())}
	cpus := figure.Panel{Title: "wall time throttled: " + c.Figures.Throttled.Round(time.Millisecond).String(), X: x,
		Y: figure.Axis{Label: "CPUs; share of the time", Max: 1.05 * max(c.Figures.Peak, c.Figures.Quota, 1)}}
	if c.Figures.Limit != nil {
		cpus.Rules, cpus.Y.Max = limitRule(*c.Figures.Limit), max(cpus.Y.Max, 1.05**c.Figures.Limit)
	}
	for _, curve := range []struct {
		name string
		of   func(report.HistoryFigures) float64
	}{{"the most in one period", peak}, {"CPU time used", use}, {"throttled, share of the time", lost}} {
		cpus.Curves = append(cpus.Curves,
			known(figure.Curve{Bare: x.Max > 60, Name: curve.name, Y: minutely(h, c, curve.of)}, 1)...)
	}
	panels := []figure.Panel{cpus}
	if c.Figures.Requests != nil && c.Figures.Requests.Response != nil {
		panels = append(panels, responses(h, c, x))
	}
	return figure.Lines{Title: c.Name, Subtitle: from.Format("2006-01-02"), Panels: panels,
		Note: "Where a curve is missing, nothing was recorded."}.Draw()
}

// responses is the panel of the response times.
func responses(h report.History, c report.HistoryContainer, x figure.Axis) figure.Panel {
	quantile := func(of func(*report.HistoryRequests) time.Duration) []float64 {
		return minutely(h, c, func(f report.HistoryFigures) float64 {
			if f.Requests == nil || f.Requests.Response == nil {
				return math.NaN()
			}
			if d := of(f.Requests); d > 0 {
				return d.Seconds() * 1000
			}
			return math.NaN()
		})
	}
	p := figure.Panel{Title: "response times", X: x,
		Y: figure.Axis{Label: "ms", Max: 1.05 * c.Figures.Requests.Response.P99.Seconds() * 1000}}
	for _, curve := range []struct {
		name string
		of   func(*report.HistoryRequests) time.Duration
	}{
		{"p99", func(r *report.HistoryRequests) time.Duration { return r.Response.P99 }},
		{"p99 without the time throttled", func(r *report.HistoryRequests) time.Duration { return r.Unthrottled }},
		{"p50", func(r *report.HistoryRequests) time.Duration { return r.Response.P50 }},
	} {
		p.Curves = append(p.Curves, known(figure.Curve{Bare: x.Max > 60, Name: curve.name, Y: quantile(curve.of)},
			1)...)
	}
	return p
}

// minutely is a figure of each minute of a history: 0 where the container slept, and NaN where nothing was recorded.
func minutely(h report.History, c report.HistoryContainer, of func(report.HistoryFigures) float64) []float64 {
	from := h.From.Truncate(time.Minute)
	list := make([]float64, int(math.Ceil(h.To.Sub(from).Minutes())))
	set := func(at time.Time, v float64) {
		if i := int(at.Sub(from) / time.Minute); i >= 0 && i < len(list) {
			list[i] = v
		}
	}
	for i := range list {
		if list[i] = math.NaN(); from.Add(time.Duration(i) * time.Minute).Before(h.Until) {
			list[i] = of(report.HistoryFigures{})
		}
	}
	for _, g := range h.Gaps {
		for at := g.From.Truncate(time.Minute); at.Before(g.To); at = at.Add(time.Minute) {
			set(at, math.NaN())
		}
	}
	for _, m := range c.Minutes {
		set(m.Start, of(m.HistoryFigures))
	}
	return list
}
