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
// never guessed from a text (cause.go). The sentence is about the worst row (sentence.go). The detail replays the recorded
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
	Schema     string             `json:"schema"`
	Now        time.Time          `json:"now"`
	Node       string             `json:"node"` // host name
	Version    string             `json:"version"`
	Kernel     string             `json:"kernel"`
	Cgroup     string             `json:"cgroup"`
	Mode       report.Mode        `json:"mode"`
	HeldReason string             `json:"held_reason,omitempty"`
	Sentence   string             `json:"sentence"`
	Window     time.Duration      `json:"window_ns"` // what "the last minute" is now: shorter after a start
	Mark       Mark               `json:"mark"`
	Rows       []Row              `json:"rows"`               // worst first
	Recording  *Recording         `json:"recording"`          // null: periods are not measured; Mark.Features says why
	Recorded   *time.Time         `json:"recorded,omitempty"` // of a file: when it was made; absent: live
	Colocation *report.Colocation `json:"colocation,omitempty"`
	Reserve    *report.Reserve    `json:"reserve,omitempty"`
	Waits      *report.Waits      `json:"waits,omitempty"`
	Problems   []string           `json:"problems"`
}

// Recording says what of the periods is there.
type Recording struct {
	Since time.Time `json:"since"` // without a gap
	Lost  int64     `json:"lost"`  // periods that found no room in the kernel's ring since then
}

// Mark is the node as a load line.
type Mark struct {
	report.Node
	Features []Feature `json:"features"`
	Changed  int       `json:"changed_files"` // that hold a value of the agent's
	Undo     string    `json:"undo"`          // the command that puts them all back; "" where there is nothing to undo
}

// Feature is something that the kernel can do for the agent, or not.
type Feature struct {
	Name string `json:"name"`
	Text string `json:"text"`
	OK   bool   `json:"ok"`
}

// Row is one container, or a pod that alone has a limit. A null is "not measured", and never 0.
type Row struct {
	ID         string                `json:"id"` // the cgroup path
	Name       string                `json:"name"`
	Pod        string                `json:"pod,omitempty"`
	Runtime    string                `json:"runtime"`
	Level      string                `json:"level"`
	Policy     string                `json:"policy"`
	Limit      *time.Duration        `json:"limit_ns"` // a period; null: no limit
	Period     time.Duration         `json:"period_ns"`
	Used       *float64              `json:"used_cpus"`          // mean of the last second
	Peak       *float64              `json:"peak_cpus"`          // the most in one period of the window
	Lost       *time.Duration        `json:"lost_ns"`            // wall time throttled in the window
	Throttled  *int64                `json:"throttled"`          // periods of the window
	Refills    *int64                `json:"refills"`            // in the window
	Tokens     *time.Duration        `json:"tokens_ns"`          // burst tokens saved now
	Quota      *time.Duration        `json:"quota_ns"`           // in force; null: none
	QuotaAsked *time.Duration        `json:"quota_asked_ns"`     // requested; null: none
	Burst      time.Duration         `json:"burst_ns"`           // in force
	BurstAsked time.Duration         `json:"burst_asked_ns"`     // requested
	Cause      Cause                 `json:"cause"`              // why it lost most of that, as it was then, in one word; "" where it lost nothing
	LastLost   *time.Time            `json:"last_lost"`          // the latest snapshot of the window that found more lost; null: none did
	CauseNow   Cause                 `json:"cause_now"`          // why it loses time now; "" where it loses none
	Why        string                `json:"why"`                // the last decision and its reason
	Requests   *report.RequestWindow `json:"requests,omitempty"` // of the last whole minute; nil: not measured
	Paused     *time.Time            `json:"paused_until,omitempty"`
	Problem    string                `json:"problem,omitempty"`
}

// Periods are columns, oldest first, of one container. While a group sleeps the kernel's timer stands still, and there
// are no periods: the ends in between are absent.
type Periods struct {
	Length    time.Duration `json:"period_ns"`
	End       []int64       `json:"end_ms"` // Unix time
	Used      []int32       `json:"used_us"`
	Quota     []int32       `json:"quota_us"`  // -1: none
	Tokens    []int32       `json:"tokens_us"` // after the period; -1: not known
	Throttles []int32       `json:"throttles"` // that began in the period
	Lost      []int32       `json:"lost_us"`
	Refills   []int32       `json:"refills"`
}

// Detail is one container.
type Detail struct {
	Row        Row           `json:"row"`
	Recording  *Recording    `json:"recording"`            // null: periods are not measured, see Unmeasured
	Unmeasured string        `json:"unmeasured,omitempty"` // why there are no periods
	Periods    Periods       `json:"periods"`
	Histogram  []int64       `json:"histogram"` // periods by their use in sixteenths of the limit: class 0 is none, class 16 up to the limit, class 64 open
	Demand     *Demand       `json:"demand"`    // of the recorded periods; null: there are none
	Waited     *Waited       `json:"waited"`    // since the agent knows the container; null: not measured
	Advice     []Alternative `json:"advice"`
}

// Demand is what the container wanted a period. The limit hides a part of it: it lies between the two means.
type Demand struct {
	Periods  int     `json:"periods"`
	Low      float64 `json:"low_cpus"`  // what was used
	High     float64 `json:"high_cpus"` // and with all time lost added, on as many CPUs as it used at most
	Censored bool    `json:"censored"`  // some periods were throttled: the demand is a bound
}

// Waited are waits by cause. Neighbours are never named for time that a limit took.
type Waited struct {
	Wanted     time.Duration      `json:"wanted_ns"`
	Received   time.Duration      `json:"received_ns"`
	Causes     []WaitedFor        `json:"causes"`               // the longest first
	Neighbours []report.Neighbour `json:"neighbours,omitempty"` // who had the CPU, the longest first
}

// WaitedFor is the thread time that one cause took.
type WaitedFor struct {
	Cause report.Cause  `json:"cause"`
	Text  string        `json:"text"`
	Time  time.Duration `json:"time_ns"`
}

// Alternative is what another burst or limit would have done with the recorded periods.
type Alternative struct {
	Text      string        `json:"text"`     // "burst 100 %", "limit 1.5 CPUs"
	Limit     time.Duration `json:"limit_ns"` // a period
	Burst     time.Duration `json:"burst_ns"`
	Now       bool          `json:"now"`       // these are the values in force
	Throttled [2]int        `json:"throttled"` // periods: at least, at most
	Delay     [2]float64    `json:"delay"`     // mean delay of work, in periods: at least, at most
}
