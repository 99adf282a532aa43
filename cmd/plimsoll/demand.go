package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// laws are demands that are made up.
type laws struct {
	kind                 string // exp, pareto or poisson
	alpha, truncate, job float64
}

func (l *laws) containers() int                  { return 0 }
func (l *laws) conditions() []string             { return nil }
func (l *laws) load(c scenario) (float64, error) { return c.utilization, nil }

func (l *laws) name() string {
	switch l.kind {
	case "pareto":
		return fmt.Sprintf("Pareto demand (alpha %g)", l.alpha)
	case "poisson":
		return fmt.Sprintf("Poisson demand in jobs of %.4g %% of the quota", 100*l.job)
	}
	return "exponential demand"
}

func (l *laws) title(c scenario) string {
	return fmt.Sprintf("%d containers of equal quotas, %s of %.4g %% of the quota on average, burst %s of the quota", c.cgroups, l.name(), 100*c.utilization, report.Burst(c.burst))
}

// law is the demand at a quota of 1/m of the node.
func (l *laws) law(mean, quota float64) (loadline.Law, error) {
	switch l.kind {
	case "pareto":
		return loadline.Pareto(mean, l.alpha, l.truncate*quota)
	case "poisson":
		return loadline.Poisson(mean, l.job*quota)
	}
	return loadline.Exponential(mean)
}

func (l *laws) node(c scenario) (loadline.Node, []string, error) {
	if err := checkLoad(c.utilization); err != nil {
		return loadline.Node{}, nil, err
	}
	quota := 1 / float64(max(c.cgroups, 1))
	demand, err := l.law(c.utilization*quota, quota)
	if err != nil {
		return loadline.Node{}, nil, err
	}
	n, err := loadline.Homogeneous(c.cgroups, 1, c.burst, demand)
	return n, make([]string, c.cgroups), err
}

// checkLoad meets a percentage without its sign.
func checkLoad(u float64) error {
	if u > 1.5 && u <= 100 {
		return withHint(fmt.Errorf("a utilization of %g: %g times the quota", u, u), fmt.Sprintf("%g %% is written %g or %g%%", u, u/100, u))
	}
	return nil
}

// tapes are demands that were recorded.
type tapes struct {
	list   []tape
	cpus   float64 // of the node; 0: shares of it are all that is known
	limit  float64 // CPUs; 0: the node's / the number of containers
	own    bool    // each has the limit that it was recorded with, if limit is 0
	notes  []string
	files  int
	period time.Duration
}

// tape is one recorded container.
type tape struct {
	name   string
	file   int
	limit  float64             // when it was recorded, as a share of the node; +Inf: none
	demand *loadline.Recording // in shares of the node
}

// loadTapes reads the files, and scales their demand to the node of the question.
func loadTapes(files []string, cpus, limit float64) (*tapes, error) {
	d := &tapes{cpus: cpus, limit: limit}
	record, files := parquet(files)
	if len(record) > 0 {
		t, err := recordTrace(record, cpus)
		if err == nil {
			err = d.add("the record", t)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		t, err := trace.Load(file)
		if err == nil {
			err = d.add(file, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// add adds a recording.
func (d *tapes) add(file string, t trace.Trace) error {
	switch {
	case d.cpus < 0 || d.limit < 0 || math.IsNaN(d.cpus+d.limit) || math.IsInf(d.cpus+d.limit, 0):
		return misusef("--cpus and --limit are numbers of CPUs above 0")
	case t.CPUs == 0 && d.cpus == 0 && d.limit > 0:
		return withHint(fmt.Errorf("%s does not say how many CPUs its machine had", file), "give --cpus, for --limit is in CPUs")
	case d.cpus == 0:
		d.cpus = t.CPUs
	}
	scale := 1.0
	if t.CPUs > 0 {
		scale = t.CPUs / d.cpus
	}
	for _, w := range t.Warnings() {
		d.notes = append(d.notes, file+": "+w)
	}
	if d.files++; d.files > 1 && t.Period != d.period {
		return withHint(fmt.Errorf("%s has periods of %s, the files before it of %s", file, t.Period, d.period), "record them with limits of one period")
	}
	d.period = t.Period
	for _, s := range t.Series {
		u, err := demandOf(s)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", file, s.Name, err)
		}
		r, err := u.Likely.Scale(scale)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", file, s.Name, err)
		}
		if u.Throttled > 0 {
			d.notes = append(d.notes, fmt.Sprintf("%s: %s", file, censored(s, u, t.CPUs)))
		}
		d.list = append(d.list, tape{s.Name, d.files, s.Limit / d.cpus, r})
	}
	return nil
}

func (d *tapes) warn(w io.Writer) {
	for _, n := range d.notes {
		fmt.Fprintln(w, "plimsoll: warning:", report.Printable(n))
	}
}

func (d *tapes) containers() int {
	if len(d.list) > 1 {
		return len(d.list)
	}
	return 0
}

// least is the length of the shortest recording.
func (d *tapes) least() int {
	n := d.list[0].demand.Len()
	for _, t := range d.list {
		n = min(n, t.demand.Len())
	}
	return n
}

func (d *tapes) conditions() []string {
	list := []string{"the intervals include that the recording is short; they hold while demand is as it was recorded"}
	if len(d.list) > d.files {
		list = append(list, "containers that were recorded in one file are replayed together, and keep what their demands have to do with each other")
	}
	return list
}

func (d *tapes) name() string {
	if len(d.list) > 1 {
		return fmt.Sprintf("demand of %s and %d more in turn", d.list[0].name, len(d.list)-1)
	}
	return "demand of " + d.list[0].name
}

func (d *tapes) title(c scenario) string {
	return fmt.Sprintf("%d containers with quotas of %.4g %% of the node, %s, burst %s of the quota", c.cgroups, 100*d.quota(c, 0), d.name(), report.Burst(c.burst))
}

// quota is the share of the node that the i-th recording's containers have.
func (d *tapes) quota(c scenario, i int) float64 {
	if d.limit > 0 {
		return d.limit / d.cpus
	}
	if own := d.list[i].limit; d.own && !math.IsInf(own, 1) {
		return own
	}
	return 1 / float64(max(c.cgroups, 1))
}

// load is the mean demand of the node / the sum of its quotas.
func (d *tapes) load(c scenario) (float64, error) {
	n, _, err := d.node(c)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, k := range n.Containers {
		sum += k.Demand.Mean()
	}
	return sum / n.Committed(), nil
}

// node assigns the recordings in turn. Those of one file that has several stay together: each turn has a clock.
func (d *tapes) node(c scenario) (loadline.Node, []string, error) {
	n := loadline.Node{Capacity: 1}
	var names []string
	if err := checkLoad(c.utilization); err != nil {
		return n, nil, err
	}
	scaled := make([]*loadline.Recording, len(d.list))
	together := map[int]int{}
	for i, t := range d.list {
		together[t.file]++
		scaled[i] = t.demand
		if c.utilization > 0 {
			var err error
			if scaled[i], err = t.demand.Scale(c.utilization * d.quota(c, i) / t.demand.Mean()); err != nil {
				return n, nil, err
			}
		}
	}
	for i := range c.cgroups {
		turn := i % len(d.list)
		t, quota := d.list[turn], d.quota(c, turn)
		k := loadline.Container{Quota: quota, Burst: c.burst * quota, Demand: scaled[turn]}
		if together[t.file] > 1 {
			k.Clock = t.file + i/len(d.list)*d.files
		}
		n.Containers, names = append(n.Containers, k), append(names, t.name)
	}
	return n, names, n.Check()
}

// demandOf is the demand of a recorded container: what it used, or what it would have used without its limit.
func demandOf(s trace.Series) (loadline.Uncensored, error) {
	if s.Limited() && s.Throttled != nil {
		return loadline.Uncensor(s.Used, s.Throttled)
	}
	r, err := loadline.NewRecording(s.Used)
	return loadline.Uncensored{Likely: r}, err
}

// censored says what a limit hid.
func censored(s trace.Series, u loadline.Uncensored, cpus float64) string {
	text := fmt.Sprintf("%q reached its limit of %.3g CPUs and was throttled in %.1f %% of the periods. Its demand without the limit is estimated: %.3g CPUs on average, between %.3g and %.3g",
		s.Name, s.Limit, 100*u.Throttled, u.Likely.Mean()*cpus, u.Low*cpus, u.High*cpus)
	if u.Saturated > 0.1 {
		text += fmt.Sprintf("; in the last %.0f %% of the recording it never caught up: record without the limit", 100*u.Saturated)
	}
	return text
}
