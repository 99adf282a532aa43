package main

import (
	"bytes"
	"fmt"
	"time"

	"plimsoll/internal/experiment"
)

// The aims of the project for what the agent costs on such a node.
const (
	aimCPU   = 0.01     // CPUs
	aimIdle  = 0.002    // CPUs, when nothing throttles, with throttle events
	aimRSS   = 30 << 20 // bytes
	aimRatio = 2.0      // to the bare loop
	aimOpen  = 1.0      // descriptors a group
)

// result is what was measured.
type result struct {
	size
	Seconds   float64    `json:"seconds"`
	CPUs      int        `json:"cpus"`
	Cgroup    string     `json:"cgroup"`
	Scenarios []scenario `json:"scenarios"`
	Refills   []refill   `json:"refills"`
	LoadLine  sizing     `json:"load_line"`
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

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "missed"
}

// WriteText is the result for people.
func (r *result) WriteText(page *bytes.Buffer) {
	if len(r.Scenarios) > 0 {
		fmt.Fprintf(page, "%d pods, %d containers, %g s each, cgroup %s, %d CPUs\n", r.Pods, r.Containers, r.Seconds, r.Cgroup, r.CPUs)
		for _, s := range r.Scenarios {
			page.WriteString(s.text())
		}
		page.WriteString(refillText(r.Refills) + r.LoadLine.text(r.idle()))
	}
	page.WriteString(crowdText(r.Idle, r.Seconds, r.Cgroup, r.CPUs))
}

// idle is the CPU of the agent with throttle events when there are no throttles.
func (r *result) idle() float64 {
	for _, s := range r.Scenarios {
		if s.Name == idleName && !s.Polls {
			return s.Agent.CPUs
		}
	}
	return 0
}

// idleName is the scenario in which nothing throttles.
const idleName = "idle"

func (s scenario) title() string {
	if s.Polls {
		return s.Name + ", polling"
	}
	return s.Name + ", throttle events"
}

func aimed(name, value, aim string, met bool) string {
	return fmt.Sprintf("  %-14s %-14s aim: at most %-12s %s\n", name, value, aim, verdict(met))
}

func (s scenario) text() string {
	plain := func(name, format string, args ...any) string {
		return fmt.Sprintf("  %-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	return fmt.Sprintf("\n%s (%d containers throttled, the machine used %.2f CPUs)\n", s.title(), s.Throttled, s.NodeUsed) +
		aimed("agent CPU", fmt.Sprintf("%.2f %%", 100*s.Agent.CPUs), fmt.Sprintf("%g %% of one", 100*s.AimCPU), s.Agent.CPUs <= s.AimCPU) +
		aimed("agent memory", fmt.Sprintf("%.1f MiB", float64(s.RSS)/(1<<20)), fmt.Sprintf("%d MiB", aimRSS>>20), s.RSS <= aimRSS) +
		aimed("agent : bare", fmt.Sprintf("%.2f", s.ratio()), fmt.Sprintf("%g", aimRatio), s.Bare.CPUs > 0 && s.ratio() <= aimRatio) +
		aimed("descriptors", fmt.Sprintf("%.2f a group", s.Open), fmt.Sprintf("%g", aimOpen), s.Open <= aimOpen) +
		plain("bare loop CPU", "%.2f %%", 100*s.Bare.CPUs) +
		plain("turn, p99", "%v (of the turns since its start)", s.TurnP99.Round(time.Microsecond)) +
		plain("a second", "%.1f turns, %.0f groups read; reads: agent %.0f, bare loop %.0f", s.Turns, s.Looks, s.Agent.Reads, s.Bare.Reads) +
		plain("writes", "%d", s.Writes)
}
