package report

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

// Colocation is how online work is preferred to offline work.
type Colocation struct {
	Asked      strategy.Mechanism `json:"asked"`      // the mechanism that the configuration asks for
	Mechanism  strategy.Mechanism `json:"mechanism"`  // the mechanism that is used
	Why        string             `json:"why"`        // why this one, and what was asked for but cannot be had
	Mechanisms []Mechanism        `json:"mechanisms"` // those that there are, and whether this machine has them
	// the files that the mechanism sets, one of a group each; with `slice` and `cookie` the tasks of a group, with
	// Group Identity also the machine's switch, `gate` of `/`
	Knobs []Priority `json:"knobs"`
	// offline groups that meet some online work at the weight of the group above them
	Exposed []string `json:"exposed,omitempty"`
	Missing []string `json:"missing,omitempty"` // groups without the file
	// CPUs that offline work may use; absent while it is not bounded
	Room      *float64   `json:"offline_room_cpus,omitempty"`
	Ranks     []Rank     `json:"ranks"`               // the containers on each side
	Scheduler *Scheduler `json:"scheduler,omitempty"` // with `schedExt`: the scheduler; absent: not requested
}

// Mechanism is one way to prefer online work.
type Mechanism struct {
	Name   strategy.Mechanism `json:"name"`   // of the mechanism
	Usable bool               `json:"usable"` // this machine has it
	Why    string             `json:"why"`    // why, or why not
}

// Priority is a knob that the mechanism turns.
type Priority struct {
	Cgroup   string     `json:"cgroup"`            // the path of the group
	Knob     plan.Knob  `json:"knob"`              // which file
	Want     plan.Value `json:"want"`              // what is to be in it
	Have     plan.Value `json:"have"`              // what is in it
	Original plan.Value `json:"original"`          // what was in it
	InForce  bool       `json:"in_force"`          // it holds what is wanted
	Since    time.Time  `json:"since"`             // since when it does, or does not
	Resets   int64      `json:"resets"`            // times that its owner put its own value back
	Refused  int64      `json:"refused"`           // writes that were refused or overwritten
	Foreign  bool       `json:"foreign,omitempty"` // it holds the value of another program, and is left alone
	Problem  string     `json:"problem,omitempty"` // what is wrong, in words
}

// Rank sums up the containers on one side of the priority.
type Rank struct {
	Rank       strategy.Rank `json:"rank"`       // `online`, `offline` or `neutral`
	Containers int           `json:"containers"` // how many
	Usage      time.Duration `json:"usage_ns"`   // CPU time used since the agent runs, also by containers that are gone
	Used       float64       `json:"used_cpus"`  // CPUs used in the last ten seconds
}

// InForce says whether the mechanism is in force everywhere.
func (c Colocation) InForce() bool {
	for _, k := range c.Knobs {
		if !k.InForce {
			return false
		}
	}
	return len(c.Knobs) > 0 && len(c.Missing) == 0
}

// line is "idle in force at 2 groups; online 1.90 CPUs (3 containers), offline 0.10 (2)".
func (c Colocation) line() string {
	line := fmt.Sprintf("%s (%s)", c.Mechanism, c.Why)
	in := 0
	for _, k := range c.Knobs {
		if k.InForce {
			in++
		}
	}
	line += fmt.Sprintf("; in force in %d of %s", in, several(len(c.Knobs), "file"))
	if resets, refused := c.resets(), c.Refused(); resets+refused > 0 {
		line += fmt.Sprintf(", reset by others %s, refused %s", several(resets, "time"), several(refused, "time"))
	}
	if c.Scheduler != nil {
		line += "; " + c.Scheduler.line()
	}
	if c.Room != nil {
		line += fmt.Sprintf("; offline bounded to %.2f CPUs", *c.Room)
	}
	for _, r := range c.Ranks {
		if r.Containers > 0 {
			line += fmt.Sprintf("; %s: %s, %.2f CPUs", r.Rank, several(r.Containers, "container"), r.Used)
		}
	}
	return line
}

// resets sums over the knobs.
func (c Colocation) resets() (n int64) {
	for _, k := range c.Knobs {
		n += k.Resets
	}
	return n
}

// Refused sums the writes that were refused or overwritten.
func (c Colocation) Refused() (n int64) {
	for _, k := range c.Knobs {
		n += k.Refused
	}
	return n
}

// Problems are those of the knobs, in words.
func (c *Colocation) Problems() []string {
	if c == nil {
		return nil
	}
	var list []string
	for _, k := range c.Knobs {
		if k.Problem != "" {
			list = append(list, fmt.Sprintf(ProblemPriority, Printable(k.Cgroup), k.Knob, k.Problem))
		}
	}
	if c.Scheduler != nil && c.Scheduler.Problem != "" {
		list = append(list, c.Scheduler.Problem)
	}
	for _, group := range c.Missing {
		list = append(list, fmt.Sprintf(ProblemNoPriority, Printable(group)))
	}
	for _, group := range c.Exposed {
		list = append(list, fmt.Sprintf(ProblemExposed, Printable(group)))
	}
	return list
}

// colocationMetrics are the descriptions of what collect sends.
type colocationMetrics struct{ inForce, mechanism, resets, refused, usage, used, containers, room *prometheus.Desc }

func newColocationMetrics() colocationMetrics {
	return colocationMetrics{
		inForce: describe("colocation_in_force",
			"1 while every file that gives online work priority holds the value that the agent requests."),
		mechanism: describe("colocation_mechanism", "1 for the mechanism that deprioritizes offline work.",
			"mechanism"),
		resets: describe("colocation_resets",
			"Times that owners overwrote a value of the co-location, over the files that hold such a value now."),
		refused: describe("colocation_refused",
			"Writes of the co-location that were refused or overwritten, over the files that hold such a value now."),
		usage: describe("rank_usage_seconds_total",
			"CPU time used by the containers of a rank: online, offline or neutral.", "rank"),
		room: describe("offline_room_cpus", "CPUs that offline work may use; +Inf while it is not bounded."),
		used: describe("rank_used_cpus", "CPUs used by the containers of a rank, of the last ten seconds.",
			"rank"),
		containers: describe("rank_containers", "Containers of a rank.", "rank"),
	}
}

func (m colocationMetrics) list() []*prometheus.Desc {
	return []*prometheus.Desc{m.inForce, m.mechanism, m.resets, m.refused, m.usage, m.used, m.containers, m.room}
}

// collect sends nothing where no priority is configured.
func (c *Colocation) collect(m colocationMetrics, send sender) {
	if c == nil {
		return
	}
	send(m.inForce, prometheus.GaugeValue, bit(c.InForce()))
	send(m.mechanism, prometheus.GaugeValue, 1, string(c.Mechanism))
	send(m.resets, prometheus.GaugeValue, float64(c.resets()))
	send(m.refused, prometheus.GaugeValue, float64(c.Refused()))
	room := math.Inf(1)
	if c.Room != nil {
		room = *c.Room
	}
	send(m.room, prometheus.GaugeValue, room)
	for _, r := range c.Ranks {
		send(m.usage, prometheus.CounterValue, r.Usage.Seconds(), string(r.Rank))
		send(m.used, prometheus.GaugeValue, r.Used, string(r.Rank))
		send(m.containers, prometheus.GaugeValue, float64(r.Containers), string(r.Rank))
	}
}
