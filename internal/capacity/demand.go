package capacity

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"plimsoll/internal/hint"
	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// Law is demand that is made up.
type Law struct {
	Kind     string  // exp, pareto or poisson
	Alpha    float64 // exponent of the tail (pareto)
	Truncate float64 // the largest demand (pareto), and
	Job      float64 // the size of a job (poisson), in quotas
}

// Containers is 0: a law says nothing of how many there are.
func (l *Law) Containers() int { return 0 }

func (l *Law) conditions(loadline.Options) []string { return nil }
func (l *Law) load(c Case) (float64, error)         { return c.Utilization, nil }

func (l *Law) name() string {
	switch l.Kind {
	case "pareto":
		return fmt.Sprintf("Pareto demand (alpha %g)", l.Alpha)
	case "poisson":
		return fmt.Sprintf("Poisson demand in jobs of %.4g %% of the quota", 100*l.Job)
	}
	return "exponential demand"
}

func (l *Law) title(c Case) string {
	return fmt.Sprintf("%d containers of equal quotas, %s of %.4g %% of the quota on average, burst %s of the quota",
		c.Containers, l.name(), 100*c.Utilization, report.Burst(c.Burst))
}

// law is the demand at a quota of 1/m of the node.
func (l *Law) law(mean, quota float64) (loadline.Law, error) {
	switch l.Kind {
	case "pareto":
		return loadline.Pareto(mean, l.Alpha, l.Truncate*quota)
	case "poisson":
		return loadline.Poisson(mean, l.Job*quota)
	}
	return loadline.Exponential(mean)
}

func (l *Law) node(c Case) (loadline.Node, []string, error) {
	if err := checkLoad(c.Utilization); err != nil {
		return loadline.Node{}, nil, err
	}
	quota := 1 / float64(max(c.Containers, 1))
	demand, err := l.law(c.Utilization*quota, quota)
	if err != nil {
		return loadline.Node{}, nil, err
	}
	n, err := loadline.Homogeneous(c.Containers, 1, c.Burst, demand)
	return n, make([]string, c.Containers), err
}

// checkLoad meets a percentage without its sign.
func checkLoad(u float64) error {
	if u > 1.5 && u <= 100 {
		return hint.With(fmt.Errorf("a utilization of %g: %g times the quota", u, u),
			fmt.Sprintf("%g %% is written %g or %g%%", u, u/100, u))
	}
	return nil
}

// Recordings are demands that were recorded.
type Recordings struct {
	list   []recorded
	cpus   float64 // of the node; 0: shares of it are all that is known
	limit  float64 // CPUs; 0: the node's / the number of containers
	own    bool    // each has the limit that it was recorded with, if limit is 0
	notes  []string
	files  int
	period time.Duration
}

// recorded is one recorded container.
type recorded struct {
	name   string
	file   int
	limit  float64             // when it was recorded, as a share of the node; +Inf: none
	demand *loadline.Recording // in shares of the node
}

// NewRecordings are none yet. Cpus are those of the node of the question, limit that of each container; 0:
// as was recorded.
func NewRecordings(cpus, limit float64) (*Recordings, error) {
	if !(cpus >= 0 && limit >= 0) || math.IsInf(cpus+limit, 0) {
		return nil, hint.Misusef("--cpus and --limit are numbers of CPUs above 0")
	}
	return &Recordings{cpus: cpus, limit: limit}, nil
}

// Load reads the files, and scales their demand to the node of the question.
func Load(files []string, cpus, limit float64) (*Recordings, error) {
	d, err := NewRecordings(cpus, limit)
	if err != nil {
		return nil, err
	}
	record, files := parquet(files)
	if len(record) > 0 {
		t, notes, err := recordTrace(record, cpus)
		for _, note := range notes {
			d.notes = append(d.notes, "the record: "+note)
		}
		if err == nil {
			err = d.Add("the record", t)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		t, err := trace.Load(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = hint.With(err, "`plimsoll record CONTAINER --out FILE` makes one")
		}
		if err == nil {
			err = d.Add(file, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Add adds a recording.
func (d *Recordings) Add(file string, t trace.Trace) error {
	switch {
	case t.CPUs == 0 && d.cpus == 0 && d.limit > 0:
		return hint.With(fmt.Errorf("%s does not say how many CPUs its machine had", file),
			"give --cpus, for --limit is in CPUs")
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
		return hint.With(fmt.Errorf("%s has periods of %s, the files before it of %s", file, t.Period, d.period),
			"record them with limits of one period")
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
		d.list = append(d.list, recorded{s.Name, d.files, s.Limit / d.cpus, r})
	}
	return nil
}

// Notes are what to bear in mind about the recordings.
func (d *Recordings) Notes() []string { return d.notes }

// CPUs are those of the node; 0: not known.
func (d *Recordings) CPUs() float64 { return d.cpus }

// Containers is as many as were recorded, where that is more than one.
func (d *Recordings) Containers() int {
	if len(d.list) > 1 {
		return len(d.list)
	}
	return 0
}

// least is the length of the shortest recording.
func (d *Recordings) least() int {
	n := d.list[0].demand.Len()
	for _, t := range d.list {
		n = min(n, t.demand.Len())
	}
	return n
}

func (d *Recordings) conditions(o loadline.Options) []string {
	list := []string{"the intervals include that the recording is short; they hold while demand is as it was recorded"}
	if len(d.list) > d.files && o.Rho == 0 {
		list = append(list, "containers that were recorded in one file are replayed together, and keep what their "+
			"demands have to do with each other")
	}
	return list
}

func (d *Recordings) name() string {
	if len(d.list) > 1 {
		return fmt.Sprintf("demand of %s and %d more in turn", d.list[0].name, len(d.list)-1)
	}
	return "demand of " + d.list[0].name
}

func (d *Recordings) title(c Case) string {
	return fmt.Sprintf("%d containers with quotas of %.4g %% of the node, %s, burst %s of the quota", c.Containers,
		100*d.quota(c, 0), d.name(), report.Burst(c.Burst))
}

// quota is the share of the node that the i-th recording's containers have.
func (d *Recordings) quota(c Case, i int) float64 {
	if d.limit > 0 {
		return d.limit / d.cpus
	}
	if own := d.list[i].limit; d.own && !math.IsInf(own, 1) {
		return own
	}
	return 1 / float64(max(c.Containers, 1))
}

// load is the mean demand of the node / the sum of its quotas.
func (d *Recordings) load(c Case) (float64, error) {
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
func (d *Recordings) node(c Case) (loadline.Node, []string, error) {
	n := loadline.Node{Capacity: 1}
	var names []string
	if err := checkLoad(c.Utilization); err != nil {
		return n, nil, err
	}
	scaled := make([]*loadline.Recording, len(d.list))
	together := map[int]int{}
	for i, t := range d.list {
		together[t.file]++
		scaled[i] = t.demand
		if c.Utilization > 0 {
			var err error
			if scaled[i], err = t.demand.Scale(c.Utilization * d.quota(c, i) / t.demand.Mean()); err != nil {
				return n, nil, err
			}
		}
	}
	for i := range c.Containers {
		turn := i % len(d.list)
		t, quota := d.list[turn], d.quota(c, turn)
		k := loadline.Container{Quota: quota, Burst: c.Burst * quota, Demand: scaled[turn]}
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
	text := fmt.Sprintf("%q reached its limit of %.3g CPUs and was throttled in %.1f %% of the periods. Its demand "+
		"without the limit is estimated: %.3g CPUs on average, between %.3g and %.3g",
		s.Name, s.Limit, 100*u.Throttled, u.Likely.Mean()*cpus, u.Low*cpus, u.High*cpus)
	if u.Saturated > 0.1 {
		text += fmt.Sprintf("; in the last %.0f %% of the recording it never caught up: record without the limit",
			100*u.Saturated)
	}
	return text
}

// Describe says what a recording is like, and what to bear in mind about it.
func Describe(file string, t trace.Trace, cost report.RecordingCost, many int) report.Recording {
	r := report.Recording{Schema: report.RecordingSchema, File: file, Periods: t.Len(), Period: t.Period, CPUs: t.CPUs,
		Aligned: t.Aligned,
		Late:    t.Late, Cost: cost, Many: many, Warnings: append([]string{}, t.Warnings()...)}
	for _, s := range t.Series {
		f := s.Figures()
		c := report.Recorded{Name: s.Name, Mean: f.Mean * t.CPUs, Deviation: math.Sqrt(f.Variance) * t.CPUs,
			Variance: f.Variance, P95: f.P95 * t.CPUs, P99: f.P99 * t.CPUs, Max: f.Max * t.CPUs, Share: f.Mean,
			Many: f.Mean * float64(many), Throttled: f.Throttled}
		if s.Limited() {
			c.Limit = &s.Limit
		}
		if u, err := demandOf(s); err == nil && u.Throttled > 0 {
			demand := u.Likely.Mean() * t.CPUs
			c.Demand = &demand
			r.Warnings = append(r.Warnings, censored(s, u, t.CPUs))
		}
		r.Containers = append(r.Containers, c)
	}
	return r
}
