// Package report holds what Plimsoll says about itself and the containers, and turns it into text, JSON and
// Prometheus metrics. It is pure: what it prints was measured elsewhere.
package report

import (
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// StatusSchema names the format of `plimsoll status --json`. Fields are added, never renamed, within a version.
const StatusSchema = "plimsoll.status/v1"

// Status is a snapshot of one agent: what it changed, what it requested, what is in force, since when.
type Status struct {
	Schema     string        `json:"schema"`
	Version    string        `json:"version"`
	Started    time.Time     `json:"started"`
	Now        time.Time     `json:"now"`
	Mode       Mode          `json:"mode"`
	HeldReason string        `json:"held_reason,omitempty"`
	HeldSince  *time.Time    `json:"held_since,omitempty"` // nil: not held, or not known
	Kernel     string        `json:"kernel"`
	Cgroup     string        `json:"cgroup"` // "v1" or "v2"
	ConfigOK   bool          `json:"config_ok"`
	ConfigMsg  string        `json:"config_error,omitempty"`
	Node       Node          `json:"node"`
	Containers []Container   `json:"containers"`
	Colocation *Colocation   `json:"colocation,omitempty"` // nil: not requested
	Waits      *Waits        `json:"waits,omitempty"`      // nil: not requested
	Requests   *RequestTimes `json:"requests,omitempty"`   // nil: not requested
	Writes     Writes        `json:"writes"`
	Events     Events        `json:"events"`
	Kubernetes *Kubernetes   `json:"kubernetes,omitempty"` // nil: not asked
	Reserve    *Reserve      `json:"reserve,omitempty"`    // nil: no container requests CPUs of its own
	NRI        *NRI          `json:"nri,omitempty"`        // nil: not wanted
	Record     *Flight       `json:"record,omitempty"`     // nil: turned off
	Receipts   *Receipts     `json:"receipts,omitempty"`   // nil: none are asked for
	Self       Self          `json:"self"`
	LastTurn   time.Time     `json:"last_turn"`
	Clamped    []Clamp       `json:"clamped,omitempty"`     // what is asked for in vain: the first of ClampedNow
	ClampedNow int           `json:"clamped_now,omitempty"` // as many are
	Problems   []string      `json:"problems,omitempty"`    // for people: what is wrong now, with a hint
}

// Mode says whether the agent writes.
type Mode string

// The modes.
const (
	Active  Mode = "active"
	Held    Mode = "held"    // kill switch: measures, writes nothing
	Offline Mode = "offline" // no agent runs; read from the journal
)

// Node is the guard's view of the machine.
type Node struct {
	State     string  `json:"state"`          // idle, cooling, overload, unknown
	CPUs      int     `json:"cpus"`           // online CPUs
	Capacity  float64 `json:"capacity_cpus"`  // of the share pool
	Used      float64 `json:"used_cpus"`      // of the share pool, mean of the last second
	Threshold float64 `json:"threshold_cpus"` // sharePoolThresholdPercent of the capacity
	Granted   float64 `json:"granted_cpus"`   // sum of what raised quotas may use above their limits
	Risk      *Risk   `json:"risk,omitempty"` // nil without loadLinePercent, and in its first two minutes
}

// Risk compares the node with its load line.
type Risk struct {
	Target     float64     `json:"target"`             // part of the periods in which everybody is to get what was admitted
	Now        float64     `json:"risk"`               // part of the periods in which some container does not
	Interval   *[2]float64 `json:"interval,omitempty"` // of the risk, of 95 %; nil: 0, or fewer than five minutes are known
	Asked      float64     `json:"risk_asked"`         // the same with all requested bursts
	Share      float64     `json:"burst_share"`        // of the requested bursts that is granted
	Met        bool        `json:"met"`                // the target is met
	Containers int         `json:"containers"`         // that it was computed from
	Capacity   float64     `json:"capacity_cpus"`      // without what others use
	At         time.Time   `json:"at"`
}

// NodeStates lists the states of the guard.
func NodeStates() []string { return []string{"idle", "cooling", "overload", "unknown"} }

// Container is one managed group: a container, or a pod.
type Container struct {
	Cgroup     string            `json:"cgroup"`
	Name       string            `json:"name"`
	Pod        string            `json:"pod,omitempty"`
	Runtime    string            `json:"runtime"`
	Level      string            `json:"level"` // "container" or "pod"
	Strategy   strategy.Strategy `json:"strategy"`
	Paused     *time.Time        `json:"paused_until,omitempty"`
	Released   bool              `json:"released,omitempty"` // Paused is a release: the agent leaves the limit to another writer
	Limit      time.Duration     `json:"limit_ns"`           // the declared quota per period; cpu.Unlimited: none
	Period     time.Duration     `json:"period_ns"`
	LimitFrom  string            `json:"limit_from"` // the source of the limit
	Quota      Knob              `json:"quota"`
	Burst      Knob              `json:"burst"`
	Request    float64           `json:"request_cpus,omitempty"`
	BudgetLeft *time.Duration    `json:"budget_left_ns,omitempty"`    // nil: no bound
	Why        string            `json:"why"`                         // the last decision and its reason
	RefillsOff *time.Time        `json:"refills_off_until,omitempty"` // as of the node
	TooLow     bool              `json:"limit_too_low,omitempty"`     // throttled in more than half of the periods of a minute
	Receipt    *Receipt          `json:"receipt,omitempty"`           // nil: none is asked for
	Requests   *Requests         `json:"requests,omitempty"`          // nil: not measured
	Totals     Totals            `json:"totals"`                      // since the agent knows the container
	Since      time.Time         `json:"since"`
}

// Knob is one file: the value that the agent requests, and the value in force. Where the agent requests none, Requested
// is Original.
type Knob struct {
	Original  time.Duration `json:"original_ns"`
	Requested time.Duration `json:"requested_ns"`
	InForce   time.Duration `json:"in_force_ns"`
	Changed   bool          `json:"changed"` // a value of ours is in the file
	Since     *time.Time    `json:"since,omitempty"`
	Clamped   bool          `json:"clamped,omitempty"`
	Problem   string        `json:"problem,omitempty"` // refused, foreign ... in words
}

// Totals are counted by the agent, from its first reading of the container.
type Totals struct {
	Usage         time.Duration `json:"usage_ns"`
	Periods       int64         `json:"periods"`
	Throttled     int64         `json:"throttled_periods"`
	ThrottledTime time.Duration `json:"throttled_cpu_ns"`  // summed over CPUs, as the kernel counts
	ThrottledWall time.Duration `json:"throttled_wall_ns"` // wall time lost: at most one period for each throttled one
	Bursts        int64         `json:"bursts"`
	BurstTime     time.Duration `json:"burst_ns"`
	AboveLimit    time.Duration `json:"above_limit_ns"` // CPU time used above the limit, in each period where Events is there
	Raised        time.Duration `json:"raised_ns"`      // wall time with a raised quota
	Raises        int64         `json:"raises"`
	Refills       int64         `json:"refills"`             // refills that ended a throttle, or prevented one that was foreseen
	Unneeded      int64         `json:"refills_unneeded"`    // refills without need: the throttle would not have begun, or ended by itself
	Ineffective   int64         `json:"refills_ineffective"` // refills after which the group was throttled all the same
	WallSaved     time.Duration `json:"wall_saved_ns"`       // how much longer these throttles would have lasted
	AtCap         int64         `json:"at_cap"`              // throttles that may not be ended: the group used up to its cap in that period
	AtCapWall     time.Duration `json:"at_cap_wall_ns"`
	// Events is nil where no throttle events come from eBPF. Otherwise ThrottledWall is the sum that eBPF counted.
	Events *Throttles `json:"events,omitempty"`
	Waited *Waited    `json:"waited,omitempty"` // nil: not measured
}

// Throttles is what the eBPF programs have counted of a group since they watch it.
type Throttles struct {
	Begun      int64          `json:"begun"`
	Ended      int64          `json:"ended"`
	Unreported int64          `json:"unreported"`                      // begins without an event: the ring was full, or over the rate of 200 a second after 21 in a row
	Wall       time.Duration  `json:"wall_ns"`                         // from the begin until a task of the group runs again; of throttles that ended
	Requests   *time.Duration `json:"requests_throttled_ns,omitempty"` // of the requests that it has answered; nil: not measured
	Foreseen   int64          `json:"foreseen"`                        // times that the runtime was about to be used up before the period's end
	Lengths    []Length       `json:"lengths"`                         // of throttles that ended, shortest first, without empty classes
	Last       time.Duration  `json:"used_ns"`                         // CPU time used in the last period that is over
	Peak       time.Duration  `json:"peak_ns"`                         // the most that was used in one period
	Second     time.Duration  `json:"peak_1s_ns"`                      // the most that was used in one second
	Usage      time.Duration  `json:"-"`                               // CPU time used since the group was made, where it has a limit
	Above      time.Duration  `json:"-"`                               // used above the limit, period by period
}

// Length counts throttles that ended within UpTo, and not within the class before.
type Length struct {
	UpTo time.Duration `json:"up_to_ns"`
	N    int64         `json:"n"`
}

// Writes counts results by knob and outcome, and decisions by kind.
type Writes struct {
	Results   map[plan.Knob]map[plan.Outcome]int64 `json:"results"`
	Undone    int64                                `json:"undone"`    // writes of a quota by its owner that a refill may have undone
	Decisions map[string]int64                     `json:"decisions"` // burst, raise, lower, give-back, guard, budget, restore ...
}

// Events is how throttles are found.
type Events struct {
	Subscribed  bool          `json:"subscribed"`    // to throttle events; else throttles are polled for
	Why         string        `json:"why,omitempty"` // why it is not subscribed
	Lost        int64         `json:"lost"`
	Refills     int64         `json:"refills"` // refills that ended a throttle, or prevented one that was foreseen
	Unneeded    int64         `json:"refills_unneeded"`
	Ineffective int64         `json:"refills_ineffective"`
	RefillsOff  *time.Time    `json:"refills_off_until,omitempty"` // they have no effect on this node, and are not tried again before
	DelayP50    time.Duration `json:"delay_p50_ns"`                // recent, from the begin of a throttle to its end by a refill
	DelayP99    time.Duration `json:"delay_p99_ns"`
	Priority    string        `json:"priority,omitempty"`     // of the thread that answers: fifo, nice -20, plain
	PriorityWhy string        `json:"priority_why,omitempty"` // why it is not fifo, where that was asked for
	Missing     []MissingPart `json:"missing,omitempty"`      // while Subscribed: what the kernel refused of the programs
}

// MissingPart is a part of the programs in the kernel that could not be loaded.
type MissingPart struct {
	Part string `json:"part"` // balance, wakeups, periods, forecast
	Lost string `json:"lost"` // what is not known without it
	Why  string `json:"why"`
}

// Self is what the agent costs.
type Self struct {
	CPU        time.Duration `json:"cpu_ns"`
	RSS        int64         `json:"rss_bytes"`
	Turns      int64         `json:"turns"`
	Looks      int64         `json:"group_reads"` // containers read
	TurnP50    time.Duration `json:"turn_p50_ns"` // median of the recent turns
	TurnP99    time.Duration `json:"turn_p99_ns"` // of the recent turns
	Rescans    int64         `json:"rescans"`
	EventsLost int64         `json:"events_lost"`       // inotify queue overflows
	LogDropped int64         `json:"log_lines_dropped"` // lines that are not in the log: too many about one object, or nobody read them in time
	Goroutines int           `json:"goroutines"`
}

// Limited says whether the container has a limit at all.
func (c Container) Limited() bool { return c.Limit != cpu.Unlimited }
