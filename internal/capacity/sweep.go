package capacity

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plimsoll/internal/hint"
	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
)

// Range is one dimension of a sweep.
type Range struct {
	Name   string // burst, cgroups or utilization
	Values []float64
}

// mostPoints bounds a sweep.
const mostPoints = 2000

// ParseSweep reads burst=0..2:0.25,inf, cgroups=5,10,20 and the like.
func ParseSweep(args []string) ([]Range, error) {
	var list []Range
	seen, points := map[string]bool{}, 1
	for _, arg := range args {
		for _, part := range strings.Fields(arg) {
			r, err := parseRange(part)
			if err != nil {
				return nil, hint.With(hint.Misusef("--sweep %s: %w", part, err),
					"burst=0..2:0.25, cgroups=5..40:5 or utilization=0.3,0.5,0.7")
			}
			if seen[r.Name] {
				return nil, hint.Misusef("--sweep: %s is varied twice", r.Name)
			}
			seen[r.Name] = true
			list = append(list, r)
			if points *= len(r.Values); points > mostPoints {
				return nil, hint.With(hint.Misusef("--sweep: more than %d simulations", mostPoints), "take wider steps")
			}
		}
	}
	return list, nil
}

func parseRange(part string) (Range, error) {
	name, text, _ := strings.Cut(part, "=")
	if name == "buffer" {
		name = "burst"
	}
	r := Range{Name: name}
	if name != "burst" && name != "cgroups" && name != "utilization" {
		return r, fmt.Errorf("%q cannot be varied", name)
	}
	parse := ParseRatio
	if name == "cgroups" {
		parse = parseCount
	}
	for _, field := range strings.Split(text, ",") {
		values, err := parseValues(field, parse)
		if err != nil {
			return r, err
		}
		r.Values = append(r.Values, values...)
	}
	for _, v := range r.Values {
		if name == "cgroups" && (v != math.Trunc(v) || v < 1 || v > MostContainers) || name == "utilization" &&
			(math.IsInf(v, 1) || v == 0) {
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

// Sweep simulates each case, the last range varying fastest. Done is called with the number of cases so far.
func Sweep(d Demand, base Case, ranges []Range, o loadline.Options, done func(int)) (report.Sweep, error) {
	sweep := report.Sweep{Schema: report.SweepSchema, Conditions: conditions(d, o)}
	err := every(base, ranges, func(c Case) error {
		s, err := Simulate(d, c, o)
		if err != nil {
			return fmt.Errorf("cgroups %d, utilization %g, burst %s: %w", c.Containers, c.Utilization,
				report.Burst(c.Burst), err)
		}
		load, err := d.load(c)
		if err != nil {
			return err
		}
		sweep.Points = append(sweep.Points, report.Point{Burst: c.Burst, Cgroups: c.Containers, Utilization: load,
			Result: s})
		done(len(sweep.Points))
		return nil
	})
	sweep.Title = fmt.Sprintf("%s: %d simulations of %d periods, rule %s, seed %d", d.name(), len(sweep.Points),
		o.Periods, o.Rule, o.Seed)
	return sweep, err
}

func every(c Case, ranges []Range, do func(Case) error) error {
	if len(ranges) == 0 {
		return do(c)
	}
	for _, v := range ranges[0].Values {
		switch ranges[0].Name {
		case "burst":
			c.Burst = v
		case "cgroups":
			c.Containers = int(v)
		case "utilization":
			c.Utilization = v
		}
		if err := every(c, ranges[1:], do); err != nil {
			return err
		}
	}
	return nil
}
