package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// DiagnosisSchema names the format of `plimsoll diagnose --json`. Fields are added, never renamed, within a version.
const DiagnosisSchema = "plimsoll.diagnosis/v1"

// Diagnosis says why containers were slow. Times are thread time: two threads that wait for a second are two seconds.
type Diagnosis struct {
	Schema     string        `json:"schema"`
	Elapsed    time.Duration `json:"elapsed_ns"` // how long was measured
	CPUs       int           `json:"cpus"`       // of the machine
	Containers []Diagnosed   `json:"containers"` // the largest shortfall first
	Overhead   Overhead      `json:"overhead"`   // what the measurement cost
	Notes      []string      `json:"notes"`      // what this kernel cannot tell, and what was lost
}

// Diagnosed is one container. Received and all of Waits are Wanted.
type Diagnosed struct {
	Name     string        `json:"name"`            // as in the status
	Cgroup   string        `json:"cgroup"`          // the path of its control group
	Reserved *float64      `json:"reserved_cpus"`   // CPUs that are reserved; `null`: not known
	Limit    *float64      `json:"limit_cpus"`      // its own; `null`: none
	PodLimit *float64      `json:"pod_limit_cpus"`  // the lowest limit of the groups above it; `null`: none
	Wanted   time.Duration `json:"wanted_ns"`       // the sum of `received_ns` and all `time_ns` of `waits`
	Received time.Duration `json:"received_ns"`     // what it ran
	Used     *float64      `json:"cpu_utilisation"` // received / reserved; `null` where nothing is reserved
	// of what was wanted and reserved, not received; per 100 ms, summed; `null` where nothing is reserved
	Short      *time.Duration `json:"shortfall_ns"`
	Waits      []Wait         `json:"waits"`      // by cause, the longest first
	Neighbours []Neighbour    `json:"neighbours"` // the groups that had the CPU, the longest first
	// of `received_ns`: the core's other hardware thread ran another group
	Beside   time.Duration `json:"sibling_busy_ns"`
	Requests *Requests     `json:"requests,omitempty"` // of this measurement; absent without `--requests`
	Verdict  string        `json:"verdict"`            // in words
	Next     string        `json:"next"`               // what to do, in words
	// whether its runtimes can use a burst; absent where there is no limit, or no process of a known runtime
	Parallelism *Parallelism `json:"parallelism,omitempty"`
}

// Wait is the time that one cause took.
type Wait struct {
	Cause Cause         `json:"cause"`        // what took the time, as in diagnose
	Time  time.Duration `json:"time_ns"`      // thread time
	Short time.Duration `json:"shortfall_ns"` // its part of the shortfall
}

// Neighbour is a group that was in the way.
type Neighbour struct {
	Name   string        `json:"name"`             // which group was in the way
	Cgroup string        `json:"cgroup,omitempty"` // its path
	Time   time.Duration `json:"time_ns"`          // for how long
	// of it: a CPU that the container may use was idle (phantom CPU time)
	Phantom time.Duration `json:"phantom_ns"`
	// of it: the neighbour had its reserved CPUs elsewhere (forced run-queue sharing)
	Forced time.Duration `json:"forced_ns"`
	// of it: the container woke up while a slice of the neighbour was running
	Waking time.Duration `json:"waking_ns"`
}

// Cause is the reason why a container's threads waited for a CPU.
type Cause string

// The causes. Each moment of a wait has one.
const (
	CauseOwnLimit   Cause = "own_limit"
	CausePodLimit   Cause = "pod_limit"
	CauseNeighbour  Cause = "neighbour"
	CauseKernel     Cause = "kernel_threads"
	CauseInterrupts Cause = "interrupts"
	CauseHypervisor Cause = "hypervisor"
	CauseIdle       Cause = "idle_wakeup"
	CauseOwnThreads Cause = "own_threads"
	CauseUnnamed    Cause = "unnamed"
)

// Causes lists them in the order of the bar.
func Causes() []Cause {
	return []Cause{CauseOwnLimit, CausePodLimit, CauseNeighbour, CauseKernel, CauseInterrupts, CauseHypervisor,
		CauseIdle, CauseOwnThreads, CauseUnnamed}
}

// Text is how a person reads a cause.
func (c Cause) Text() string { text, _ := c.words(); return text }

// words is how a person reads a cause, and mark its letter in the bar.
func (c Cause) words() (text, mark string) {
	switch c {
	case CauseOwnLimit:
		return "throttled by its own limit", "L"
	case CausePodLimit:
		return "throttled by a limit above it", "P"
	case CauseNeighbour:
		return "waiting behind neighbours", "N"
	case CauseKernel:
		return "waiting behind kernel threads", "K"
	case CauseInterrupts:
		return "interrupts", "I"
	case CauseHypervisor:
		return "taken by the hypervisor", "H"
	case CauseIdle:
		return "an idle CPU woke up", "w"
	case CauseOwnThreads:
		return "waiting behind its own threads", "o"
	}
	return "still waiting, or of unknown cause", "?"
}

// Overhead is what the measurement cost.
type Overhead struct {
	// without CAP_SYS_ADMIN: what the programs took is not known, and 0 in these fields
	Uncounted bool  `json:"uncounted,omitempty"`
	Switches  int64 `json:"switches"` // context switches of the machine
	// what the program took at a switch, the kernel's measuring of it included
	PerSwitch time.Duration `json:"per_switch_ns"`
	Programs  time.Duration `json:"programs_cpu_ns"`    // CPU time of all programs
	Plimsoll  time.Duration `json:"plimsoll_cpu_ns"`    // CPU time of this process
	Share     float64       `json:"share_of_machine"`   // both, of the CPU time of all CPUs
	Lost      int64         `json:"threads_not_seen"`   // threads for which the table had no room
	Unpaired  int64         `json:"waits_without_name"` // waits without a known neighbour: the table was full
}

func (h Overhead) line() string {
	if h.Uncounted {
		return "the kernel shows the cost of the measurement only with CAP_SYS_ADMIN"
	}
	return fmt.Sprintf("%d switches, %s each; %s of the machine's CPU time went into this", h.Switches, h.PerSwitch,
		percent(h.Share))
}

// LittleCPU is the least demand that the tables show, in CPUs.
const LittleCPU = 0.01

// barWidth is in characters.
const barWidth = 60

// Text draws the bars and says the verdicts.
func (d Diagnosis) Text(w io.Writer) error {
	var p page
	if len(d.Containers) == 0 {
		p.printf("No container wanted any CPU.\n")
	}
	shown := d.worthy()
	if len(shown) > 0 {
		p.table(d.rows(shown))
	}
	for _, c := range shown {
		c.text(&p, d.Elapsed)
	}
	if n := len(d.Containers) - len(shown); n > 0 {
		p.printf("\nand %d that wanted less than %.2f CPUs each\n", n, LittleCPU)
	}
	p.printf("\nover %s on %d CPUs; %s\n", span(d.Elapsed), d.CPUs, d.Overhead.line())
	for _, n := range d.Notes {
		p.printf("note: %s\n", n)
	}
	return p.writeTo(w)
}

// Reached is the diagnosis whose commands find the same agent and control groups by these flags.
func (d Diagnosis) Reached(flags string) Diagnosis {
	for i := range d.Containers {
		c := &d.Containers[i]
		c.Next = Called(c.Next, flags)
		if c.Parallelism != nil {
			c.Parallelism.Next = Called(c.Parallelism.Next, flags)
		}
	}
	return d
}

// worthy are the containers that wanted a CPU at all. A container that is alone is listed without any demand too.
func (d Diagnosis) worthy() []Diagnosed {
	if len(d.Containers) == 1 {
		return d.Containers
	}
	var list []Diagnosed
	for _, c := range d.Containers {
		if c.Wanted.Seconds() >= LittleCPU*d.Elapsed.Seconds() {
			list = append(list, c)
		}
	}
	return list
}

func (d Diagnosis) rows(list []Diagnosed) [][]string {
	rows := [][]string{{"CONTAINER", "RESERVED", "LIMIT", "WANTED", "RECEIVED", "UTILISATION", "SHORTFALL"}}
	for _, c := range list {
		used, short := "-", "-"
		if c.Used != nil {
			used = percent(*c.Used)
		}
		if c.Short != nil {
			short = d.rate(*c.Short)
		}
		rows = append(rows, []string{c.Name, optional(c.Reserved), optional(c.Limit), d.rate(c.Wanted),
			d.rate(c.Received), used, short})
	}
	return rows
}

// rate spells thread time as CPUs.
func (d Diagnosis) rate(t time.Duration) string { return rate(t, d.Elapsed) }

func rate(t, elapsed time.Duration) string {
	if elapsed <= 0 {
		return "0.00"
	}
	return fmt.Sprintf("%.2f", t.Seconds()/elapsed.Seconds())
}

func optional(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

func (c Diagnosed) text(p *page, elapsed time.Duration) {
	p.printf("\n%s\n  %s\n", c.Name, c.bar())
	rows := [][]string{{"  █ received", rate(c.Received, elapsed), share(c.Received, c.Wanted), ""}}
	for _, w := range c.Waits {
		text, mark := w.Cause.words()
		short := ""
		if w.Time < c.Wanted/2000 && w.Short < c.Wanted/2000 {
			continue // 0.0 %
		}
		if w.Short >= c.Wanted/2000 {
			short = "shortfall " + rate(w.Short, elapsed)
		}
		rows = append(rows, []string{"  " + mark + " " + text, rate(w.Time, elapsed), share(w.Time, c.Wanted), short})
	}
	p.table(rows)
	for i, n := range c.Neighbours {
		if n.Time < c.Wanted/2000 {
			break
		}
		if i == mostNeighbours {
			p.printf("    and %d more\n", len(c.Neighbours)-i)
			break
		}
		p.printf("    %d. %s: %s CPUs%s\n", i+1, n.Name, rate(n.Time, elapsed), n.circumstances())
	}
	if c.Beside > 0 {
		p.printf("  of what it received, %s CPUs beside a busy hardware thread\n", rate(c.Beside, elapsed))
	}
	if c.Requests != nil {
		p.printf("  requests: %s\n", c.Requests.Line())
	}
	p.printf("  %s\n", c.Verdict)
	if c.Next != "" {
		p.printf("  next: %s\n", c.Next)
	}
	if r := c.Parallelism; r != nil && r.Verdict != "" {
		p.printf("  parallelism: %s\n  to do: %s\n", r.Verdict, r.Next)
	}
}

const mostNeighbours = 5

func (n Neighbour) circumstances() string {
	var list []string
	for _, part := range []struct {
		time time.Duration
		text string
	}{
		{n.Phantom, "while another CPU was idle"},
		{n.Forced, "while it had its share elsewhere"},
		{n.Waking, "waking behind a slice that ran"},
	} {
		if float64(part.time) >= 0.005*float64(n.Time) && n.Time > 0 {
			list = append(list, share(part.time, n.Time)+" "+part.text)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

func share(part, whole time.Duration) string {
	if whole <= 0 {
		return percent(0)
	}
	return percent(part.Seconds() / whole.Seconds())
}

// bar draws the demand in characters. Characters that are left over go to the largest remainders.
func (c Diagnosed) bar() string {
	if c.Wanted <= 0 {
		return "(nothing was wanted)"
	}
	type part struct {
		mark string
		n    int
		rest float64
	}
	list := []part{{mark: "█"}}
	times := []time.Duration{c.Received}
	for _, cause := range Causes() {
		for _, w := range c.Waits {
			if w.Cause == cause {
				_, mark := cause.words()
				list, times = append(list, part{mark: mark}), append(times, w.Time)
			}
		}
	}
	left := barWidth
	for i := range list {
		exact := barWidth * times[i].Seconds() / c.Wanted.Seconds()
		list[i].n = int(math.Floor(exact))
		list[i].rest = exact - math.Floor(exact)
		left -= list[i].n
	}
	for ; left > 0; left-- {
		best := 0
		for i := range list {
			if list[i].rest > list[best].rest {
				best = i
			}
		}
		list[best].n++
		list[best].rest = 0
	}
	var b strings.Builder
	for _, p := range list {
		b.WriteString(strings.Repeat(p.mark, max(p.n, 0)))
	}
	return b.String()
}
