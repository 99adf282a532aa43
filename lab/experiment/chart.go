package experiment

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"

	"plimsoll/internal/strategy"
)

// The chart's measures, in pixels.
const (
	chartWidth, chartHeight  = 860, 530
	plotLeft, plotRight      = 70.0, 830.0
	plotTop, plotBottom      = 190.0, 470.0
	legendTop, legendSpacing = 82.0, 16.0
)

// look of a curve. The colour-blind can distinguish the colours (Okabe and Ito), and the curves also by their
// dashes.
type stroke struct{ color, dash string }

func strokeOf(mode string) stroke {
	switch Mode(mode) {
	case Unlimited:
		return stroke{"#7f7f7f", "2 4"}
	case UnlimitedAgain:
		return stroke{"#bfbfbf", "2 4"}
	case RequestsOnly:
		return stroke{"#009e73", "12 3 2 3"}
	case Mode(strategy.None):
		return stroke{"#d55e00", ""}
	case Mode(strategy.CPUBurstOnly):
		return stroke{"#b58900", "9 3"}
	case Mode(strategy.CFSQuotaBurstOnly):
		return stroke{"#56b4e9", "6 2 2 2"}
	case Mode(strategy.Auto):
		return stroke{"#0072b2", ""}
	}
	return stroke{"#000000", ""}
}

// Chart draws the latency over the percentile, which is stretched towards the slowest requests: 90, 99 and 99.9 are
// equally far apart.
func (r *Result) Chart() []byte {
	var b bytes.Buffer
	c := r.Conditions
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13" fill="#222">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(&b, `<text x="24" y="34" font-size="20" font-weight="600">Response time of a service with a limit of %g CPUs</text>`+"\n", c.Limit)
	fmt.Fprintf(&b, `<text x="24" y="56" fill="#555">%.0f ms of CPU time a request, %.1f requests a second: %.0f %% of the limit on average. Linux %s, cgroup %s, %d CPUs.</text>`+"\n",
		c.Work, c.Rate, 100*c.Utilization, html.EscapeString(c.Kernel), html.EscapeString(c.Cgroup), c.CPUs)
	top, far := r.extent()
	xs := func(percent float64) float64 { return plotLeft + (plotRight-plotLeft)*stretch(percent)/far }
	ys := func(ms float64) float64 { return plotBottom - (plotBottom-plotTop)*ms/top }
	grid(&b, xs, ys, top, far)
	for i, m := range r.Modes {
		curve(&b, m, xs, ys)
		legend(&b, m, legendTop+float64(i)*legendSpacing)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// stretch is the number of nines.
func stretch(percent float64) float64 { return -math.Log10(1 - percent/100) }

// extent is the highest latency and the farthest percentile that the axes have to hold.
func (r *Result) extent() (top, far float64) {
	top, far = 1, stretch(90)
	for _, m := range r.Modes {
		for _, p := range m.Percentiles {
			top, far = max(top, p.Latency), max(far, stretch(p.Percent))
		}
	}
	return top * 1.05, far
}

func grid(b *bytes.Buffer, xs, ys func(float64) float64, top, far float64) {
	for ms, step := 0.0, tick(top); ms <= top; ms += step {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#e4e4e4"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#555">%g</text>`+"\n",
			plotLeft, plotRight, ys(ms), ys(ms), plotLeft-8, ys(ms)+4, ms)
	}
	for _, percent := range []float64{0, 50, 75, 90, 95, 98, 99, 99.5, 99.9} {
		if stretch(percent) > far {
			continue
		}
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#f0f0f0"/><text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">%g</text>`+"\n",
			xs(percent), xs(percent), plotTop, plotBottom, xs(percent), plotBottom+18, percent)
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#555">percentile of requests</text>`+"\n", (plotLeft+plotRight)/2, plotBottom+42)
	fmt.Fprintf(b, `<text x="20" y="%.1f" text-anchor="middle" fill="#555" transform="rotate(-90 20 %.1f)">milliseconds</text>`+"\n", (plotTop+plotBottom)/2, (plotTop+plotBottom)/2)
}

// tick is a round step that gives four to ten lines.
func tick(top float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for _, part := range []float64{0.1, 0.2, 0.5} {
		if top/(step*part) <= 8 {
			return step * part
		}
	}
	return step
}

func curve(b *bytes.Buffer, m ModeResult, xs, ys func(float64) float64) {
	var points []string
	for _, p := range m.Percentiles {
		points = append(points, fmt.Sprintf("%.1f,%.1f", xs(p.Percent), ys(p.Latency)))
	}
	s := strokeOf(m.Name)
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2.5" stroke-linejoin="round" stroke-dasharray="%s"/>`+"\n",
		strings.Join(points, " "), s.color, s.dash)
}

func legend(b *bytes.Buffer, m ModeResult, y float64) {
	s := strokeOf(m.Name)
	fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="2.5" stroke-dasharray="%s"/>`+"\n",
		plotLeft, plotLeft+40, y-4, y-4, s.color, s.dash)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text><text x="%.1f" y="%.1f" fill="#555">p99 %s, %.1f %% of periods throttled</text>`+"\n",
		plotLeft+52, y, html.EscapeString(m.Name), plotLeft+200, y, spell(m.P99), 100*m.ThrottledRatio)
}
