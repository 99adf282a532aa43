package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
	"plimsoll/lab/frame"
)

// The aims of the project.
const (
	aimThrottles = 500
	aimP50       = 0.5 // ms, on a machine that is not full
	aimP99       = 5   // ms
	aimRatio     = 20
	aimBegun     = 0.01 // of the throttles, where the agent has events ahead
)

// foreseen is the quota from which on the kernel's programs foresee throttles (probe/bpf/ahead.h).
const foreseen = 20 * time.Millisecond

// result is what was measured.
type result struct {
	frame.Machine
	Groups    int             `json:"groups"`
	Quota     time.Duration   `json:"quota_ns"`
	Every     time.Duration   `json:"every_ns"` // between two jobs of a group
	Seconds   float64         `json:"seconds"`
	Policy    strategy.Policy `json:"policy"`
	Seed      uint64          `json:"seed"`
	Behind    bool            `json:"cpu_idle"` // the offline work of the full machine is kept behind
	Scenarios []scenario      `json:"scenarios"`
}

// scenario is both agents under the same conditions.
type scenario struct {
	Loaded bool    `json:"loaded"`
	Events outcome `json:"subscribed"`
	Polled outcome `json:"polled"`
}

func (s scenario) name() string {
	if s.Loaded {
		return "loaded"
	}
	return "unloaded"
}

// outcome is what came of one agent.
type outcome struct {
	Subscribed bool   `json:"subscribed"` // to throttle events
	Why        string `json:"why,omitempty"`
	Lost       lost   `json:"lost"`    // by the events of the kernel
	Endable    lost   `json:"endable"` // those of them that are not at the cap
	Tally      tally  `json:"tally"`   // all, by the kernel's sums
	Refills    int64  `json:"refills"`
	// from the begin of a throttle to the end of the write, as the agent says
	DelayP50      time.Duration `json:"delay_p50_ns"`
	DelayP99      time.Duration `json:"delay_p99_ns"`
	LostPerSecond float64       `json:"lost_per_second"` // wall time, of all groups together
	Writes        float64       `json:"writes_per_second"`
	AgentCPU      float64       `json:"agent_cpus"`
	GroupsCPU     float64       `json:"groups_cpus"`
	Node          report.Node   `json:"node"`
}

// Aims compare the result with the aims.
func (r *result) Aims() []experiment.Figure {
	var list []experiment.Figure
	add := func(name string, value, atLeast, atMost float64, measured bool) {
		list = append(list, experiment.Figure{Name: name, Value: value, AtLeast: atLeast, AtMost: atMost,
			Measured: measured})
	}
	for _, s := range r.Scenarios {
		subscribed, polled := s.Events.Lost, s.Polled.Lost
		add("throttles, polled, "+s.name(), float64(polled.Throttles), aimThrottles, 0, true)
		if r.Quota < foreseen {
			add("throttles, subscribed, "+s.name(), float64(subscribed.Throttles), aimThrottles, 0, s.Events.Subscribed)
		} else {
			add("throttles that begin, subscribed / polled, "+s.name(),
				experiment.Ratio(float64(subscribed.Throttles), float64(polled.Throttles)), 0, aimBegun,
				s.Events.Subscribed && polled.Throttles > 0)
		}
		if !s.Loaded {
			add("ms from begin to write, p50, "+s.name(), experiment.Milliseconds(s.Events.DelayP50), 0, aimP50,
				s.Events.Refills > 0)
			add("ms from begin to write, p99, "+s.name(), experiment.Milliseconds(s.Events.DelayP99), 0, aimP99,
				s.Events.Refills > 0)
		}
		both := s.Events.Subscribed && subscribed.Mean > 0 && subscribed.Median > 0
		compare := func(what, of string, subscribed, polled lost, atLeast float64) {
			name := fmt.Sprintf("time lost a throttle%s, %s, polled / subscribed, %s", what, of, s.name())
			add(name, experiment.Ratio(polled.of(of), subscribed.of(of)), atLeast, 0, both && subscribed.Throttles > 0)
		}
		for _, of := range measures() {
			compare(" that may be ended", of, s.Events.Endable, s.Polled.Endable, aimRatio)
		}
		compare("", measures()[0], subscribed, polled, aimRatio)
		for _, of := range measures()[1:] { // those at the cap last to their period's end under any agent
			compare("", of, subscribed, polled, 0)
		}
		add("time lost in all, polled / subscribed, "+s.name(), experiment.Ratio(polled.Total, subscribed.Total), 0, 0,
			both)
	}
	return list
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d groups of %v in 100 ms, policy %s, each with a job of %v of CPU time every %v; %g s a run, "+
		"seed %d, cgroup %s, %d CPUs\n", r.Groups, r.Quota, r.Policy, frame.Burn(r.Quota), r.Every, r.Seconds, r.Seed,
		r.Cgroup, r.CPUs)
	r.table(page)
	frame.WriteAims(page, r.conclude(), r.Aims())
}

func (r *result) table(page *bytes.Buffer) {
	var t experiment.Table
	t.Row("||begin to write|||lost a throttle|||that may be ended|lost a throttle|||lost|writes|agent")
	t.Row("machine|agent|p50|p99|throttles|median|p99|mean|throttles|median|p99|mean|a second|a second|CPU")
	for _, s := range r.Scenarios {
		for _, o := range []outcome{s.Events, s.Polled} {
			p50, p99 := "-", "-"
			if o.Refills > 0 {
				p50, p99 = span(o.DelayP50), span(o.DelayP99)
			}
			t.Row("%s|%s|%s|%s|%s|%s|%s|%.1f|%.2f %%", s.name(), o.way(), p50, p99, o.Lost.cells(), o.Endable.cells(),
				span(experiment.Seconds(o.LostPerSecond)), o.Writes, 100*o.AgentCPU)
		}
	}
	t.Write(page)
	fmt.Fprintln(page, "Lost: wall time from a throttle's begin until a task of the group ran again; a second: of "+
		"all groups together.\nThat may be ended: all but those at the cap, where the group has used all that the "+
		"strategy allows in the period (three quotas).")
}

func (o outcome) way() string {
	if o.Subscribed {
		return "subscribed"
	}
	return "polling"
}

func (l lost) cells() string {
	return fmt.Sprintf("%d|%s|%s|%s", l.Throttles, span(l.Median), span(l.P99), span(l.Mean))
}

func span(d time.Duration) string { return fmt.Sprintf("%.3g ms", experiment.Milliseconds(d)) }

// conclude says what has to be known beside the figures.
func (r *result) conclude() []string {
	var say []string
	for _, s := range r.Scenarios {
		if s.Loaded {
			say = append(say, r.company())
		}
		for _, o := range []outcome{s.Events, s.Polled} {
			name := fmt.Sprintf("%s, %s", s.name(), o.way())
			if n := o.Tally.Ends - int64(o.Lost.Throttles); n != 0 || o.Tally.Dropped != 0 {
				say = append(say, fmt.Sprintf("%s: the kernel's sums say %d throttles, %s lost a second, %d events "+
					"dropped.", name, o.Tally.Ends,
					span(time.Duration(o.Tally.Wall.Seconds()/r.Seconds*float64(time.Second))), o.Tally.Dropped))
			}
			if o.Node.State != "idle" {
				say = append(say, fmt.Sprintf("Careful: %s: the node was %s (%.2f CPUs of a threshold of %.2f): the "+
					"guard grants nothing then.", name, o.Node.State, o.Node.Used, o.Node.Threshold))
			}
		}
		if !s.Events.Subscribed {
			say = append(say, fmt.Sprintf("Careful: %s: the agent was not subscribed to throttle events: %s", s.name(),
				s.Events.Why))
		}
	}
	return say
}

// company says what the full machine was full of.
func (r *result) company() string {
	if r.Behind {
		return "Loaded: every CPU is kept busy by offline work, declared class BE and kept behind by the kernel " +
			"(cpu.idle); beside ordinary work as much the guard would grant nothing."
	}
	return "Loaded: every CPU is kept busy by offline work, which this kernel cannot keep behind (cpu.idle, 5.15): " +
		"the guard grants nothing beside it."
}

// lengths are those of the throttles that ended in a window, of all and of those that an agent may end,
// in order of length.
func lengths(events []probe.Event, quota, from, to time.Duration) (all, endable []time.Duration) {
	type one struct {
		group uint64
		since time.Duration
	}
	capped := map[one]bool{}
	for _, e := range events {
		at := one{e.Group, e.Since}
		switch {
		case e.Kind == probe.Begin:
			capped[at] = frame.AtCap(e.Facts, frame.Cap(quota))
		case e.Kind == probe.End && e.At >= from && e.At < to:
			all = append(all, e.At-e.Since)
			if !capped[at] {
				endable = append(endable, e.At-e.Since)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(endable)
	return all, endable
}

// lost is the wall time that throttles cost.
type lost struct {
	Throttles int           `json:"throttles"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
	Mean      time.Duration `json:"mean_ns"`
	Total     time.Duration `json:"total_ns"` // of all groups
}

// sum expects lengths in order.
func sum(sorted []time.Duration) lost {
	l := lost{Throttles: len(sorted), Median: frame.Quantile(sorted, 0.5), P99: frame.Quantile(sorted, 0.99)}
	for _, d := range sorted {
		l.Total += d
	}
	if len(sorted) > 0 {
		l.Mean = l.Total / time.Duration(len(sorted))
	}
	return l
}

// measures are the names of what a figure can be made of.
func measures() []string { return []string{"median", "p99", "mean"} }

func (l lost) of(measure string) time.Duration {
	switch measure {
	case "median":
		return l.Median
	case "p99":
		return l.P99
	}
	return l.Mean
}

// tally is what the kernel itself adds up of the groups, whether events are lost or not.
type tally struct {
	Ends    int64         `json:"throttles"`
	Wall    time.Duration `json:"total_ns"`
	Dropped int64         `json:"dropped"`
}

func count(p *probe.Probe, groups []uint64) (t tally) {
	for _, id := range groups {
		g, _ := p.Totals(id) // all are watched
		t.Ends += g.Ends
		t.Wall += g.Wall
		t.Dropped += g.Dropped
	}
	return t
}

func (t tally) since(first tally) tally {
	return tally{t.Ends - first.Ends, t.Wall - first.Wall, t.Dropped - first.Dropped}
}
