package report

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// HistorySchema names the format of `plimsoll history --json`. Fields are added, never renamed, within a version.
const HistorySchema = "plimsoll.history/v1"

// History is what the record has of a time.
type History struct {
	Schema     string             `json:"schema"`
	From       time.Time          `json:"from"`       // the begin of the time
	To         time.Time          `json:"to"`         // the end of the time
	Dir        string             `json:"dir"`        // the folder of the record
	Files      int                `json:"files"`      // files that were read
	Containers []HistoryContainer `json:"containers"` // those that were asked for
	// times in which nothing was recorded; in a minute that is in no gap and not listed, the container slept
	Gaps     []Gap    `json:"gaps"`
	Lost     int64    `json:"lost_periods"` // periods that are missing in the files
	Warnings []string `json:"warnings"`     // what is missing in the record, in words
	Minutely bool     `json:"-"`            // the text has a row for each minute

	Until time.Time `json:"-"` // what is later is not recorded, or not yet
}

// HistoryContainer is one container of a History.
type HistoryContainer struct {
	Cgroup    string          `json:"cgroup"`                 // the path of its control group
	ID        string          `json:"container_id,omitempty"` // of the container
	Namespace string          `json:"namespace,omitempty"`    // of its pod
	Pod       string          `json:"pod,omitempty"`          // the name of its pod
	Container string          `json:"container,omitempty"`    // its name in the pod
	Name      string          `json:"name"`                   // as in the status
	Figures   HistoryFigures  `json:"figures"`                // of the whole time
	Minutes   []HistoryMinute `json:"minutes"`                // of each minute in which it did not sleep
}

// HistoryMinute is one minute of a container. In a minute of a History that is in no gap and has none, it slept.
type HistoryMinute struct {
	Start time.Time `json:"start"` // the begin of the minute
	HistoryFigures
}

// HistoryFigures are those of one minute, or of the whole time.
type HistoryFigures struct {
	Limit     *float64      `json:"limit_cpus"`        // the declared limit, the last; `null`: none, or not known
	Quota     float64       `json:"most_quota_cpus"`   // the largest quota in force
	Mean      float64       `json:"mean_cpus"`         // CPUs used, the mean of the recorded time
	Peak      float64       `json:"peak_cpus"`         // CPUs used, the most in one period
	Used      time.Duration `json:"used_ns"`           // CPU time used
	Throttled time.Duration `json:"throttled_wall_ns"` // wall time throttled
	Throttles int64         `json:"throttles"`         // throttles that began
	Refills   int64         `json:"refills"`           // refills that had an effect
	Periods   int64         `json:"periods"`           // periods in which it did not sleep

	Requests *HistoryRequests `json:"requests,omitempty"` // absent without `run --requests`
	Waits    *HistoryWaits    `json:"waits,omitempty"`    // absent without `run --waits`
}

// HistoryWaits are the waits of a time that are over, in thread time.
type HistoryWaits struct {
	Wanted   time.Duration `json:"wanted_ns"`   // thread time that it ran, was runnable or throttled
	Received time.Duration `json:"received_ns"` // thread time that it ran
	// thread time that it waited, by cause as in diagnose; those that took any
	Causes map[Cause]time.Duration `json:"causes_ns"`
}

// Add adds those of another minute.
func (w *HistoryWaits) Add(o *HistoryWaits) *HistoryWaits {
	switch {
	case o == nil:
		return w
	case w == nil:
		w = &HistoryWaits{}
	}
	sum := HistoryWaits{Wanted: w.Wanted + o.Wanted, Received: w.Received + o.Received,
		Causes: map[Cause]time.Duration{}}
	for _, cause := range Causes() {
		if d := w.Causes[cause] + o.Causes[cause]; d > 0 {
			sum.Causes[cause] = d
		}
	}
	return &sum
}

// cells are the time waited, and what most of it was for.
func (w *HistoryWaits) cells() []string {
	if w == nil {
		return []string{"-", "-"}
	}
	var all, most time.Duration
	longest := "-"
	for _, cause := range Causes() {
		d := w.Causes[cause]
		if all += d; d > most {
			most, longest = d, string(cause)
		}
	}
	return []string{span(all), longest}
}

// HistoryRequests are those that a container answered in a time.
type HistoryRequests struct {
	Answered int64 `json:"answered"` // requests that were answered
	Doubtful int64 `json:"doubtful"` // requests on connections that carry several at a time; in no time
	// of one minute; over more, each is that of its worst minute; `null`: not known, or nothing came
	Response *Quantiles `json:"response"`
	// the 99th percentile of that minute without throttled time; 0: not known
	Unthrottled time.Duration `json:"unthrottled_p99_ns"`
	Time        time.Duration `json:"time_ns"`      // of all responses
	Throttled   time.Duration `json:"throttled_ns"` // of it: the container was throttled by its own limit
}

// Add adds those of another minute.
func (r *HistoryRequests) Add(o *HistoryRequests) *HistoryRequests {
	switch {
	case o == nil:
		return r
	case r == nil:
		sum := *o
		return &sum
	}
	sum := *r
	sum.Answered, sum.Doubtful, sum.Time, sum.Throttled =
		r.Answered+o.Answered, r.Doubtful+o.Doubtful, r.Time+o.Time, r.Throttled+o.Throttled
	switch {
	case o.Response == nil:
	case r.Response == nil:
		sum.Response, sum.Unthrottled = o.Response, o.Unthrottled
	default:
		sum.Response = &Quantiles{P50: max(r.Response.P50, o.Response.P50), P90: max(r.Response.P90, o.Response.P90),
			P99: max(r.Response.P99, o.Response.P99)}
		sum.Unthrottled = max(r.Unthrottled, o.Unthrottled)
	}
	return &sum
}

// cells are the number, the p99, and that without throttled time.
func (r *HistoryRequests) cells() []string {
	switch {
	case r == nil:
		return []string{"-", "-", "-"}
	case r.Response == nil:
		return []string{count(r.Answered + r.Doubtful), "-", "-"}
	}
	unthrottled := "-"
	if r.Unthrottled > 0 {
		unthrottled = span(r.Unthrottled)
	}
	return []string{count(r.Answered + r.Doubtful), span(r.Response.P99), unthrottled}
}

// Gap is a time in which nothing was recorded.
type Gap struct {
	From time.Time `json:"from"` // the begin of the gap
	To   time.Time `json:"to"`   // the end of the gap
}

// Text writes it for people.
func (h History) Text(w io.Writer) error {
	var p page
	p.printf("%s to %s, from %s in %s\n\n", instant(h.From), instant(h.To), several(h.Files, "file"), h.Dir)
	switch {
	case len(h.Containers) == 0:
		p.printf("no container used CPU time under a limit in this time, or nothing was recorded\n")
	case h.Minutely:
		for i, c := range h.Containers {
			if i > 0 {
				p.printf("\n")
			}
			h.minutes(&p, c)
		}
	default:
		h.summary(&p)
	}
	for i, g := range h.Gaps {
		if i == 0 {
			p.printf("\n")
		}
		p.printf("gap: nothing was recorded from %s to %s\n", exact(g.From), exact(g.To))
	}
	if h.Lost > 0 {
		p.printf("warning: %d periods are missing: the ring between the kernel and the recorder was full\n", h.Lost)
	}
	for _, one := range h.Warnings {
		p.printf("warning: %s\n", one)
	}
	return p.writeTo(w)
}

const historyLegend = "\nUSE: mean, in CPUs; PEAK: of one period; LOST: wall time throttled.\n"

const requestsLegend = "REQUESTS: that came; P99: their response time (of the worst minute); UNTHROTTLED: without " +
	"the time throttled.\n"

const waitsLegend = "WAITED: thread time waited for a CPU; MOST FOR: its longest cause.\n"

// historyTable writes rows; requests and waits only where they are measured.
func historyTable(p *page, first string, rows []historyRow) {
	answered := slices.ContainsFunc(rows, func(r historyRow) bool {
		return r.figures != nil && r.figures.Requests != nil
	})
	waited := slices.ContainsFunc(rows, func(r historyRow) bool { return r.figures != nil && r.figures.Waits != nil })
	head := []string{first, "LIMIT", "QUOTA", "USE", "PEAK", "THROTTLES", "LOST", "REFILLS"}
	if answered {
		head = append(head, "REQUESTS", "P99", "UNTHROTTLED")
	}
	if waited {
		head = append(head, "WAITED", "MOST FOR")
	}
	cells := [][]string{head}
	for _, r := range rows {
		line := append(make([]string, 0, len(head)), r.name)
		switch {
		case r.figures == nil:
			line = append(line, "gap")
		default:
			line = append(line, r.figures.cells()...)
			if answered {
				line = append(line, r.figures.Requests.cells()...)
			}
			if waited {
				line = append(line, r.figures.Waits.cells()...)
			}
		}
		for len(line) < len(head) {
			line = append(line, "")
		}
		cells = append(cells, line)
	}
	p.table(cells)
	p.printf(historyLegend)
	if answered {
		p.printf(requestsLegend)
	}
	if waited {
		p.printf(waitsLegend)
	}
}

// historyRow is one of a table; without figures, a gap.
type historyRow struct {
	name    string
	figures *HistoryFigures
}

func (h History) summary(p *page) {
	var rows []historyRow
	for i := range h.Containers {
		rows = append(rows, historyRow{h.Containers[i].Name, &h.Containers[i].Figures})
	}
	historyTable(p, "NAME", rows)
}

// minutes are the rows of a container, and those of the gaps between them.
func (h History) minutes(p *page, c HistoryContainer) {
	p.printf("%s (%s)\n", c.Name, c.Cgroup)
	var rows []historyRow
	gaps := h.Gaps
	for i := range c.Minutes {
		m := &c.Minutes[i]
		for len(gaps) > 0 && !gaps[0].From.After(m.Start) {
			rows = append(rows, historyRow{name: instant(gaps[0].From)})
			gaps = gaps[1:]
		}
		rows = append(rows, historyRow{instant(m.Start), &m.HistoryFigures})
	}
	historyTable(p, "MINUTE", rows)
}

// instant spells a time with its zone: the hour that daylight saving repeats is there twice.
func instant(t time.Time) string { return t.Format("2006-01-02 15:04 MST") }

// exact is an instant with its second, where it has one: agents begin and end at any time.
func exact(t time.Time) string {
	if t.Equal(t.Truncate(time.Minute)) {
		return instant(t)
	}
	return t.Format("2006-01-02 15:04:05.0 MST")
}

func (f HistoryFigures) cells() []string {
	limit := "-"
	if f.Limit != nil {
		limit = fmt.Sprintf("%.2f", *f.Limit)
	}
	return []string{limit, fmt.Sprintf("%.2f", f.Quota), fmt.Sprintf("%.2f", f.Mean), fmt.Sprintf("%.2f", f.Peak),
		count(f.Throttles), span(f.Throttled), count(f.Refills)}
}
