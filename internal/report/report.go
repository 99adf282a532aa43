package report

import (
	"io"
	"strconv"
	"time"
)

// ReportSchema names the format of `plimsoll report --json`. Fields are added, never renamed, within a version.
const ReportSchema = "plimsoll.report/v1"

// Report summarizes the containers since the agent manages them.
type Report struct {
	Schema     string    `json:"schema"`
	Version    string    `json:"version"`    // of Plimsoll
	Started    time.Time `json:"started"`    // the start of the agent
	Now        time.Time `json:"now"`        // the time of the snapshot
	Containers []Row     `json:"containers"` // containers and pods, by path
	// what the scheduler of mechanism `schedExt` did; absent: not requested
	Scheduler *Scheduler `json:"scheduler,omitempty"`
}

// Row is one unit's part of a report.
type Row struct {
	Cgroup         string    `json:"cgroup"`          // the path of its control group
	Name           string    `json:"name"`            // as in the status
	Pod            string    `json:"pod,omitempty"`   // as in the status
	Runtime        string    `json:"runtime"`         // as in the status
	Level          string    `json:"level"`           // `container` or `pod`
	Since          time.Time `json:"since"`           // the first reading: all totals count from here
	ThrottledRatio float64   `json:"throttled_ratio"` // throttled periods / periods, 0 to 1
	CPUs           float64   `json:"mean_cpus"`       // CPU time used / wall time
	// the most CPUs used in one second, which begins anew after a rest; 0: not known, for it needs throttle events
	//
	SecondCPUs float64 `json:"peak_1s_cpus"`
	// the most CPUs used in one period; 0: not known, for it needs throttle events
	PeakCPUs float64 `json:"peak_cpus"`
	Totals
}

// Of makes the report of a snapshot.
func Of(s Status) Report {
	r := Report{Schema: ReportSchema, Version: s.Version, Started: s.Started, Now: s.Now, Containers: []Row{},
		Scheduler: s.scheduler()}
	for _, c := range byPath(s.Containers) {
		row := Row{Cgroup: c.Cgroup, Name: c.Name, Pod: c.Pod, Runtime: c.Runtime, Level: c.Level, Since: c.Since,
			CPUs: ratio(c.Totals.Usage,
				s.Now.Sub(c.Since)), SecondCPUs: c.second(), PeakCPUs: c.peak(), Totals: c.Totals}
		if c.Totals.Periods > 0 {
			row.ThrottledRatio = float64(c.Totals.Throttled) / float64(c.Totals.Periods)
		}
		r.Containers = append(r.Containers, row)
	}
	return r
}

func ratio(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Text writes the report for people.
func (r Report) Text(w io.Writer) error {
	var p page
	if len(r.Containers) == 0 {
		p.printf("no containers\n")
		return p.writeTo(w)
	}
	use, did := r.rows()
	reportTables(&p, append([][]string{useHead()}, use...), append([][]string{didHead()}, did...))
	if t := r.Scheduler; t != nil {
		p.printf("Scheduler: %s.\n", t.Totals.line())
	}
	return p.writeTo(w)
}

func useHead() []string {
	return []string{"NAME", "FOR", "CPUS", "1S", "PEAK", "PERIODS", "THROTTLED", "LOST"}
}

func didHead() []string {
	return []string{"NAME", "BURSTS", "BURST TIME", "ABOVE LIMIT", "RAISES", "RAISED", "REFILLS", "SAVED"}
}

// rows are those of two tables: what containers used, and what Plimsoll did. A pod whose containers say all has none.
func (r Report) rows() (use, did [][]string) {
	pods := map[string]bool{}
	for _, c := range r.Containers {
		pods[c.Pod] = true
	}
	for _, c := range r.Containers {
		name := c.Name
		if c.Level == "pod" {
			if pods[c.Name] && c.Throttled == 0 && c.Raises == 0 {
				continue
			}
			name += " (pod)"
		}
		use = append(use, []string{name, span(r.Now.Sub(c.Since)), strconv.FormatFloat(c.CPUs, 'f', 2, 64),
			known(c.SecondCPUs), known(c.PeakCPUs), count(c.Periods), percent(c.ThrottledRatio), span(c.ThrottledWall)})
		did = append(did, []string{name, count(c.Bursts), span(c.BurstTime), span(c.AboveLimit), count(c.Raises),
			span(c.Raised), count(c.Refills), span(c.WallSaved)})
	}
	return use, did
}

func reportTables(p *page, use, did [][]string) {
	p.table(use)
	p.printf("\nCPUS: mean. 1S, PEAK: the most in one second, and in one period, in CPUs. LOST: wall time " +
		"throttled.\n\n")
	p.table(did)
	p.printf("\nBURST TIME, ABOVE LIMIT: CPU time. RAISED: wall time with a raised quota. " +
		"REFILLS: refills that ended a throttle or prevented a foreseen one. SAVED: wall time that these throttles " +
		"would have lasted longer.\n")
}

// known is a number of CPUs, where it is known.
func known(cpus float64) string {
	if cpus == 0 {
		return "-"
	}
	return strconv.FormatFloat(cpus, 'f', 2, 64)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
