// Package view turns successive snapshots of an agent, and the periods that the kernel's programs have recorded, into
// what a person sees of a node: one sentence, one mark, one table, and the detail of one container.
//
// # Problem
//
// A status is counters since the agent knows each container. A person asks who stands still now, for how long, why, and
// what was done about it. Counters start again with the agent; containers come and go; many figures are not measured on
// every kernel, and a figure that is not measured must not look like 0.
//
// # Approach
//
// A Tracker takes one snapshot after another, and forms the differences over the last 60 seconds (tracker.go). Each
// container has one row, with its pod's figures in it, and one cause in one word, taken from fields of the snapshot and
// never guessed from a text (cause.go). The sentence is about the worst row. The detail replays the recorded
// periods: the burst tokens by the kernel's arithmetic (package bandwidth), and other bursts and limits (advice.go).
//
// # Known limits
//
// A wall time lost is that of one group: where a container and its pod stand still at the same time, the larger of the
// two is shown, and where they stand still one after the other, that is too little.
package view

import (
	"time"

	"plimsoll/internal/report"
)

// Schema names the format of a View. Fields are added, never renamed, within a version.
const Schema = "plimsoll.view/v1"

// View is what a person sees of one node, once a second.
type View struct {
	Schema     string        `json:"schema"`
	Now        time.Time     `json:"now"`                   // as in the status
	Node       string        `json:"node"`                  // the name of the host
	Version    string        `json:"version"`               // as in the status
	Kernel     string        `json:"kernel"`                // as in the status
	Cgroup     string        `json:"cgroup"`                // as in the status
	Mode       report.Mode   `json:"mode"`                  // as in the status
	HeldReason string        `json:"held_reason,omitempty"` // as in the status
	Sentence   string        `json:"sentence"`              // who lost how much wall time, why, and what Plimsoll did
	Window     time.Duration `json:"window_ns"`             // the length of "the last minute": shorter after a start
	Mark       Mark          `json:"mark"`                  // the node as a load line
	// containers, worst first; a pod is folded into them, and has a row where it alone has a limit
	Rows []Row `json:"rows"`
	// which periods are there; `null`: they are not measured, and `mark.features` says why
	Recording  *Recording         `json:"recording"`
	Recorded   *time.Time         `json:"recorded,omitempty"`   // of a snapshot: when it was made; absent: live
	Colocation *report.Colocation `json:"colocation,omitempty"` // as in the status
	Reserve    *report.Reserve    `json:"reserve,omitempty"`    // as in the status
	Waits      *report.Waits      `json:"waits,omitempty"`      // as in the status
	Problems   []string           `json:"problems"`             // as in the status
	Flags      string             `json:"flags,omitempty"`      // as in the status
}

// Recording says which periods are there.
type Recording struct {
	Since time.Time `json:"since"` // since when periods are recorded without a gap
	Lost  int64     `json:"lost"`  // periods that found no room in the kernel's ring since then
}

// Mark is the node as a load line.
type Mark struct {
	report.Node
	Features []Feature `json:"features"`      // what the kernel can do for the agent
	Changed  int       `json:"changed_files"` // files that hold a value of Plimsoll
	// the command that puts them all back; empty where there is nothing to undo
	Undo string `json:"undo"`
}

// Feature is something that the kernel can do for the agent, or not.
type Feature struct {
	Name string `json:"name"` // of the feature
	Text string `json:"text"` // what it is good for, or what is missing
	OK   bool   `json:"ok"`   // the kernel has it
}

// Row is one container, or a pod that alone has a limit. A null is "not measured", and never 0.
type Row struct {
	ID      string         `json:"id"`            // the path of the control group
	Name    string         `json:"name"`          // as in the status
	Pod     string         `json:"pod,omitempty"` // as in the status
	Runtime string         `json:"runtime"`       // as in the status
	Level   string         `json:"level"`         // as in the status
	Policy  string         `json:"policy"`        // the policy that applies to it
	Limit   *time.Duration `json:"limit_ns"`      // the declared quota a period; `null`: none
	Period  time.Duration  `json:"period_ns"`     // the period of the quota
	Used    *float64       `json:"used_cpus"`     // CPUs used, the mean of the last second; `null`: not measured
	// the most CPUs used in one period of the window; `null`: not measured
	Peak      *float64       `json:"peak_cpus"`
	Lost      *time.Duration `json:"lost_ns"`   // wall time throttled in the window; `null`: not measured
	Throttled *int64         `json:"throttled"` // throttled periods of the window; `null`: not measured
	Refills   *int64         `json:"refills"`   // refills in the window; `null`: not measured
	// burst tokens saved now, computed from the periods; `null` until they are known
	Tokens       *time.Duration `json:"tokens_ns"`
	Quota        *time.Duration `json:"quota_ns"`       // in force; `null`: none
	QuotaAsked   *time.Duration `json:"quota_asked_ns"` // requested; `null`: none
	Burst        time.Duration  `json:"burst_ns"`       // in force
	BurstAsked   time.Duration  `json:"burst_asked_ns"` // requested
	BurstChanged bool           `json:"burst_changed"`  // a value of Plimsoll's is in force
	// why it lost most of that time then: `own-limit`, `pod-limit`, `at-cap`, `load-line`, `extra-cores`, `budget`,
	// `guard`, `refused`, `paused`, `held`, `policy-none`, `refills-off`; empty: it lost none
	Cause Cause `json:"cause"`
	// when it last lost time in the window; `null`: it lost none
	LastLost *time.Time            `json:"last_lost"`
	CauseNow Cause                 `json:"cause_now"`              // why it loses time now; empty where it loses none
	Why      string                `json:"why"`                    // the last decision and its reason
	Requests *report.RequestWindow `json:"requests,omitempty"`     // of the last full minute; absent: not measured
	Paused   *time.Time            `json:"paused_until,omitempty"` // as in the status
	Problem  string                `json:"problem,omitempty"`      // as in the status
}

// Periods are columns, oldest first, of one container. While a group sleeps the kernel's timer stands still, and there
// are no periods: the ends in between are absent.
type Periods struct {
	Length time.Duration `json:"period_ns"` // how long a period is
	// when the periods end, in milliseconds of Unix time; while a group sleeps there are no periods
	End       []int64 `json:"end_ms"`
	Used      []int32 `json:"used_us"`   // CPU time used, in microseconds
	Quota     []int32 `json:"quota_us"`  // the quota, in microseconds; -1: none
	Tokens    []int32 `json:"tokens_us"` // burst tokens after the period, in microseconds; -1: not known
	Throttles []int32 `json:"throttles"` // throttles that began in the period
	Lost      []int32 `json:"lost_us"`   // wall time throttled, in microseconds
	Refills   []int32 `json:"refills"`   // refills in the period
}

// Detail is one container.
type Detail struct {
	Row        Row        `json:"row"`                  // its row in the view
	Recording  *Recording `json:"recording"`            // which periods are there; `null`: they are not measured
	Unmeasured string     `json:"unmeasured,omitempty"` // why there are no periods
	Periods    Periods    `json:"periods"`              // columns, oldest first
	// periods by their use: none, then sixteenths of the limit (16: up to the limit), the last of 65 open
	Histogram []int64 `json:"histogram"`
	Demand    *Demand `json:"demand"` // what it wanted, by the recorded periods; `null`: there are none
	Waited    *Waited `json:"waited"` // since the agent knows the container; `null`: not measured
	// what other limits and bursts would have done with these periods, without refills
	Advice []Alternative `json:"advice"`
}

// Demand is what the container wanted a period. The limit hides a part of it: it lies between the two means.
type Demand struct {
	Periods  int     `json:"periods"`   // from how many periods
	Low      float64 `json:"low_cpus"`  // the mean of what was used
	High     float64 `json:"high_cpus"` // the mean with all time lost added, on as many CPUs as it used at most
	Censored bool    `json:"censored"`  // the limit hid a part, so that the demand is a bound
}

// Waited are waits by cause. Neighbours are never named for time that a limit took.
type Waited struct {
	Wanted   time.Duration `json:"wanted_ns"`   // thread time that it ran, was runnable or throttled
	Received time.Duration `json:"received_ns"` // thread time that it ran
	Causes   []WaitedFor   `json:"causes"`      // the longest first
	// who had the CPU for at least 5 % of the waiting, the longest first; none is named for time that a limit took
	Neighbours []report.Neighbour `json:"neighbours,omitempty"`
}

// WaitedFor is the thread time that one cause took.
type WaitedFor struct {
	Cause report.Cause  `json:"cause"`   // what took the time, as in diagnose
	Text  string        `json:"text"`    // the cause in words
	Time  time.Duration `json:"time_ns"` // thread time
}

// Alternative is what another burst or limit would have done with the recorded periods.
type Alternative struct {
	Text      string        `json:"text"`      // such as `burst 100 %` or `limit 1.5 CPUs`
	Limit     time.Duration `json:"limit_ns"`  // the quota a period
	Burst     time.Duration `json:"burst_ns"`  // the burst
	Now       bool          `json:"now"`       // these are the values in force
	Throttled [2]int        `json:"throttled"` // periods that would have been throttled: at least, at most
	Delay     [2]float64    `json:"delay"`     // the mean delay of work, in periods: at least, at most
}

// Same says whether nothing in a row has changed.
func (r *Row) Same(o *Row) bool {
	a, b := *r, *o
	for _, one := range []*Row{&a, &b} {
		one.Limit, one.Lost, one.Tokens, one.Quota, one.QuotaAsked = nil, nil, nil, nil, nil
		one.Used, one.Peak, one.Throttled, one.Refills, one.Paused, one.LastLost = nil, nil, nil, nil, nil, nil
		one.Requests = nil
	}
	return a == b && same(r.Limit, o.Limit) && same(r.Lost, o.Lost) && same(r.Tokens, o.Tokens) &&
		same(r.Quota, o.Quota) &&
		same(r.QuotaAsked, o.QuotaAsked) && same(r.Used, o.Used) && same(r.Peak, o.Peak) &&
		same(r.Throttled, o.Throttled) &&
		same(r.Refills, o.Refills) && sameTime(r.Paused, o.Paused) && sameTime(r.LastLost, o.LastLost) &&
		same(r.Requests, o.Requests)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
