package report

import (
	"fmt"
	"io"
	"time"
)

// ReplaySchema names the format of `plimsoll replay --json`. Fields are added, never renamed, within a version.
const ReplaySchema = "plimsoll.replay/v1"

// Replay compares a recorded time with the same time under another limit or policy.
type Replay struct {
	Schema     string            `json:"schema"`
	From       time.Time         `json:"from"`                 // the begin of the time
	To         time.Time         `json:"to"`                   // the end of the time
	Dir        string            `json:"dir"`                  // the folder of the record
	Files      int               `json:"files"`                // files that were read
	CPUs       int               `json:"cpus"`                 // CPUs of the simulated machine
	Policy     string            `json:"policy"`               // the policy that was simulated
	Burst      int64             `json:"burst_percent"`        // `cpuBurstPercent` that was simulated
	QuotaBurst int64             `json:"quota_burst_percent"`  // `cfsQuotaBurstPercent` that was simulated: the cap
	Threshold  int64             `json:"threshold_percent"`    // `sharePoolThresholdPercent` that was simulated
	Containers []Replayed        `json:"containers"`           // those that were asked for
	Neighbours *ReplayNeighbours `json:"neighbours,omitempty"` // all other containers
	Gaps       []Gap             `json:"gaps"`                 // times in which nothing was recorded
	Lost       int64             `json:"lost_periods"`         // periods that are missing in the files
	Warnings   []string          `json:"warnings"`             // what is missing in the record, in words
	Conditions []string          `json:"conditions"`           // under which the figures hold
}

// Replayed is one container of a Replay.
type Replayed struct {
	Cgroup string `json:"cgroup"` // the path of its control group
	Name   string `json:"name"`   // as in the status
	// the limit that was, and the one that would have been; the last of the time
	Limits [2]float64    `json:"limits_cpus"`
	Was    ReplayFigures `json:"was"`   // as it was
	Would  ReplayFigures `json:"would"` // as it would have been
	// where nothing was refilled or raised: what the simulation makes of the time as it was; its distance from `was`
	// shows how good the simulation is here
	Model *ReplayModel `json:"model,omitempty"`
}

// ReplayFigures are those of a container, as it was or as it would have been.
type ReplayFigures struct {
	Lost    Between `json:"throttled_wall_ns"` // wall time throttled
	Delay   Between `json:"delay_p99_ns"`      // of its work, by CPU time
	Above   Between `json:"above_limit_ns"`    // CPU time used above the limit
	Used    Between `json:"used_ns"`           // CPU time used
	Refills int64   `json:"refills"`           // refills that had an effect
}

// ReplayModel is what the model says of what was: without refills, it can be compared.
type ReplayModel struct {
	Lost time.Duration `json:"throttled_wall_ns"` // wall time throttled
	Used time.Duration `json:"used_ns"`           // CPU time used
}

// ReplayNeighbours is how much later the work of all others was done, because CPUs were busy.
type ReplayNeighbours struct {
	Count int `json:"count"` // how many there are
	// how much later their work was done because CPUs were busy, as it was: the mean
	WasMean time.Duration `json:"was_mean_ns"`
	WasP99  time.Duration `json:"was_p99_ns"`      // the same, the 99th percentile
	Mean    Between       `json:"mean_ns"`         // as it would have been: the mean
	P99     Between       `json:"p99_ns"`          // the same, the 99th percentile
	Worst   string        `json:"worst,omitempty"` // the one whose p99 grew most
	WorstBy time.Duration `json:"worst_by_ns"`     // by how much
}

// Between is a figure that depends on what the limit hid, with its bounds.
type Between struct {
	Likely time.Duration `json:"likely"` // what is most likely
	Low    time.Duration `json:"low"`    // the least that it can be
	High   time.Duration `json:"high"`   // the most that it can be
}

// String is "1.2s", or "1.2s (0s to 3.4s)".
func (b Between) String() string {
	likely, low, high := coarse(b.Likely), coarse(b.Low), coarse(b.High)
	if low == high {
		return likely
	}
	return fmt.Sprintf("%s (%s to %s)", likely, low, high)
}

// coarse spells a time to a tenth of a millisecond at most: the model knows no more.
func coarse(d time.Duration) string { return span(d.Round(100 * time.Microsecond)) }

// Asked is what was simulated, in words.
func (r Replay) Asked() string {
	return fmt.Sprintf("policy %s, burst %d %%, cap %d %%, threshold %d %%", r.Policy, r.Burst, r.QuotaBurst,
		r.Threshold)
}

// Text writes it for people.
func (r Replay) Text(w io.Writer) error {
	var p page
	p.printf("%s to %s, from %s in %s, on %s\n", instant(r.From), instant(r.To), several(r.Files, "file"), r.Dir,
		several(r.CPUs, "CPU"))
	p.printf("%s\n", r.Asked())
	for _, c := range r.Containers {
		p.printf("\n")
		c.table(&p, r.Neighbours, len(r.Containers) == 1)
	}
	if r.Neighbours != nil && len(r.Containers) != 1 {
		p.printf("\n")
		p.table(append([][]string{{fmt.Sprintf("%d neighbours", r.Neighbours.Count), "WHAT WAS",
			"WHAT WOULD HAVE BEEN"}}, r.Neighbours.rows()...))
	}
	p.printf("\nIn parentheses: the bounds, where a limit hid when work came. p99 delay: so much later than without " +
		"a limit the last percent of the work was done.\n")
	if n := r.Neighbours; n != nil && n.Worst != "" {
		p.printf("The neighbour whose p99 would have grown most: %s, by %s.\n", n.Worst, coarse(n.WorstBy))
	}
	for _, g := range r.Gaps {
		p.printf("gap: nothing was recorded from %s to %s\n", exact(g.From), exact(g.To))
	}
	if r.Lost > 0 {
		p.printf("warning: %d periods are missing: the ring between the kernel and the recorder was full\n", r.Lost)
	}
	for _, one := range r.Warnings {
		p.printf("warning: %s\n", one)
	}
	for _, one := range r.Conditions {
		p.printf("note: %s\n", one)
	}
	return p.writeTo(w)
}

func (c Replayed) table(p *page, n *ReplayNeighbours, alone bool) {
	rows := [][]string{{c.Name, "WHAT WAS", "WHAT WOULD HAVE BEEN"},
		{"limit", cpusOr(c.Limits[0]), cpusOr(c.Limits[1])},
		{"time lost", c.Was.Lost.String(), c.Would.Lost.String()},
		{"p99 delay", c.Was.Delay.String(), c.Would.Delay.String()},
		{"CPU time", c.Was.Used.String(), c.Would.Used.String()},
		{"above the limit", c.Was.Above.String(), c.Would.Above.String()},
		{"refills", count(c.Was.Refills), count(c.Would.Refills)}}
	if n != nil && alone {
		rows = append(rows, n.rows()...)
	}
	p.table(rows)
	if c.Model != nil {
		p.printf("The model's own account of what was: time lost %s, CPU time %s.\n", coarse(c.Model.Lost),
			coarse(c.Model.Used))
	}
}

func (n *ReplayNeighbours) rows() [][]string {
	return [][]string{{"neighbours: mean delay", coarse(n.WasMean), n.Mean.String()},
		{"neighbours: p99 delay", coarse(n.WasP99), n.P99.String()}}
}

func cpusOr(cpus float64) string {
	if cpus == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f CPUs", cpus)
}
