package main

import (
	"bytes"
	"fmt"
	"time"

	"plimsoll/internal/experiment"
)

// The aims of the project for what the agent costs on such a node.
const (
	aimCPU   = 0.01  // CPUs
	aimIdle  = 0.002 // CPUs, when nothing throttles, with throttle events
	aimRSS   = 30.0  // MiB
	aimRatio = 2.0   // to the bare loop
	aimOpen  = 1.0   // descriptors a group
)

// result is what was measured.
type result struct {
	size
	Seconds   float64    `json:"seconds"`
	CPUs      int        `json:"cpus"`
	Cgroup    string     `json:"cgroup"`
	Scenarios []scenario `json:"scenarios"`
	Refills   []refill   `json:"refills"`
	Idle      []crowd    `json:"idle_pods,omitempty"`
}

// scenario is what was measured in one.
type scenario struct {
	Name      string        `json:"name"`
	Polls     bool          `json:"polls"` // for throttles, else there are throttle events
	AimCPU    float64       `json:"aim_cpus"`
	Throttled int           `json:"throttled_containers"` // in the measured seconds
	Agent     rate          `json:"agent"`
	Bare      rate          `json:"bare_loop"`
	RSS       int64         `json:"rss_bytes"`
	Open      float64       `json:"descriptors_per_group"`
	TurnP99   time.Duration `json:"turn_p99_ns"`
	Turns     float64       `json:"turns_per_second"`
	Looks     float64       `json:"looks_per_second"` // readings of a group
	Writes    int64         `json:"writes"`
	NodeUsed  float64       `json:"node_used_cpus"`
}

// rate is what a process uses.
type rate struct {
	CPUs  float64 `json:"cpus"`
	Reads float64 `json:"reads_per_second"`
}

// since is the mean between two measurements of a process.
func (s spent) since(first spent) rate {
	span := s.at.Sub(first.at).Seconds()
	return rate{(s.cpu - first.cpu).Seconds() / span, float64(s.reads-first.reads) / span}
}

// ratio is the agent's CPU in units of the bare loop's.
func (s scenario) ratio() float64 { return experiment.Ratio(s.Agent.CPUs, s.Bare.CPUs) }

// Aims compare the result with the aims.
func (r *result) Aims() (list []experiment.Figure) {
	for _, s := range r.Scenarios {
		list = append(list, costs(s.title(), s.Agent, s.RSS, s.Open, s.AimCPU, aimRSS)...)
		list = append(list, experiment.Figure{Name: s.title() + ": agent CPU / bare loop", Value: s.ratio(),
			AtMost: aimRatio, Measured: s.Bare.CPUs > 0})
	}
	for i, c := range r.Idle {
		if c.Pods == crowdPods {
			list = append(list, costs(c.title(), c.Agent, c.RSS, c.Open, aimCrowdCPU, aimCrowdRSS)...)
		} else {
			list = append(list, costs(c.title(), c.Agent, c.RSS, c.Open, 0, 0)...)
		}
		if i > 0 {
			list = append(list, c.growth(r.Idle[i-1])...)
		}
	}
	return list
}

// costs are those of an agent.
func costs(of string, agent rate, rss int64, open, mostCPU, mostRSS float64) []experiment.Figure {
	return []experiment.Figure{
		{Name: of + ": agent CPU, % of one", Value: 100 * agent.CPUs, AtMost: 100 * mostCPU, Measured: true},
		{Name: of + ": agent memory, MiB", Value: float64(rss) / (1 << 20), AtMost: mostRSS, Measured: true},
		{Name: of + ": open descriptors a group", Value: open, AtMost: aimOpen, Measured: true},
	}
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	if len(r.Scenarios) > 0 {
		fmt.Fprintf(page, "%d pods, %d containers, %g s each, cgroup %s, %d CPUs\n", r.Pods, r.Containers, r.Seconds,
			r.Cgroup, r.CPUs)
		var t experiment.Table
		t.Row("|throttled|machine|bare loop|turn p99|turns|groups read|reads, agent|bare loop|writes")
		t.Row("scenario|containers|CPUs|CPU|since its start|a second|a second|a second|a second|")
		for _, s := range r.Scenarios {
			t.Row("%s|%d|%.2f|%.2f %%|%v|%.1f|%.0f|%.0f|%.0f|%d", s.title(), s.Throttled, s.NodeUsed, 100*s.Bare.CPUs,
				s.TurnP99.Round(time.Microsecond), s.Turns, s.Looks, s.Agent.Reads, s.Bare.Reads, s.Writes)
		}
		t.Write(page)
		page.WriteString(refillText(r.Refills))
	}
	if len(r.Idle) > 0 {
		fmt.Fprintf(page, "\nidle pods of one container, throttle events, %g s each, cgroup %s, %d CPUs\n", r.Seconds,
			r.Cgroup, r.CPUs)
		var t experiment.Table
		t.Row("pods|groups|turn p50|p99, since its start|status")
		for _, c := range r.Idle {
			t.Row("%d|%d|%v|%v|%v", c.Pods, c.Groups, c.TurnP50.Round(time.Microsecond),
				c.TurnP99.Round(time.Microsecond), c.Status.Round(time.Millisecond))
		}
		t.Write(page)
	}
	page.WriteByte('\n')
	experiment.WriteFigures(page, r.Aims())
}

// idleName is the scenario in which nothing throttles.
const idleName = "idle"

func (s scenario) title() string {
	if s.Polls {
		return s.Name + ", polling"
	}
	return s.Name + ", throttle events"
}
