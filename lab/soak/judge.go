package main

import (
	"fmt"
	"slices"
	"time"
)

// quantity is something that an agent holds.
type quantity struct {
	name   string
	unit   unit
	of     func(sample) int64
	within *bounds // nil: not judged
	across *bounds
	exact  bool // it can be judged beside any load
}

// bounds are of a growth for each group that is started. A growth that is surely above most is a leak, but for slack:
// what has a bound may still fill up by so much while it is judged. Where the noise is so large that a leak of seen
// could hide in it, nothing was shown; 0: that is not asked. A life that is shorter than life is not judged.
type bounds struct {
	most, slack, seen float64
	life              time.Duration
}

// unit says how to print a number.
type unit string

// The units.
const (
	count  unit = ""
	memory unit = "bytes"
)

// quantities are what is judged. Nothing counted may grow by one in fifty groups, and a leak of one in two must show.
// Within a life up to one for each ten groups may come besides: busy groups that no job has met yet get an inotify
// watch with their first refill, and an entry in a map with their first run on another CPU.
//
// On a full machine an agent looks at its groups late and collects its memory late. So most of it goes up and down by
// more than a leak of seen. Descriptors do not: those of present groups are left out.
//
// Memory rises for the first four minutes of a life, whatever is started: in one that was watched from 23 to 35 MiB
// (RssAnon). So growth within a life under five minutes is not judged, and its most memory alone has a bound
// (result.go). From then on it goes up for ten minutes, by the rows of the record, and down when these are merged
// (internal/flight/disk, maxKept): by 10 MiB at most.
//
// The journal grows within a life until it is written anew (internal/journal, compactAbove): its size has a bound
// besides, and growth across lives hides in that.
func quantities(groups int) []quantity {
	within := &bounds{most: 0.02, slack: float64(groups) / 10, seen: 0.5}
	across := &bounds{most: 0.02, seen: 0.5}
	return []quantity{
		{"descriptors", count, func(s sample) int64 { return s.Files }, within, across, true},
		{"goroutines", count, func(s sample) int64 { return s.Goroutines }, within, across, true},
		{"threads", count, func(s sample) int64 { return s.Threads }, within, across, false},
		{"inotify watches", count, func(s sample) int64 { return s.Watches }, within, across, false},
		{"map entries", count, func(s sample) int64 { return s.Entries }, within, across, false},
		{"memory", memory, func(s sample) int64 { return s.RSS },
			&bounds{most: 1 << 10, slack: 10 << 20, seen: 32 << 10, life: 5 * time.Minute},
			&bounds{most: 1 << 10, seen: 32 << 10}, false},
		{"journal", memory, func(s sample) int64 { return s.Journal }, nil, &bounds{most: 100}, false},
	}
}

// verdict is what a growth says.
type verdict string

// The verdicts.
const (
	flat    verdict = "flat"
	grows   verdict = "grows"
	unclear verdict = "unclear"
	young   verdict = "not judged: the life is too short"
)

func (b bounds) judge(g growth) verdict {
	switch {
	case g.Known && g.Low*g.Span > b.most*g.Span+b.slack:
		return grows
	case !g.Known || b.seen > 0 && g.High >= b.seen:
		return unclear
	}
	return flat
}

// judged is the growth of one quantity, and what it says.
type judged struct {
	Quantity string  `json:"quantity"`
	Where    string  `json:"where"`
	Growth   growth  `json:"growth_per_group"`
	Verdict  verdict `json:"verdict"`
	unit     unit
	exact    bool
}

// met says whether the verdict will do. On a full machine what is unclear does, unless it can be judged there.
func (j judged) met(full bool) bool {
	return j.Verdict == flat || j.Verdict == young || j.Verdict == unclear && full && !j.exact
}

// cells are the growth for each 1,000 groups, its interval, and the verdict.
func (j judged) cells(full bool) []string {
	said := string(j.Verdict)
	if !j.met(full) {
		said += ", missed"
	}
	show := func(perGroup float64) string {
		if j.unit == memory {
			return fmt.Sprintf("%+.0f KiB", perGroup*1000/1024)
		}
		return fmt.Sprintf("%+.1f", perGroup*1000)
	}
	if !j.Growth.Known {
		return []string{show(j.Growth.Slope), "?", "?", said}
	}
	return []string{show(j.Growth.Slope), show(j.Growth.Low), show(j.Growth.High), said}
}

// The places where growth is looked for.
const (
	withinLife  = "within a life"
	acrossLives = "across lives"
)

// judge judges all quantities, beside so many groups. Life last is that of the agent that was not killed.
func judge(samples []sample, groups, last int) (list []judged) {
	for _, q := range quantities(groups) {
		if q.within != nil {
			life := aged(samples, last, 1.0/3)
			g := grow(blocks(points(life, q.of), lifeBlocks))
			v := q.within.judge(g)
			if !slices.ContainsFunc(life, func(s sample) bool { return s.Age >= q.within.life }) {
				v = young
			}
			list = append(list, judged{q.name, withinLife, g, v, q.unit, q.exact})
		}
		g := grow(across(samples, q.of, last))
		list = append(list, judged{q.name, acrossLives, g, q.across.judge(g), q.unit, q.exact})
	}
	return list
}

// lifeBlocks is how many blocks a life is cut into.
const lifeBlocks = 12

// across has a point for each agent that was killed: its last third.
func across(samples []sample, of func(sample) int64, last int) (list []point) {
	for life := range last {
		list = append(list, blocks(points(aged(samples, life, 2.0/3), of), 1)...)
	}
	return list
}

// aged are the steady samples of a life from a part of its length on. While the API server does not answer, the agent
// does not know new pods: what it holds is not comparable then.
func aged(samples []sample, life int, part float64) (list []sample) {
	var oldest time.Duration
	for _, s := range samples {
		if s.Life == life && s.Steady {
			list, oldest = append(list, s), max(oldest, s.Age)
		}
	}
	from := time.Duration(part * float64(oldest))
	return slices.DeleteFunc(list, func(s sample) bool { return s.Age < from })
}

func points(samples []sample, of func(sample) int64) (list []point) {
	for _, s := range samples {
		list = append(list, point{float64(s.Started), float64(of(s))})
	}
	return list
}
