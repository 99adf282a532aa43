// Package trace keeps recordings of CPU demand: how much of the machine each of several containers used in each
// period, on one clock.
//
// Problem. The contention model (package loadline) wants demand per period of the limit, 100 ms as a rule, where
// monitoring has seconds or minutes. A recording must be what other tools read too, say what it is of, and be refused
// rather than misread when it is broken.
//
// Approach. A file holds shares of the machine: 1 is all its CPUs for a whole period, so ten containers of 6.5 % make
// 65 %. FILE.npy is a numpy array of float64, of the shape (periods,) for one container and (periods, containers) for
// several; what an array cannot say stands beside it in FILE.npy.json. FILE.csv has the same in one file: the metadata
// as a comment, a header, a row for each period. Both are complete without metadata: then the period is 100 ms and
// nothing is known about limits.
//
// The readings of a recording come a little late, each by another time. What was used by the end of each period is
// therefore interpolated between the two readings around it, so that late readings neither drift nor lose anything.
//
// Known limits. The kernel books CPU time when a task is switched or at a tick (4 ms at HZ=250), and throttled time
// when the throttle ends, which may be in the next period. The periods of a recording are not those of the group's own
// limit: both are as long, and begin at another time, unless Aligned says otherwise.
package trace

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// MaxSamples is how many values a recording may have, 2^31: nearly seven years of one container.
const MaxSamples = 1 << 31

// Trace is a recording.
type Trace struct {
	Period  time.Duration
	CPUs    float64   // of the machine that it was taken on; 0 where the file does not say
	Started time.Time // zero where the file does not say
	Aligned bool      // its periods begin with those of the groups' own limits
	Late    int       // periods whose end was read more than a tenth of a period late: see Recorder
	Series  []Series
}

// Series is one container of a recording. Values are shares of the machine in one period: 1 is all its CPUs.
type Series struct {
	Name  string
	Limit float64 // CPUs, the lowest that was seen; +Inf where there was none, or nothing is known
	// LimitChanged says that another limit was seen, too: the demand before and after are not alike.
	LimitChanged bool
	Used         []float64 // CPU time used
	Throttled    []float64 // time throttled, summed over CPUs as the kernel counts it; nil where it never was
}

// Limited says whether a limit was in force.
func (s Series) Limited() bool { return !math.IsInf(s.Limit, 1) }

// Len is the number of periods.
func (t Trace) Len() int {
	if len(t.Series) == 0 {
		return 0
	}
	return len(t.Series[0].Used)
}

// BadError says why a recording cannot be used.
type BadError struct{ Problem, Advice string }

func (e *BadError) Error() string { return e.Problem }

// Hint tells what to do.
func (e *BadError) Hint() string { return e.Advice }

func bad(advice, format string, args ...any) error {
	return &BadError{fmt.Sprintf(format, args...), advice}
}

// Check refuses what would make a wrong figure.
func (t Trace) Check() error {
	switch n := t.Len(); {
	case n == 0:
		return bad("record some: plimsoll record CONTAINER --samples 36000", "it is empty")
	case n == 1:
		return bad("the model needs their distribution: an hour is 36,000 periods", "it has one sample")
	case n > MaxSamples/len(t.Series):
		return tooMany(int64(n), int64(len(t.Series)))
	}
	if t.Period < time.Millisecond || t.Period > time.Second {
		return bad("the kernel takes 1 ms to 1 s", "its period is %s", t.Period)
	}
	if t.CPUs < 0 || math.IsNaN(t.CPUs) || math.IsInf(t.CPUs, 0) {
		return bad("", "its machine has %g CPUs", t.CPUs)
	}
	known := map[string]bool{}
	for _, s := range t.Series {
		switch {
		case s.Name == "" || strings.HasSuffix(s.Name, throttledSuffix):
			return bad("name the container otherwise", "a container is called %q", s.Name)
		case known[s.Name]:
			return bad("name them apart", "two containers are called %q", s.Name)
		}
		known[s.Name] = true
		if err := s.check(t.Len()); err != nil {
			return err
		}
	}
	return nil
}

func (s Series) check(n int) error {
	if len(s.Used) != n || s.Throttled != nil && len(s.Throttled) != n {
		return bad("", "%q has %d periods, others have %d", s.Name, len(s.Used), n)
	}
	if math.IsNaN(s.Limit) || s.Limit <= 0 {
		return bad("", "%q has a limit of %g CPUs", s.Name, s.Limit)
	}
	for _, column := range [][]float64{s.Used, s.Throttled} {
		for i, v := range column {
			if !(v >= 0) || math.IsInf(v, 1) {
				return bad("demand is a share of the machine, 0 or more: was a counter reset, or a gap left in?",
					"period %d of %q is %g", i, s.Name, v)
			}
		}
	}
	return nil
}

func tooMany(rows, columns int64) error {
	return bad("use a part of it", "it has %d x %d samples, at most 2^31 are taken", rows, columns)
}

// Few is how many periods are too few for a verdict: at 1,000 the risk is known to a factor of two at best.
const Few = 3000

// Warnings say what to bear in mind about a recording that can be used.
func (t Trace) Warnings() []string {
	var list []string
	if n := t.Len(); n < Few {
		list = append(list, fmt.Sprintf("%d periods are few: rare peaks are not in them", n))
	}
	if t.Late > 0 {
		list = append(list, fmt.Sprintf("the end of %d of %d periods was read late: what was used around it is "+
			"spread over the periods", t.Late, t.Len()))
	}
	for _, s := range t.Series {
		f := s.Figures()
		if s.LimitChanged {
			list = append(list,
				fmt.Sprintf("the limit of %q changed while it was recorded, and was as low as %.3g CPUs: record it "+
					"again under one limit or none; `plimsoll pause` keeps an agent from raising it", s.Name, s.Limit))
		} else if !s.Limited() && f.Throttled > 0 {
			list = append(list, fmt.Sprintf("%q stood throttled in %.1f %% of the periods by a limit that is not in "+
				"the recording: a group above it may have one", s.Name, 100*f.Throttled))
		}
		switch {
		case f.Mean == 0:
			list = append(list, fmt.Sprintf("%q did not run at all: every period is 0", s.Name))
		case f.Max > 1.1:
			list = append(list, fmt.Sprintf("%q used up to %.0f %% of the machine: are these shares of the machine, "+
				"1 for all its CPUs?", s.Name, 100*f.Max))
		}
	}
	return list
}

// grid turns readings of a counter, each taken soon after the end of a period, into its growth in each period. Between
// two readings the counter is taken to grow evenly: a late reading is shared out over the periods that it spans.
type grid struct {
	period time.Duration
	next   int           // the period whose end comes next
	at     time.Duration // of the last reading, since the beginning of period 0
	count  time.Duration // the counter then
	edge   float64       // the counter at the beginning of period next
}

func newGrid(period, at, count time.Duration) grid {
	return grid{period: period, at: at, count: count, edge: float64(count)}
}

// add takes a reading and returns the growth, in nanoseconds, in each of the periods that end by then. A counter that
// runs backwards counts as unchanged: a reading was torn, and the next one corrects it.
func (g *grid) add(at, count time.Duration) []float64 {
	count = max(count, g.count)
	var grown []float64
	for end := time.Duration(g.next+1) * g.period; end <= at; end += g.period {
		value := float64(count)
		if at-end > g.period/100 && at > g.at {
			part := max(0, float64(end-g.at)/float64(at-g.at))
			value = float64(g.count) + float64(count-g.count)*part
		}
		grown = append(grown, value-g.edge)
		g.edge = value
		g.next++
	}
	g.at, g.count = at, count
	return grown
}
