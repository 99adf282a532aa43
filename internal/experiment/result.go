package experiment

import (
	"slices"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/sample"
)

// Schema names the format of the JSON. Fields are added, never renamed, within a version.
const Schema = "plimsoll.demo/v1"

// Result is what an experiment found.
type Result struct {
	Schema     string       `json:"schema"`
	Conditions Conditions   `json:"conditions"` // under which it was measured
	Modes      []ModeResult `json:"modes"`      // a mode each
}

// Conditions say under which the result was found.
type Conditions struct {
	Version     string  `json:"version"`             // of Plimsoll
	Kernel      string  `json:"kernel"`              // the release of Linux
	Cgroup      string  `json:"cgroup"`              // `v1` or `v2`
	CPUs        int     `json:"cpus"`                // of the machine
	Limit       float64 `json:"limit_cpus"`          // of the service
	Utilization float64 `json:"utilization"`         // aimed at, of the limit
	Rate        float64 `json:"requests_per_second"` // requests that were sent
	Work        float64 `json:"work_ms"`             // CPU time of a request, calibrated
	Seconds     float64 `json:"seconds_per_mode"`    // how long each mode was measured
	Rounds      int     `json:"rounds"`              // in how many rounds
	Seed        uint64  `json:"seed"`                // of the arrivals and of the order of modes
	CanBurst    bool    `json:"kernel_burst"`        // the kernel has the burst buffer
	Loaded      bool    `json:"loaded"`              // offline work kept every CPU busy
	Behind      bool    `json:"cpu_idle"`            // and the kernel kept it behind all else
	// time lost is the sum of throttle events; else it is from counters
	Exact bool `json:"throttle_events"`
}

// ModeResult is one mode, all rounds pooled.
type ModeResult struct {
	Name string  `json:"name"`    // of the mode: a policy, or `unlimited`
	P50  float64 `json:"p50_ms"`  // the median response time of all rounds together
	P90  float64 `json:"p90_ms"`  // the 90th percentile
	P99  float64 `json:"p99_ms"`  // the 99th percentile
	Mean float64 `json:"mean_ms"` // the mean
	// throttled periods of all periods in which the group was runnable, 0 to 1
	ThrottledRatio float64 `json:"throttled_ratio"`
	CPUs           float64 `json:"cpu_cores"`              // CPUs used, the mean
	Requests       int     `json:"requests"`               // requests that were answered
	Errors         int     `json:"errors"`                 // requests that failed
	Cause          string  `json:"first_error,omitempty"`  // why the first of these failed
	Max            float64 `json:"max_ms"`                 // the longest response time
	Lost           float64 `json:"throttled_wall_seconds"` // wall time throttled
	// throttles that ended, early or not; 0 without throttle events
	Ended   int64   `json:"throttles"`
	Seconds float64 `json:"measured_seconds"`   // how long it was measured
	Writes  int64   `json:"writes"`             // writes of the agent
	Burst   float64 `json:"burst_cpu_seconds"`  // CPU time of saved quota used
	Work    float64 `json:"cpu_ms_per_request"` // CPU time used / requests
	NodeUse float64 `json:"node_use_cpus"`      // CPUs used of the machine
	Offline float64 `json:"offline_use_cpus"`   // the part of it that was offline work
	// the longest that a raised quota outlived the last answer of a round
	GaveBack float64 `json:"gave_back_seconds"`
	// the most that a request was sent late; part of its response time
	Late        float64      `json:"generator_late_ms"`
	Percentiles []Percentile `json:"percentiles"` // the distribution of response times
	Rounds      []Round      `json:"rounds"`      // a round each

	latencies [][]float64 // of each round, in milliseconds
}

// Percentile is one point of the distribution of latencies.
type Percentile struct {
	Percent float64 `json:"p"`  // the percentile
	Latency float64 `json:"ms"` // the response time
}

// Round is one mode in one round.
type Round struct {
	P99 float64 `json:"p99_ms"` // the 99th percentile of response times
	// throttled periods of all periods in which the group was runnable, 0 to 1
	ThrottledRatio float64 `json:"throttled_ratio"`
	CPUs           float64 `json:"cpu_cores"` // CPUs used, the mean
	Requests       int     `json:"requests"`  // requests that were answered
	Errors         int     `json:"errors"`    // requests that failed
}

// Mode finds a mode by name; nil where it was not measured.
func (r *Result) Mode(m Mode) *ModeResult {
	for i := range r.Modes {
		if r.Modes[i].Name == string(m) {
			return &r.Modes[i]
		}
	}
	return nil
}

// summarize pools the slots of each mode.
func summarize(slots []Slot, modes []Mode) *Result {
	r := &Result{Schema: Schema}
	for _, m := range AllModes() {
		if slices.Contains(modes, m) {
			r.Modes = append(r.Modes, summarizeMode(m, slots))
		}
	}
	return r
}

func summarizeMode(mode Mode, slots []Slot) ModeResult {
	m := ModeResult{Name: string(mode)}
	var sum sample.Usage
	var wall, node, offline time.Duration
	var loads []*load.Outcome
	for _, s := range slots {
		if s.Mode != mode {
			continue
		}
		loads = append(loads, s.Load)
		sum = plus(sum, s.Usage)
		wall += s.Usage.Elapsed()
		node += s.NodeUse
		offline += s.Offline
		m.Lost += s.Lost.Seconds()
		m.Ended += s.Ended
		m.Writes += s.Writes
		m.GaveBack = max(m.GaveBack, s.GaveBack.Seconds())
		m.latencies = append(m.latencies, ranked(s.Load.Latency))
		m.Rounds = append(m.Rounds, Round{
			P99:            Milliseconds(s.Load.Latency.Quantile(0.99)),
			ThrottledRatio: Ratio(s.Usage.Throttled, s.Usage.Periods),
			CPUs:           s.Usage.CPUs(), Requests: s.Load.Requests(), Errors: s.Load.Errors,
		})
	}
	out := load.Pool(loads...)
	all := out.Latency
	m.Requests, m.Errors, m.Cause, m.Late = out.Requests(), out.Errors, out.Reason(), Milliseconds(out.Late)
	m.ThrottledRatio = Ratio(sum.Throttled, sum.Periods)
	m.Burst = sum.BurstTime.Seconds()
	m.CPUs = Ratio(sum.Used, wall)
	m.NodeUse, m.Offline, m.Seconds = Ratio(node, wall), Ratio(offline, wall), wall.Seconds()
	m.Work = Ratio(Milliseconds(sum.Used), float64(m.Requests))
	m.Mean, m.Max = Milliseconds(all.Mean()), Milliseconds(all.Max())
	m.P50, m.P90, m.P99 = Milliseconds(all.Quantile(0.5)), Milliseconds(all.Quantile(0.9)), Milliseconds(
		all.Quantile(0.99))
	m.Percentiles = percentiles(all)
	return m
}

// percentiles are taken closer and closer towards the slowest requests.
func percentiles(l *load.Latencies) []Percentile {
	return Percentiles(l, 0, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 96, 97, 98, 99, 99.5, 99.9)
}

// Percentiles are those of latencies, but for those that so many requests cannot tell apart.
func Percentiles(l *load.Latencies, percents ...float64) (points []Percentile) {
	for _, p := range percents {
		if float64(l.Count())*(100-p) >= 100 {
			points = append(points, Percentile{p, Milliseconds(l.Quantile(p / 100))})
		}
	}
	return points
}

// ranked lists all latencies in order, as exactly as the distribution keeps them.
func ranked(l *load.Latencies) []float64 {
	list := make([]float64, l.Count())
	for i := range list {
		list[i] = Milliseconds(l.Quantile((float64(i) + 0.5) / float64(len(list))))
	}
	return list
}

func plus(a, b sample.Usage) sample.Usage {
	a.Used += b.Used
	a.Periods += b.Periods
	a.Throttled += b.Throttled
	a.Bursts += b.Bursts
	a.BurstTime += b.BurstTime
	return a
}
