package report

import (
	"fmt"
	"io"
	"math"
	"time"
)

// RecordingSchema names the format of `plimsoll record --json`. Fields are added, never renamed, within a version.
const RecordingSchema = "plimsoll.recording/v1"

// Recording says what a recording is like.
type Recording struct {
	Schema     string        `json:"schema"`
	File       string        `json:"file"`          // the file that was written
	Periods    int           `json:"periods"`       // how many periods it has
	Period     time.Duration `json:"period_ns"`     // how long one is
	CPUs       float64       `json:"cpus"`          // of the machine
	Aligned    bool          `json:"phase_aligned"` // its periods begin with those of the container's limit
	Late       int           `json:"late"`          // readings that came late
	Containers []Recorded    `json:"containers"`    // in the order of the file
	Cost       RecordingCost `json:"cost"`          // what recording took itself
	Many       int           `json:"cgroups"`       // so many of each: `share_of_machine_of_many`
	Warnings   []string      `json:"warnings"`      // what makes the recording worse, in words
}

// Recorded is one container of a recording. Means, deviations and percentiles are in CPUs.
type Recorded struct {
	Name      string   `json:"name"`                 // as in the status
	Limit     *float64 `json:"limit_cpus,omitempty"` // in CPUs; absent: none
	Mean      float64  `json:"mean_cpus"`            // CPUs used, over one period each: the mean
	Deviation float64  `json:"stddev_cpus"`          // the standard deviation
	// of the share of the machine, as the published sampler prints
	Variance float64 `json:"variance_of_share"`
	P95      float64 `json:"p95_cpus"`                 // the 95th percentile
	P99      float64 `json:"p99_cpus"`                 // the 99th percentile
	Max      float64 `json:"max_cpus"`                 // the most
	Share    float64 `json:"share_of_machine"`         // the mean share of the machine, 0 to 1
	Many     float64 `json:"share_of_machine_of_many"` // the share of so many of them as `cgroups` says
	// share of the periods in which it stood throttled for some time, 0 to 1
	Throttled float64 `json:"throttled_ratio"`
	// what it would have used without its limit; absent where the limit hid nothing
	Demand *float64 `json:"estimated_mean_demand_cpus,omitempty"`
}

// RecordingCost is what recording took itself.
type RecordingCost struct {
	CPU     time.Duration `json:"cpu_ns"`     // CPU time used
	Elapsed time.Duration `json:"elapsed_ns"` // wall time
}

// Text writes it for people.
func (r Recording) Text(w io.Writer) error {
	var p page
	phase := "its periods begin at a time of their own, not with those of the limits"
	if r.Aligned {
		phase = "its periods begin with those of the limits"
	}
	p.printf("%s: %d periods of %s on %g CPUs; %s\n\n", r.File, r.Periods, r.Period, r.CPUs, phase)
	rows := [][]string{{"NAME", "LIMIT", "MEAN", "STDDEV", "P95", "P99", "MAX", "SHARE",
		fmt.Sprintf("%d OF THEM", r.Many), "THROTTLED"}}
	for _, c := range r.Containers {
		limit := "none"
		if c.Limit != nil {
			limit = cpus(*c.Limit)
		}
		rows = append(rows, []string{c.Name, limit, cpus(c.Mean), cpus(c.Deviation), cpus(c.P95), cpus(c.P99),
			cpus(c.Max), percent(c.Share), percent(c.Many), percent(c.Throttled)})
	}
	p.table(rows)
	p.printf("\nMEAN to MAX: CPUs, over one period each. SHARE: mean, of the machine; so much of it are %d of them. "+
		"THROTTLED: periods in which the group was throttled for some time.\n", r.Many)
	p.printf("Recording took %s of CPU time, %.2f %% of one CPU.\n", span(r.Cost.CPU),
		100*ratio(r.Cost.CPU, r.Cost.Elapsed))
	for _, line := range r.Warnings {
		p.printf("warning: %s\n", line)
	}
	return p.writeTo(w)
}

// cpus spells a number of CPUs with three digits.
func cpus(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.0f", n)
	}
	digits := 2
	if n > 0 {
		digits = max(0, 2-int(math.Floor(math.Log10(n))))
	}
	return fmt.Sprintf("%.*f", min(digits, 5), n)
}
