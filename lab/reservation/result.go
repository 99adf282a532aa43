package main

import (
	"plimsoll/internal/experiment"
	"plimsoll/internal/load"
	"plimsoll/lab/frame"
)

// Schema names the format of the JSON. Fields are added, never renamed, within a version.
const schema = "plimsoll.lab.reservation/v1"

// result is what the experiment found.
type result struct {
	Schema     string     `json:"schema"`
	Conditions conditions `json:"conditions"`
	Rows       []figures  `json:"rows"`
}

// conditions say under which it was found.
type conditions struct {
	frame.Machine
	Seconds float64 `json:"seconds"` // of a measurement
	Rounds  int     `json:"rounds"`
	Rate    float64 `json:"requests_per_second"`
	Bound   float64 `json:"bound_ms"`     // on the p99 at the most requests a second
	Request float64 `json:"request_cpus"` // of the target
	// Emulated CPUs are as fast as they happen to be: the batch job had time, not work, and response times are those of
	// no machine.
	Emulated bool `json:"emulated"`
}

// figures are those of one situation: in one round, and then the medians of its rounds.
type figures struct {
	situation
	Took        float64 `json:"batch_seconds"`
	Slowdown    float64 `json:"batch_slowdown"`    // against alone, as a ratio
	Utilization float64 `json:"batch_utilization"` // CPU consumed / CPU reserved
	Neighbour   float64 `json:"neighbour_cpus"`
	Scheduling  float64 `json:"slowdown_scheduling"` // the part of the slowdown that is CPU time not received
	Hardware    float64 `json:"slowdown_hardware"`   // the rest: the CPU time that was received did less
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	ChangeP99   float64 `json:"p99_change"`
	// at a p99 within the bound; 0: not even the lowest rate, or not searched
	Most     float64 `json:"most_requests_per_second"`
	Least    float64 `json:"lowest_rate_p99_ms"` // at the lowest rate of the search; 0: not searched
	Late     float64 `json:"generator_late_ms"`  // the most that a request was sent late; part of its latency
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"`
	Batch    split   `json:"batch_time"`     // where the batch job's time went, all rounds
	Asked    split   `json:"memcached_time"` // the same of memcached

	load *load.Outcome // of memcached, in one round
}

// answered fills in what became of the requests of a round.
func (f *figures) answered(out *load.Outcome) {
	f.load, f.P50 = out, experiment.Milliseconds(out.Latency.Quantile(0.5))
	f.P99 = experiment.Milliseconds(out.Latency.Quantile(0.99))
}

func summarize(slots []figures, all []situation) *result {
	r := &result{Schema: schema}
	for _, sit := range all {
		r.Rows = append(r.Rows, summarizeRow(sit, slots))
	}
	if alone := r.row(situation{Neighbour: neighbour{Kind: nobody}}); alone != nil {
		base := *alone
		for i := range r.Rows {
			r.Rows[i].compare(base)
		}
	}
	return r
}

func summarizeRow(sit situation, slots []figures) figures {
	mine := frame.Of(slots, sit, func(f figures) situation { return f.situation })
	all := frame.Pool(mine, func(f figures) *load.Outcome { return f.load })
	f := frame.Medians(mine)
	f.situation, f.Batch, f.Asked = sit, split{}, split{}
	f.Requests, f.Errors, f.Late = all.Requests(), all.Errors, experiment.Milliseconds(all.Late)
	for _, s := range mine {
		f.Batch, f.Asked = f.Batch.plus(s.Batch), f.Asked.plus(s.Asked)
	}
	return f
}

// compare tells what the target lost against alone. The batch job's work is the same everywhere, so it takes longer by
// two factors that multiply: it receives less CPU time a second, and the CPU time that it needs grows.
func (f *figures) compare(alone figures) {
	f.Slowdown, f.ChangeP99 = experiment.Ratio(f.Took, alone.Took), experiment.Ratio(f.P99, alone.P99)-1
	f.Scheduling = experiment.Ratio(alone.Utilization, f.Utilization)
	f.Hardware = experiment.Ratio(f.Took*f.Utilization, alone.Took*alone.Utilization)
}

func (r *result) row(sit situation) *figures {
	return frame.Find(r.Rows, func(f figures) bool { return f.situation == sit })
}

// worst is where the target received least without a CPU for itself; nil without a neighbour.
func (r *result) worst() *figures {
	var worst *figures
	for i, f := range r.Rows {
		if !f.Reserved && f.situation.Neighbour.Kind != nobody && (worst == nil || f.Utilization < worst.Utilization) {
			worst = &r.Rows[i]
		}
	}
	return worst
}

// The aims of the project, for a target with exclusive CPUs.
const (
	aimShort = 0.01 // of the time wanted
	aimP99   = 1.1  // of that alone, where the hardware is not contended for
)

// Aims holds what an exclusive CPU brings against the aims. What stands beside has no aim: the machine itself takes CPU
// time too, with interrupts and programs that no cpuset binds, and the same twice is not the same.
func (r *result) Aims() []experiment.Figure {
	var list []experiment.Figure
	for _, f := range r.Rows {
		short := experiment.Figure{Name: "shortfall of the batch job, " + f.name(), Measured: f.Batch.Wanted > 0,
			Value: experiment.Ratio(f.Batch.Shortfall, f.Batch.Wanted)}
		p99 := experiment.Figure{Name: "p99 of memcached / alone, " + f.name(),
			Measured: f.P99 > 0 && !r.Conditions.Emulated, Value: 1 + f.ChangeP99}
		behind := short
		behind.Name, behind.Value = "  of it behind the neighbour", experiment.Ratio(f.Batch.Owed, f.Batch.Wanted)
		switch beside := f.situation.Neighbour.Kind; {
		case beside == nobody && f.Again:
			list = append(list, p99)
		case beside == nobody && !f.Reserved:
			list = append(list, short)
		case beside == nobody:
			list = append(list, short, p99)
		case f.Reserved:
			short.AtMost, behind.AtMost = aimShort, aimShort
			if list = append(list, short, behind); beside != onMemory {
				p99.AtMost = aimP99
			}
			list = append(list, p99)
		}
	}
	return list
}
