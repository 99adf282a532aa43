package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/figure"
	"plimsoll/internal/flight"
	"plimsoll/internal/flight/disk"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
)

// historyFlags are what a person may choose about a history.
type historyFlags struct {
	from, to, dir string
	figure        string
	json          bool
}

func historyCommand(g *globals) *cobra.Command {
	f := &historyFlags{}
	cmd := &cobra.Command{
		Use:   "history [CONTAINER]",
		Short: "Show from the record what containers did: per minute use, peak, time lost, refills",
		Long: `Show what the record has of a time: for each container how much CPU it used, the most in one period, the wall time
lost to throttling, and refills; with CONTAINER the same for each minute. CONTAINER is a name as in ` + "`plimsoll status`" + `,
a part of one, a container's ID or the path of a control group.

--from and --to are a time of today (03:12), a time with a date ("2026-11-25 03:12"), RFC 3339, or how long ago (90m). They
are in the time zone of this program. Without them it is the last hour. docs/RECORD.md documents the files.`,
		Example: `  plimsoll history
  plimsoll history default/web/nginx --from 03:00 --to 03:30
  plimsoll history default/web/nginx --figure night.svg
  plimsoll history --from 2026-11-25T03:00:00Z --to 2026-11-25T04:00:00Z --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			from, to, err := f.span(now)
			if err != nil {
				return err
			}
			bar := progress.Start(bars(cmd), "reading", 0)
			h, err := readHistory(g.recordDir(cmd.Flags(), f.dir), from, to, now, strings.Join(args, ""))
			bar.Stop()
			if err != nil {
				return err
			}
			if f.figure != "" {
				if err := f.draw(h); err != nil {
					return err
				}
			}
			return show(cmd.OutOrStdout(), h, f.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "begin of the time to show; without it, an hour before --to")
	flags.StringVar(&f.to, "to", "", "end of the time to show; without it, now")
	flags.StringVar(&f.figure, "figure", "",
		"draw the container that lost most, minute by minute, into this file, .svg or .png")
	recordDirFlag(flags, &f.dir, "")
	jsonFlag(cmd, &f.json)
	return cmd
}

// draw draws a history into the file that is asked for.
func (f *historyFlags) draw(h report.History) error {
	if err := figure.Known(f.figure); err != nil {
		return misusef("--figure %s: %w", f.figure, err)
	}
	if len(h.Containers) == 0 {
		return fmt.Errorf("--figure %s: no container used CPU time under a limit in this time, or nothing was recorded",
			f.figure)
	}
	return draw(f.figure, historyFigure(h))
}

// span is the time that is asked for.
func (f *historyFlags) span(now time.Time) (from, to time.Time, err error) {
	to = now
	if f.to != "" {
		if to, err = moment(f.to, now); err != nil {
			return from, to, misusef("--to: %w", err)
		}
	}
	from = to.Add(-time.Hour)
	if f.from != "" {
		if from, err = moment(f.from, now); err != nil {
			return from, to, misusef("--from: %w", err)
		}
	}
	if !from.Before(to) {
		return from, to, misusef("--from %s is not before --to %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}

// moment reads a time as a person writes it, in the zone of now. One of the day that is still to come was yesterday.
func moment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		on := func(day time.Time) (time.Time, error) {
			return local(text, day.Format(time.DateOnly)+" "+t.Format(time.TimeOnly), time.DateTime, now.Location())
		}
		today, err := on(now)
		if today.After(now) && t.Format(time.TimeOnly) > now.Format(time.TimeOnly) { // else it is missing today
			return on(now.AddDate(0, 0, -1))
		}
		return today, err
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateTime, "2006-01-02T15:04:05",
		time.DateOnly} {
		if _, err := time.Parse(layout, text); err == nil {
			return local(text, text, layout, now.Location())
		}
	}
	return time.Time{}, withHint(fmt.Errorf("%.60q is not a time", text),
		`such as 03:12, "2026-11-25 03:12", 2026-11-25T03:12:00Z, or 90m for 90 minutes ago`)
}

// local reads a time in a zone. Where clocks are set forward a time is missing,
// and where they are set back one is there twice: the error comes with the first.
func local(said, text, layout string, zone *time.Location) (time.Time, error) {
	clock, err := time.Parse(layout, text)
	if err != nil {
		return clock, err
	}
	t, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		return t, err
	}
	const hint = "say it with the offset, such as 2026-11-25T03:12:00+01:00"
	text = clock.Format(layout) // with all digits, unlike a person
	if t.Format(layout) != text {
		return t, withHint(fmt.Errorf("%q is not on the clock of %s: it is set forward then", said, zone), hint)
	}
	for _, shift := range []time.Duration{-time.Hour, time.Hour, -30 * time.Minute, 30 * time.Minute} {
		if other := t.Add(shift); other.Format(layout) == text && layout != time.DateOnly {
			if other.Before(t) {
				t = other
			}
			return t, withHint(fmt.Errorf("%q is there twice on the clock of %s: it is set back then", said, zone),
				hint)
		}
	}
	return t, nil
}

// readHistory reads what the record has of the containers that are meant; "" for all.
func readHistory(dir string, from, to, now time.Time, who string) (report.History, error) {
	r, err := disk.Select(dir, from, to, withoutPeriods)
	if err != nil {
		return report.History{}, noRecord(err)
	}
	h := historyOf(r, from, to, now, who)
	h.Dir = dir
	if who != "" && len(h.Containers) == 0 && len(r.Rows) > 0 {
		return h, withHint(fmt.Errorf("the record of this time has no container %q", who),
			"`plimsoll history` lists those that it has; --from and --to choose another time")
	}
	return h, nil
}

// withoutPeriods keeps a row without what it has of each period: the figures need none of it, and two days of 250
// containers have 2 GB of it.
func withoutPeriods(m *flight.Minute) bool {
	m.Used, m.ThrottledMs, m.RefillAt, m.QuotaAt = nil, nil, nil, nil
	return true
}

// noRecord explains why a record cannot be read.
func noRecord(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return withHint(fmt.Errorf("there is no record: %w", err),
			"`plimsoll run` writes it, where the kernel has throttle events: see `plimsoll status`; --record-dir "+
				"says where")
	case errors.Is(err, fs.ErrPermission):
		return withHint(err, "the record is for root: use sudo")
	}
	return err
}

// historyOf makes figures of rows.
func historyOf(r disk.Range, from, to, now time.Time, who string) report.History {
	h := report.History{Schema: report.HistorySchema, From: from, To: to, Files: r.Files, Lost: r.Lost,
		Containers: []report.HistoryContainer{},
		Warnings:   []string{}, Minutely: who != "", Until: from}
	if n := len(r.Covered); n > 0 {
		h.Until = time.UnixMilli(r.Covered[n-1].To)
	}
	if now.Sub(h.Until) <= onDisk {
		to = h.Until
	}
	h.Gaps = gaps(r.Covered, from, to)
	for _, err := range r.Skipped {
		h.Warnings = append(h.Warnings, "a file is left out: "+err.Error())
	}
	chosen := meant(r.Rows, who)
	places := map[string]int{}
	for i := range r.Rows {
		m := &r.Rows[i]
		if who != "" && !chosen[m.Cgroup] {
			continue
		}
		at, known := places[m.Cgroup]
		if !known {
			at = len(h.Containers)
			places[m.Cgroup] = at
			h.Containers = append(h.Containers, report.HistoryContainer{Cgroup: m.Cgroup,
				Minutes: []report.HistoryMinute{}})
		}
		c := &h.Containers[at]
		c.ID, c.Namespace, c.Pod, c.Container, c.Name = m.ContainerID, m.Namespace, m.Pod, m.Container, m.Name()
		c.Minutes = append(c.Minutes, report.HistoryMinute{Start: time.UnixMilli(m.Start).In(from.Location()),
			HistoryFigures: figuresOf(m, r.Covered.Within(m.Start, m.Start+time.Minute.Milliseconds()).Length())})
	}
	for i := range h.Containers {
		c := &h.Containers[i]
		slices.SortStableFunc(c.Minutes, func(a, b report.HistoryMinute) int { return a.Start.Compare(b.Start) })
		c.Minutes = once(c.Minutes)
		c.Figures = sum(c.Minutes, r.Covered.Length())
	}
	slices.SortFunc(h.Containers, func(a, b report.HistoryContainer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return h
}

// meant are the groups that an argument names: by their name, path or ID, or else by a part of the name.
func meant(rows []flight.Minute, who string) map[string]bool {
	exact, part := map[string]bool{}, map[string]bool{}
	for i := range rows {
		m := &rows[i]
		switch name := m.Name(); {
		case who == name || who == m.Cgroup || who != "" && who == m.ContainerID:
			exact[m.Cgroup] = true
		case strings.Contains(name, who):
			part[m.Cgroup] = true
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return part
}

// figuresOf are those of one minute, so much of which is recorded.
func figuresOf(m *flight.Minute, recorded time.Duration) report.HistoryFigures {
	period := float64(max(m.PeriodUs, 1))
	used := time.Duration(m.UsedUs) * time.Microsecond
	if recorded <= 0 { // the clock was set
		recorded = time.Minute
	}
	f := report.HistoryFigures{Mean: float64(used) / float64(recorded), Peak: float64(m.PeakUs) / period,
		Used: used, Throttled: time.Duration(m.ThrottledUs) * time.Microsecond,
		Throttles: int64(m.Throttles), Refills: int64(m.Refills), Periods: int64(m.Periods)}
	if m.LimitUs > 0 {
		limit := float64(m.LimitUs) / period
		f.Limit = &limit
	}
	if q := m.Requests; q != nil {
		f.Requests = requestsOf(q)
	}
	if w := m.Waits; w != nil {
		f.Waits = waitsOf(w)
	}
	for _, q := range m.QuotaUs {
		f.Quota = max(f.Quota, float64(q)/period)
	}
	return f
}

// requestsOf are those of a minute.
func requestsOf(q *flight.Requests) *report.HistoryRequests {
	us := func(n int64) time.Duration { return time.Duration(max(n, 0)) * time.Microsecond }
	r := &report.HistoryRequests{Answered: q.Answered, Doubtful: q.Doubtful, Unthrottled: us(q.UnthrottledP99Us),
		Time: us(q.ResponseUs), Throttled: us(q.ThrottledUs)}
	if q.P99Us >= 0 {
		r.Response = &report.Quantiles{P50: us(q.P50Us), P90: us(q.P90Us), P99: us(q.P99Us)}
	}
	return r
}

// waitsOf are those of a minute.
func waitsOf(w *flight.Waits) *report.HistoryWaits {
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	h := &report.HistoryWaits{Wanted: us(w.Wanted), Received: us(w.Received), Causes: map[report.Cause]time.Duration{}}
	for cause, column := range w.Causes() {
		if *column > 0 {
			h.Causes[report.Cause(cause)] = us(*column)
		}
	}
	return h
}

// once makes one of the rows of one minute: the agent was restarted in it, the clock was set back, or the period
// changed. Each mean is over what is recorded of the whole minute, so that they add up.
func once(rows []report.HistoryMinute) (list []report.HistoryMinute) {
	for _, m := range rows {
		n := len(list)
		if n == 0 || !list[n-1].Start.Equal(m.Start) {
			list = append(list, m)
			continue
		}
		mean := list[n-1].Mean + m.Mean
		list[n-1].HistoryFigures = sum([]report.HistoryMinute{list[n-1], m}, 0)
		list[n-1].Mean = mean
	}
	return list
}

// sum is that of minutes. The mean is over the time that is recorded, in part of which the container may have slept.
func sum(list []report.HistoryMinute, recorded time.Duration) (all report.HistoryFigures) {
	for _, m := range list {
		all.Used, all.Throttled = all.Used+m.Used, all.Throttled+m.Throttled
		all.Throttles, all.Refills, all.Periods =
			all.Throttles+m.Throttles, all.Refills+m.Refills, all.Periods+m.Periods
		all.Peak, all.Quota = max(all.Peak, m.Peak), max(all.Quota, m.Quota)
		all.Requests, all.Waits = all.Requests.Add(m.Requests), all.Waits.Add(m.Waits)
		if m.Limit != nil {
			all.Limit = m.Limit
		}
	}
	if recorded > 0 {
		all.Mean = float64(all.Used) / float64(recorded)
	}
	return all
}

// onDisk is how long it takes until what the agent does now is on disk: until then a history does not miss it.
const onDisk = 2 * time.Minute

// gaps are what of a time is not covered, from the begin of its first minute on.
func gaps(covered flight.Spans, from, to time.Time) []report.Gap {
	list := []report.Gap{}
	at := from.Truncate(time.Minute)
	gap := func(end time.Time) {
		if end.Sub(at) > 0 {
			list = append(list, report.Gap{From: at, To: end.In(from.Location())})
		}
	}
	for _, s := range covered.Within(at.UnixMilli(), math.MaxInt64) {
		gap(time.UnixMilli(s.From))
		at = time.UnixMilli(s.To).In(from.Location())
	}
	gap(to)
	return list
}
