package main

import (
	"bytes"
	"fmt"
	"text/tabwriter"
	"time"

	"plimsoll/internal/strategy"
	"plimsoll/lab/experiment"
)

// most finds the largest number up to limit for which fits is true, given that it is true up to some number and false
// from there on: by doubling, then by halving. 0 when not even one fits.
func most(limit int, fits func(n int) (bool, error)) (int, error) {
	good, bad := 0, limit+1
	for good+1 < bad {
		n := (good + bad) / 2
		if bad == limit+1 { // no upper end is known yet
			n = min(max(1, 2*good), limit)
		}
		ok, err := fits(n)
		if err != nil {
			return 0, err
		}
		if ok {
			good = n
		} else {
			bad = n
		}
	}
	return good, nil
}

// step is what was measured with so many replicas.
type step struct {
	Replicas  int           `json:"replicas"`
	Limit     float64       `json:"limit_cpus"` // of each
	P99       time.Duration `json:"p99_ns"`
	Requests  int           `json:"requests"`
	Errors    int           `json:"errors"`
	Throttled float64       `json:"throttled_ratio"` // of all replicas together
}

// fits says whether the bound is kept. A request without an answer did not keep it.
func (s step) fits(bound time.Duration) bool {
	return s.Requests > 0 && s.P99 <= bound && 100*s.Errors <= s.Requests
}

// side is one policy's part of the result.
type side struct {
	Policy strategy.Policy `json:"policy"`
	Most   int             `json:"most_replicas"`
	Steps  []step          `json:"steps"`
}

// otherCause says so when it was not throttling that broke the bound.
func (s side) otherCause(bound time.Duration) string {
	for _, step := range s.Steps {
		if step.Replicas == s.Most+1 && !step.fits(bound) && step.Throttled < hardly {
			return fmt.Sprintf(" It was not throttling that ended it (%.1f %% of the periods with %d replicas): the CPUs themselves were busy.",
				100*step.Throttled, step.Replicas)
		}
	}
	return ""
}

// hardly any of the periods are throttled below this ratio.
const hardly = 0.01

// result is what the search found.
type result struct {
	*settings
	CPUs    int     `json:"cpus"`
	Use     float64 `json:"use_cpus"`            // of a replica
	Rate    float64 `json:"requests_per_second"` // of a replica
	Bound   float64 `json:"bound_ms"`            // on p99
	Without side    `json:"without"`
	With    side    `json:"with"`
}

// WriteText writes what the search found for people.
func (r *result) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "Replicas on %d CPUs; each uses %.2f CPUs (%v a request, %.1f requests a second), p99 must be at most %v.\n",
		r.cpus, r.use, r.work, r.Rate, r.bound)
	fmt.Fprintf(page, "The limits of all replicas together are the machine's %d CPUs. %v of load for each row.\n\n", r.cpus, r.step)
	rows := [][]string{{"policy", "replicas", "limit of each", "p99", "throttled", "requests", "errors", "bound kept"}}
	for _, side := range []side{r.Without, r.With} {
		for _, s := range side.Steps {
			kept := "no"
			if s.fits(r.bound) {
				kept = "yes"
			}
			rows = append(rows, []string{string(side.Policy), fmt.Sprint(s.Replicas), fmt.Sprintf("%.3f", s.Limit),
				fmt.Sprintf("%.0f ms", experiment.Milliseconds(s.P99)), fmt.Sprintf("%.1f %%", 100*s.Throttled),
				fmt.Sprint(s.Requests), fmt.Sprint(s.Errors), kept})
		}
	}
	experiment.Columns(page, tabwriter.AlignRight, rows)
	fmt.Fprintf(page, "\n%s\n", r.conclusion())
}

// conclusion says what the search means in cores, also when it means nothing.
func (r *result) conclusion() string {
	text := fmt.Sprintf("Most replicas within the bound: %d with policy %s, %d with %s.", r.Without.Most, r.Without.Policy, r.With.Most, r.With.Policy)
	switch {
	case r.With.Most == 0 && r.Without.Most == 0:
		return text + " The bound is too tight for this machine and this work."
	case r.With.Most <= r.Without.Most:
		return text + " Plimsoll did not raise the density in this run." + r.Without.otherCause(r.bound)
	case r.Without.Most == 0:
		return text + " Without Plimsoll, no number of replicas kept the bound."
	}
	need := float64(r.With.Most) * float64(r.cpus) / float64(r.Without.Most)
	text += fmt.Sprintf(" Without Plimsoll %d replicas, with the limit that each needs, would take %.2f CPUs instead of %d: %.2f CPUs saved.",
		r.With.Most, need, r.cpus, need-float64(r.cpus))
	if r.With.Most == r.settings.most() {
		text += " No larger number was tried: it would fill the machine."
	}
	return text
}

// limitOf is the limit of each of so many replicas.
func (s *settings) limitOf(replicas int) float64 {
	return experiment.Limited(float64(s.cpus) / float64(replicas)).CPUs()
}
