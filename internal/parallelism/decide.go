package parallelism

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/internal/printable"
	"plimsoll/internal/report"
)

// worthwhile is the part of a burst that must find no thread before anything is said.
const worthwhile = 0.1

// Container is what is known of a container.
type Container struct {
	Limit     float64 // CPUs, as declared; +Inf: none
	Burst     Burst
	Processes []Process
	Unread    int // processes that were not looked at
}

// Decide compares the parallelism of a container's runtimes with its burst. It is nil where there is nothing to
// compare: no limit, or no process of a known runtime.
func Decide(c Container) *report.Parallelism {
	if math.IsInf(c.Limit, 1) {
		return nil
	}
	var known []Process
	var used, others time.Duration
	for _, p := range c.Processes {
		used += p.Used
		if p.Runtime == "" {
			others += p.Used
		} else {
			known = append(known, p)
		}
	}
	if len(known) == 0 {
		return nil
	}
	slices.SortStableFunc(known, func(a, b Process) int { return cmp.Compare(b.Used, a.Used) })
	v := &report.Parallelism{Limit: c.Limit, Burst: c.Burst.Most, BurstFrom: c.Burst.From, Proposed: c.Burst.Proposed,
		Others: len(c.Processes) - len(known), Unread: c.Unread, Runtimes: []report.RuntimeProcess{}}
	sum := 0
	for _, p := range known {
		one, n := judge(p)
		v.Runtimes = append(v.Runtimes, one)
		if n == 0 || sum < 0 {
			sum = -1
		} else {
			sum += n
		}
	}
	if sum < 0 || c.Unread > 0 {
		return v // not known
	}
	v.Threads = &sum
	if 2*others > used || c.Burst.Most-float64(sum) < worthwhile*c.Burst.Most {
		return v
	}
	v.Unusable = true
	v.Runtimes[0].Set = set(known[0], *v.Runtimes[0].Parallelism+c.Burst.threads()-sum)
	v.Verdict, v.Next = describe(v), next(v)
	return v
}

// Texts that a tenant chooses are shown in so many bytes.
const (
	longestName    = 32
	longestVersion = 40
)

// judge describes one process, and says how many CPUs it can use at once; 0: not known.
func judge(p Process) (report.RuntimeProcess, int) {
	d := p.degree()
	one := report.RuntimeProcess{PID: p.PID, Name: printable.Excerpt(p.Name, longestName), Runtime: p.Runtime,
		Version: printable.Excerpt(p.Go.Version, longestVersion), Threads: p.Threads, From: d.from, Strict: d.strict}
	if d.threads == 0 {
		return one, 0
	}
	if d.follows {
		one.From += ", as it is raised and lowered"
	}
	one.Parallelism = &d.threads
	return one, p.usable(d.threads)
}
