package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/loadline"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
)

// sweepRange is one dimension of a sweep.
type sweepRange struct {
	name   string
	values []float64
}

// mostPoints bounds a sweep.
const mostPoints = 2000

// parseSweep reads burst=0..2:0.25,inf, cgroups=5,10,20 and the like.
func parseSweep(args []string) ([]sweepRange, error) {
	var list []sweepRange
	seen, points := map[string]bool{}, 1
	for _, arg := range args {
		for _, part := range strings.Fields(arg) {
			r, err := parseRange(part)
			if err != nil {
				return nil, withHint(misusef("--sweep %s: %w", part, err), "burst=0..2:0.25, cgroups=5..40:5 or utilization=0.3,0.5,0.7")
			}
			if seen[r.name] {
				return nil, misusef("--sweep: %s is varied twice", r.name)
			}
			seen[r.name] = true
			list = append(list, r)
			if points *= len(r.values); points > mostPoints {
				return nil, withHint(misusef("--sweep: more than %d simulations", mostPoints), "take wider steps")
			}
		}
	}
	return list, nil
}

func parseRange(part string) (sweepRange, error) {
	name, text, _ := strings.Cut(part, "=")
	if name == "buffer" {
		name = "burst"
	}
	r := sweepRange{name: name}
	if name != "burst" && name != "cgroups" && name != "utilization" {
		return r, fmt.Errorf("%q cannot be varied", name)
	}
	parse := parseRatio
	if name == "cgroups" {
		parse = parseCount
	}
	for _, field := range strings.Split(text, ",") {
		values, err := parseValues(field, parse)
		if err != nil {
			return r, err
		}
		r.values = append(r.values, values...)
	}
	for _, v := range r.values {
		if name == "cgroups" && (v != math.Trunc(v) || v < 1 || v > mostCgroups) || name == "utilization" && (math.IsInf(v, 1) || v == 0) {
			return r, fmt.Errorf("%s of %g", name, v)
		}
	}
	return r, nil
}

// parseValues reads 0.5 or 0..2:0.25.
func parseValues(field string, parse func(string) (float64, error)) ([]float64, error) {
	if from, rest, ok := strings.Cut(field, ".."); ok {
		return steps(from, rest, parse)
	}
	v, err := parse(field)
	return []float64{v}, err
}

// parseCount reads a number of containers.
func parseCount(text string) (float64, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of containers", text)
	}
	return float64(n), nil
}

// steps are a, a+step, ... b. They are counted, so that no step is lost to rounding.
func steps(from, rest string, parse func(string) (float64, error)) ([]float64, error) {
	to, step, ok := strings.Cut(rest, ":")
	if !ok {
		return nil, fmt.Errorf("%q has no step", rest)
	}
	var v [3]float64
	for i, text := range []string{from, to, step} {
		var err error
		if v[i], err = parse(text); err != nil {
			return nil, err
		}
		if math.IsInf(v[i], 1) {
			return nil, fmt.Errorf("%q cannot be reached by steps", text)
		}
	}
	if v[2] == 0 || v[1] < v[0] || (v[1]-v[0])/v[2] > mostPoints {
		return nil, fmt.Errorf("%s to %s in steps of %s", from, to, step)
	}
	var list []float64
	for i := range int(math.Floor((v[1]-v[0])/v[2]+1e-9)) + 1 {
		x := strconv.FormatFloat(v[0]+float64(i)*v[2], 'g', 12, 64) // 0.7, not 0.7000000000000001
		x12, err := strconv.ParseFloat(x, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, x12)
	}
	return list, nil
}

// sweepOver simulates each case, the last range varying fastest.
func (f *simulateFlags) sweepOver(d demands, base scenario, ranges []sweepRange, o loadline.Options, bar *progress.Bar) (report.Sweep, error) {
	sweep := report.Sweep{Schema: report.SweepSchema, Conditions: conditions(d, o)}
	err := every(base, ranges, func(c scenario) error {
		s, err := simulate(d, c, o)
		if err != nil {
			return fmt.Errorf("cgroups %d, utilization %g, burst %s: %w", c.cgroups, c.utilization, report.Burst(c.burst), err)
		}
		load, err := d.load(c)
		if err != nil {
			return err
		}
		defer func() { bar.Set(int64(len(sweep.Points))) }()
		sweep.Points = append(sweep.Points, report.Point{Burst: c.burst, Cgroups: c.cgroups, Utilization: load, Result: s})
		return nil
	})
	sweep.Title = fmt.Sprintf("%s: %d simulations of %d periods, rule %s, seed %d", d.name(), len(sweep.Points), o.Periods, o.Rule, o.Seed)
	return sweep, err
}

func every(c scenario, ranges []sweepRange, do func(scenario) error) error {
	if len(ranges) == 0 {
		return do(c)
	}
	for _, v := range ranges[0].values {
		switch ranges[0].name {
		case "burst":
			c.burst = v
		case "cgroups":
			c.cgroups = int(v)
		case "utilization":
			c.utilization = v
		}
		if err := every(c, ranges[1:], do); err != nil {
			return err
		}
	}
	return nil
}
