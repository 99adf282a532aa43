package main

import (
	"slices"

	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

// Schema names the format of the JSON. Fields are added, never renamed, within a version.
const schema = "plimsoll.lab.colocation/v1"

// fewRequests is how many a round must have for a p99.
const fewRequests = 100

// result is what the experiment found.
type result struct {
	Schema     string     `json:"schema"`
	Conditions conditions `json:"conditions"`
	Rows       []figures  `json:"rows"`
}

// conditions say under which it was found.
type conditions struct {
	frame.Machine
	Rate     float64 `json:"requests_per_second"`
	Seconds  float64 `json:"seconds_per_row"`
	Rounds   int     `json:"rounds"`
	Seed     uint64  `json:"seed"`
	Emulated bool    `json:"emulated"`        // the CPUs are
	Foremost bool    `json:"generator_first"` // the load generator came before all ordinary tasks
}

// figures are those of one row: in one round, and then the medians of its rounds.
type figures struct {
	Row       row     `json:"row"`
	P50       float64 `json:"p50_ms"`
	P90       float64 `json:"p90_ms"`
	P99       float64 `json:"p99_ms"`
	Mean      float64 `json:"mean_ms"`
	ChangeP50 float64 `json:"p50_change"` // against the baseline, as a ratio
	ChangeP90 float64 `json:"p90_change"`
	ChangeP99 float64 `json:"p99_change"`
	Machine   float64 `json:"machine_use"` // of all CPUs, in [0,1]
	Online    float64 `json:"online_cpus"` // nginx
	Frames    float64 `json:"frames_per_second"`
	Requests  int     `json:"requests"`
	Errors    int     `json:"errors"`
	Cause     string  `json:"first_error,omitempty"`
	// the most that a request was sent late; part of its latency
	Late      float64                 `json:"generator_late_ms"`
	Ran       float64                 `json:"cpu_ms_per_request"`
	Waited    float64                 `json:"run_queue_ms_per_request"`
	Lost      float64                 `json:"lost_ms_per_request"` // mean response time beyond the baseline's
	LostWait  float64                 `json:"lost_run_queue_ms"`   // the part of it that nginx waited on run queues
	LostOther float64                 `json:"lost_hardware_ms"`    // the rest: it ran slower
	Slowest   split                   `json:"slowest"`             // of the slowest fiftieth, whose middle is p99
	Curve     []experiment.Percentile `json:"percentiles"`         // of all rounds together

	load *load.Outcome // of one round
}

// split is where the time of requests went: means, in milliseconds.
type split struct {
	Took   float64 `json:"ms"`
	Ran    float64 `json:"cpu_ms"`       // nginx on a CPU
	Waited float64 `json:"run_queue_ms"` // nginx on run queues
	Rest   float64 `json:"rest_ms"`      // neither: wake-ups, interrupts, and the load generator
}

func (s split) less(t split) split {
	return split{s.Took - t.Took, s.Ran - t.Ran, s.Waited - t.Waited, s.Rest - t.Rest}
}

// answered fills in what became of the requests of a round.
func (f *figures) answered(out *load.Outcome) {
	f.load, f.Mean = out, experiment.Milliseconds(out.Latency.Mean())
	for q, p := range map[float64]*float64{0.5: &f.P50, 0.9: &f.P90, 0.99: &f.P99} {
		*p = experiment.Milliseconds(out.Latency.Quantile(q))
	}
}

func summarize(slots []figures, rows []row) *result {
	r := &result{Schema: schema}
	for _, name := range allRows() {
		if slices.Contains(rows, name) {
			r.Rows = append(r.Rows, summarizeRow(name, slots))
		}
	}
	if base := r.row(baseline); base != nil {
		from := *base
		for i := range r.Rows {
			r.Rows[i].compare(from)
		}
	}
	return r
}

func summarizeRow(name row, slots []figures) figures {
	mine := frame.Of(slots, name, func(f figures) row { return f.Row })
	all := frame.Pool(mine, func(f figures) *load.Outcome { return f.load })
	f := frame.Medians(mine)
	f.Row, f.Requests, f.Errors = name, all.Requests(), all.Errors
	f.Cause, f.Late = all.Reason(), experiment.Milliseconds(all.Late)
	f.Curve = experiment.Percentiles(all.Latency, 50, 60, 70, 80, 85, 90, 92.5, 95, 96, 97, 98, 99, 99.5, 99.9)
	return f
}

// compare fills in what a row lost against the baseline.
func (f *figures) compare(base figures) {
	f.ChangeP50, f.ChangeP90, f.ChangeP99 = change(f.P50, base.P50), change(f.P90, base.P90), change(f.P99, base.P99)
	f.Lost, f.LostWait = f.Mean-base.Mean, f.Waited-base.Waited
	f.LostOther = f.Lost - f.LostWait
}

func change(now, before float64) float64 {
	if before <= 0 {
		return 0
	}
	return now/before - 1
}

func (r *result) row(name row) *figures {
	return frame.Find(r.Rows, func(f figures) bool { return f.Row == name })
}

// best is the mechanism under which nginx lost least at p99; nil where none was measured.
func (r *result) best() *figures {
	var best *figures
	for i, f := range r.Rows {
		if f.Row.prefers() && (best == nil || f.P99 < best.P99) {
			best = &r.Rows[i]
		}
	}
	return best
}

// The aims of the project.
const (
	aimShare   = 0.2  // of what control lost
	aimMachine = 0.9  // of the CPUs
	aimFrames  = 0.95 // of what is left to ffmpeg
)

// Aims compare the best mechanism with the aims.
func (r *result) Aims() []experiment.Figure {
	best, with := r.best(), r.row(control)
	if best == nil {
		return nil
	}
	name := string(best.Row)
	list := []experiment.Figure{share("loss at p90, "+name+" / control", best, with,
		func(f *figures) float64 { return f.ChangeP90 }),
		share("loss at p99, "+name+" / control", best, with, func(f *figures) float64 { return f.ChangeP99 }),
		{Name: "machine CPU, " + name, Value: best.Machine, AtLeast: aimMachine, Measured: true}}
	frames := experiment.Figure{Name: "ffmpeg, " + name + " / left by nginx", AtLeast: aimFrames}
	if with != nil {
		if left := leftTo(*with, best.Online, float64(r.Conditions.CPUs)); left > 0 {
			frames.Value, frames.Measured = best.Frames/left, true
		}
	}
	return append(list, frames)
}

// share is a loss as a part of control's. Where control lost nothing there is nothing to win back.
func share(name string, a, with *figures, of func(*figures) float64) experiment.Figure {
	f := experiment.Figure{Name: name, AtMost: aimShare}
	if with != nil && of(with) > 0 {
		f.Value, f.Measured = max(of(a), 0)/of(with), true
	}
	return f
}

// leftTo is what ffmpeg would do with the CPUs that nginx leaves it, at the rate of the control: frames/s.
func leftTo(with figures, online, cpus float64) float64 {
	if with.Online >= cpus {
		return 0
	}
	return with.Frames * (cpus - online) / (cpus - with.Online)
}
