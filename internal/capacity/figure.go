package capacity

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

// leastRisk is where the axes of risks end: less is less than once in a day of periods of 100 ms.
const leastRisk = 1e-6

// Draw draws a sweep: containers by utilization as a map, else the first range that is not the number of
// containers along the axis, the next as curves, the third as panels.
func Draw(s report.Sweep, ranges []Range) *figure.Canvas {
	names := make([]string, len(ranges))
	for i, r := range ranges {
		names[i] = r.Name
	}
	if len(ranges) == 2 && !slices.Contains(names, "burst") {
		return riskMap(s)
	}
	order := []string{"burst", "utilization", "cgroups"}
	slices.SortFunc(names, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	for len(names) < 3 {
		names = append(names, "")
	}
	return riskCurves(s, names[0], names[1], names[2])
}

// variable is one figure of a point, and how it is spelled.
func variable(p report.Point, name string) (float64, string) {
	switch name {
	case "burst":
		return p.Burst, "burst " + report.Burst(p.Burst)
	case "utilization":
		return p.Utilization, fmt.Sprintf("mean use %.4g %%", 100*p.Utilization)
	case "cgroups":
		return float64(p.Cgroups), fmt.Sprintf("%d containers", p.Cgroups)
	}
	return 0, ""
}

func riskCurves(s report.Sweep, x, curve, panel string) *figure.Canvas {
	l := figure.Lines{Title: "How often bursts coincide", Subtitle: s.Title, Note: "Bands: intervals of 95 %."}
	axis := figure.Axis{Label: map[string]string{"burst": "burst, % of the quota",
		"utilization": "mean demand, % of the quota", "cgroups": "containers"}[x],
		Min: math.Inf(1), Max: math.Inf(-1), Percent: x != "cgroups"}
	least := 1.0
	for _, p := range s.Points {
		if v, _ := variable(p, x); !math.IsInf(v, 1) {
			axis.Min, axis.Max = min(axis.Min, v), max(axis.Max, v)
		}
		least = min(least, max(p.Result.Miss, leastRisk))
	}
	for _, p := range s.Points {
		v, _ := variable(p, x)
		if math.IsInf(v, 1) {
			continue // an axis has no place for it: the table has
		}
		_, title := variable(p, panel)
		_, name := variable(p, curve)
		at := slices.IndexFunc(l.Panels, func(q figure.Panel) bool { return q.Title == title })
		if at < 0 {
			at = len(l.Panels)
			l.Panels = append(l.Panels, figure.Panel{Title: title, X: axis,
				Y: figure.Axis{Label: "P(WCET > 1 period), %", Min: math.Pow(10, math.Floor(math.Log10(least))), Max: 1,
					Log: true, Percent: true}})
		}
		panel := &l.Panels[at]
		k := slices.IndexFunc(panel.Curves, func(c figure.Curve) bool { return c.Name == name })
		if k < 0 {
			k = len(panel.Curves)
			panel.Curves = append(panel.Curves, figure.Curve{Name: name})
		}
		c := &panel.Curves[k]
		c.X, c.Y = append(c.X, v), append(c.Y, p.Result.Miss)
		c.Lo, c.Hi = append(c.Lo, p.Result.MissCI[0]), append(c.Hi, p.Result.MissCI[1])
	}
	return l.Draw()
}

// riskMap draws containers by utilization.
func riskMap(s report.Sweep) *figure.Canvas {
	h := figure.Heat{Title: "How often bursts coincide", Subtitle: "P(WCET > 1 period) in %. " + s.Title,
		XLabel: "containers", YLabel: "mean demand, % of the quota",
		Lo: leastRisk, Hi: 1, Limit: 1e-3, Key: "P(WCET = 1 period) = 99.9 %"}
	for _, p := range s.Points {
		column, row := fmt.Sprint(p.Cgroups), fmt.Sprintf("%.4g", 100*p.Utilization)
		i, j := slices.Index(h.X, column), slices.Index(h.Y, row)
		if i < 0 {
			i, h.X = len(h.X), append(h.X, column)
		}
		if j < 0 {
			j, h.Y = len(h.Y), append(h.Y, row)
			h.Values, h.Cells = append(h.Values, nil), append(h.Cells, nil)
		}
		for len(h.Values[j]) <= i {
			h.Values[j], h.Cells[j] = append(h.Values[j], 0), append(h.Cells[j], "")
		}
		h.Values[j][i], h.Cells[j][i] = p.Result.Miss, fmt.Sprintf("%.2g", 100*p.Result.Miss)
	}
	return h.Draw()
}
