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
	Schema  string    `json:"schema"`
	Version string    `json:"version"` // of Plimsoll
	Started time.Time `json:"started"` // the start of the agent
	Now     time.Time `json:"now"`     // the time of this snapshot
	// `active`, `held` (kill switch: it measures, and writes nothing) or `offline` (no agent runs: from the journal)
	Mode       Mode       `json:"mode"`
	HeldReason string     `json:"held_reason,omitempty"`  // why it is held
	HeldSince  *time.Time `json:"held_since,omitempty"`   // absent: not held, or not known
	Kernel     string     `json:"kernel"`                 // the release of Linux
	Cgroup     string     `json:"cgroup"`                 // `v1` or `v2`
	ConfigOK   bool       `json:"config_ok"`              // the configuration on disk is in force
	ConfigMsg  string     `json:"config_error,omitempty"` // why it is not; also among the `problems`
	Node       Node       `json:"node"`                   // the guard's view of the machine
	// containers and pods that the agent looks after, without the sandboxes of pods
	Containers []Container `json:"containers"`
	Colocation *Colocation `json:"colocation,omitempty"` // online work before offline work; absent: not requested
	Waits      *Waits      `json:"waits,omitempty"`      // what containers waited for; absent without `run --waits`
	// whether response times are measured; absent without `run --requests`
	Requests *RequestTimes `json:"requests,omitempty"`
	Writes   Writes        `json:"writes"` // what was written
	Events   Events        `json:"events"` // how throttles are found
	// the connection to the API server; absent without `run --kube`
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// NAMESPACE/NAME of the DaemonSet whose agent this is; absent without `run --installation`
	Installation string   `json:"installation,omitempty"`
	Reserve      *Reserve `json:"reserve,omitempty"` // exclusive CPUs; absent: no container requests any
	// the connection to the container runtime; absent without `--kube` and `--nri-socket`
	NRI    *NRI    `json:"nri,omitempty"`
	Record *Flight `json:"record,omitempty"` // the record of all periods; absent: turned off
	// of all containers, those that are gone included; absent: none are asked for
	Receipts *Receipts `json:"receipts,omitempty"`
	Self     Self      `json:"self"`      // what the agent costs
	LastTurn time.Time `json:"last_turn"` // the end of the last turn of the agent's loop
	// requests of pods and containers that a bound reduces, the first 200; nothing is wrong
	Cuts     []Cut    `json:"cuts,omitempty"`
	CutsNow  int      `json:"cuts_now,omitempty"` // how many there are in all
	Problems []string `json:"problems,omitempty"` // what is wrong now, for people, with a hint
	// those that a command on this node needs to find this agent, such as `--state-dir /run/lab`; absent: none
	Flags string `json:"flags,omitempty"`
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
	// `idle`, `cooling` (from 90 % of the threshold: no raise), `overload` (raises are taken back, unless containers
	// that start are the load, which ends by itself), `unknown`
	State     string  `json:"state"`
	CPUs      int     `json:"cpus"`           // CPUs that are online
	Capacity  float64 `json:"capacity_cpus"`  // CPUs of the share pool
	Used      float64 `json:"used_cpus"`      // CPUs used of the share pool, the mean of the last second
	Threshold float64 `json:"threshold_cpus"` // CPUs: `sharePoolThresholdPercent` of the capacity
	Granted   float64 `json:"granted_cpus"`   // CPUs that raised quotas may use above their limits
	// the node and its load line; absent without `loadLinePercent`, and in its first two minutes
	Risk *Risk `json:"risk,omitempty"`
}

// Risk compares the node with its load line.
type Risk struct {
	Target float64 `json:"target"` // part of the periods in which all containers are to get what was admitted
	Now    float64 `json:"risk"`   // part of the periods in which some container does not
	// of the risk, 95 %, by a bootstrap of the minutes; absent: the risk is 0, or less than five minutes are known
	Interval   *[2]float64 `json:"interval,omitempty"`
	Asked      float64     `json:"risk_asked"`    // the risk with all requested bursts
	Share      float64     `json:"burst_share"`   // part of the requested bursts that is granted
	Met        bool        `json:"met"`           // the target is met
	Containers int         `json:"containers"`    // how many it was computed from
	Capacity   float64     `json:"capacity_cpus"` // CPUs without those that others use
	At         time.Time   `json:"at"`            // when it was computed
}

// NodeStates lists the states of the guard.
func NodeStates() []string { return []string{"idle", "cooling", "overload", "unknown"} }

// Container is one managed group: a container, or a pod.
type Container struct {
	Cgroup string `json:"cgroup"` // the path of its control group
	// for people: NAMESPACE/POD/CONTAINER, a unit of systemd, a container of Docker, or the path
	Name string `json:"name"`
	Pod  string `json:"pod,omitempty"` // NAMESPACE/POD, where it belongs to one
	// the program that made the group: `containerd`, `docker`, `systemd`, `cgroup` ...
	Runtime string `json:"runtime"`
	Level   string `json:"level"` // `container` or `pod`
	// what applies to it, all configuration merged; fields as in CONFIG.md
	Strategy strategy.Strategy `json:"strategy"`
	Paused   *time.Time        `json:"paused_until,omitempty"` // kept at its limit until then; absent: not paused
	// until `paused_until` the agent leaves the limit to another writer (`plimsoll release`)
	Released  bool          `json:"released,omitempty"`
	Limit     time.Duration `json:"limit_ns"`               // the declared quota per period; `null`: unlimited
	Period    time.Duration `json:"period_ns"`              // the period of the quota
	LimitFrom string        `json:"limit_from"`             // who declares the limit
	Quota     Knob          `json:"quota"`                  // the file of the quota
	Burst     Knob          `json:"burst"`                  // the file of the burst
	Request   float64       `json:"request_cpus,omitempty"` // CPUs that are reserved; absent: not known
	// CPU time left of `cfsQuotaBurstPeriodSeconds`; absent: no bound
	BudgetLeft *time.Duration `json:"budget_left_ns,omitempty"`
	Why        string         `json:"why"` // the last decision and its reason
	// refills had no effect: throttles are answered by raises of the quota, and by a refill again from then on; absent
	// while refills have effect
	RefillsOff *time.Time `json:"refills_off_until,omitempty"`
	TooLow     bool       `json:"limit_too_low,omitempty"` // throttled in more than half of the periods of a minute
	Receipt    *Receipt   `json:"receipt,omitempty"`       // what refills and raises save; absent: none is asked for
	Requests   *Requests  `json:"requests,omitempty"`      // how long it takes to answer; absent: not measured
	Totals     Totals     `json:"totals"`                  // counts since the agent knows the container
	Since      time.Time  `json:"since"`                   // totals count from here
}

// Knob is one file: the value that the agent requests, and the value in force.
type Knob struct {
	Original  time.Duration `json:"original_ns"`       // without Plimsoll; `null`: unlimited
	Requested time.Duration `json:"requested_ns"`      // what the agent asks for, or the original; `null`: unlimited
	InForce   time.Duration `json:"in_force_ns"`       // in the kernel now; `null`: unlimited
	Changed   bool          `json:"changed"`           // a value of Plimsoll's is in the file
	Since     *time.Time    `json:"since,omitempty"`   // since when
	Clamped   bool          `json:"clamped,omitempty"` // the kernel has less than was asked for
	Problem   string        `json:"problem,omitempty"` // what is wrong, in words: refused, of another program ...
}

// Totals are counts since the first reading of the container.
type Totals struct {
	Usage         time.Duration `json:"usage_ns"`          // CPU time used
	Periods       int64         `json:"periods"`           // periods in which the group was runnable
	Throttled     int64         `json:"throttled_periods"` // periods that ended throttled
	ThrottledTime time.Duration `json:"throttled_cpu_ns"`  // throttled time summed over CPUs, as the kernel counts it
	// wall time lost to throttling, as the kernel's programs count it; without `events` an upper bound: one period for
	// each throttled one
	ThrottledWall time.Duration `json:"throttled_wall_ns"`
	// periods in which saved quota was used; 0 before kernel 5.16, which does not count them
	Bursts    int64         `json:"bursts"`
	BurstTime time.Duration `json:"burst_ns"` // CPU time of saved quota used; 0 before kernel 5.16
	// CPU time used above the limit: summed over periods where there are `events`, else over means between two
	// readings
	AboveLimit time.Duration `json:"above_limit_ns"`
	Raised     time.Duration `json:"raised_ns"` // wall time with a raised quota
	Raises     int64         `json:"raises"`    // raises of the quota
	// refills that ended a throttle as it began, or prevented one that was foreseen: those whose effect was seen
	Refills int64 `json:"refills"`
	// refills without a visible need: no throttle would have begun, or it ended by itself, or began about as soon
	Unneeded    int64 `json:"refills_unneeded"`
	Ineffective int64 `json:"refills_ineffective"` // refills after which the group was throttled all the same
	// wall time that these throttles would have lasted longer, to their period's end; without time in which the group
	// was throttled all the same
	WallSaved time.Duration `json:"wall_saved_ns"`
	// throttles left to last until their period ended, because it had had `cfsQuotaBurstPercent` of the limit; at most
	// one in a period
	AtCap     int64         `json:"at_cap"`
	AtCapWall time.Duration `json:"at_cap_wall_ns"` // wall time that these last
	// counts of the kernel's programs, with `schedExt` of the scheduler; absent: no throttle events come from eBPF
	Events *Throttles `json:"events,omitempty"`
	Waited *Waited    `json:"waited,omitempty"` // what its threads waited for; absent without `run --waits`
}

// Throttles is what the eBPF programs have counted of a group since they watch it.
type Throttles struct {
	Begun int64 `json:"begun"` // throttles that began
	Ended int64 `json:"ended"` // throttles that ended
	// throttles that began without an event to the agent: more than 21 in a row and then more than 200 a second, or a
	// full ring
	Unreported int64 `json:"unreported"`
	// wall time from the begin until a task of the group runs again, of throttles that ended
	Wall time.Duration `json:"wall_ns"`
	// throttled time of the requests that it has answered; absent: not measured
	Requests *time.Duration `json:"requests_throttled_ns,omitempty"`
	// times that the quota was about to be used up before the period's end
	Foreseen int64 `json:"foreseen"`
	// of throttles that ended, shortest first, without empty classes; the others lasted longer than 8.4 s
	Lengths []Length      `json:"lengths"`
	Last    time.Duration `json:"used_ns"` // CPU time used in the last period that is over
	Peak    time.Duration `json:"peak_ns"` // the most CPU time used in one period
	// the most CPU time used in one second; not known with `schedExt`
	Second time.Duration `json:"peak_1s_ns"`
	// CPU time used since the group was made, where it has a limit
	Usage   time.Duration `json:"-"`
	Counted bool          `json:"-"` // the use of its periods is known, and with it Above
	Above   time.Duration `json:"-"` // used above the limit, period by period
}

// Length counts what lasted at most so long, and longer than the class before.
type Length struct {
	UpTo time.Duration `json:"up_to_ns"` // the upper end of the class; the class before is the lower end
	N    int64         `json:"n"`        // how many
}

// Writes counts results by knob and outcome, and decisions by kind.
type Writes struct {
	// number of writes, by knob and outcome (Outcomes of a write)
	Results map[plan.Knob]map[plan.Outcome]int64 `json:"results"`
	// writes of a quota by its owner that a refill may have undone (KERNEL.md, "Ending a throttle"); each is a problem
	// until another value stands
	Undone int64 `json:"undone"`
	// number of decisions, by kind, such as `raise` and `give-back` (Kinds of decisions)
	Decisions map[string]int64 `json:"decisions"`
}

// Events is how throttles are found.
type Events struct {
	Subscribed bool   `json:"subscribed"`    // there are throttle events; else throttles are polled for
	Why        string `json:"why,omitempty"` // why there are none
	Lost       int64  `json:"lost"`          // throttle events that were lost
	Refills    int64  `json:"refills"`       // refills that ended a throttle, or prevented one that was foreseen
	// refills without a visible need: no throttle would have begun, or it ended by itself, or began about as soon
	Unneeded    int64 `json:"refills_unneeded"`
	Ineffective int64 `json:"refills_ineffective"` // refills after which the group was throttled all the same
	// refills had no effect in several containers, and are not tried again before; absent while they have effect
	RefillsOff *time.Time `json:"refills_off_until,omitempty"`
	// from the begin of a throttle to its end by a refill, of the last 1,024: the median
	DelayP50 time.Duration `json:"delay_p50_ns"`
	DelayP99 time.Duration `json:"delay_p99_ns"` // of the same, the 99th percentile
	// of the thread that answers throttles: `fifo` (real time), or `nice -20` or `plain` where that is not permitted
	Priority    string        `json:"priority,omitempty"`
	PriorityWhy string        `json:"priority_why,omitempty"` // why it is not `fifo`, where that was asked for
	Missing     []MissingPart `json:"missing,omitempty"`      // parts of the kernel's programs that could not be loaded
}

// MissingPart is a part of the programs in the kernel that could not be loaded.
type MissingPart struct {
	Part string `json:"part"` // `balance`, `wakeups`, `periods` or `forecast`
	Lost string `json:"lost"` // what is not known without it
	Why  string `json:"why"`  // what the kernel refused
}

// Self is what the agent costs.
type Self struct {
	CPU        time.Duration `json:"cpu_ns"`      // CPU time used by the agent
	RSS        int64         `json:"rss_bytes"`   // memory in bytes
	Turns      int64         `json:"turns"`       // turns of the agent's loop
	Looks      int64         `json:"group_reads"` // containers read
	TurnP50    time.Duration `json:"turn_p50_ns"` // the median of the recent turns
	TurnP99    time.Duration `json:"turn_p99_ns"` // the 99th percentile of the recent turns
	Rescans    int64         `json:"rescans"`     // how often all control groups were listed
	EventsLost int64         `json:"events_lost"` // overflows of the queue of inotify
	// lines that are not in the log: too many about one object, or its reader was too slow
	LogDropped int64 `json:"log_lines_dropped"`
	Goroutines int   `json:"goroutines"` // goroutines of the agent
}

// Limited says whether the container has a limit at all.
func (c Container) Limited() bool { return c.Limit != cpu.Unlimited }
