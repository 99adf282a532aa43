package peers

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/internal/probe"
)

// How soon does an agent act?
//
// Problem: each agent says something else of itself, and most say nothing. What they have in common is what they do:
// they write the quota or the burst of the container, or of its pod. A write need not change the value: writing a burst
// anew refills the group. And not all that looks like a write is one: a program that opens a file to replace its
// content modifies it for inotify (fs/open.c, do_truncate), also where the kernel then refuses the new value.
//
// Approach: the kernel says when a throttle of one of these groups begins and ends (probe), and that one of their files
// was touched (inotify). A touch is a write if the file then holds another value, or if it falls into a throttle that
// ended before its period was over: only a write ends it so early. The first effect is the first write at or after the
// begin of the first throttle. One before it is none: a burst that was set when the container came did not keep the
// throttle from beginning. Where nothing throttles, or nobody writes, there is no time, and the table says which of the
// two. Beside it stands for how long the container stood still: what a first write is worth.
//
// Known limits: a throttle of a group with a large quota is foreseen by Plimsoll and does not begin, so the measured
// groups have a small one. A refill before a throttle is not seen. The time of a write is that at which inotify was
// read. What the kubelet writes counts as well, but it writes only when a pod comes or is resized,
// and neither happens meanwhile.

// Touch is a write of a group's quota or burst, or what looks like one.
type Touch struct {
	Group string // container or pod
	File  string
	At    time.Duration // CLOCK_MONOTONIC
	Value string        // that the file has afterwards
}

// Throttle is a while for which a group stood still.
type Throttle struct {
	Begin, End time.Duration
	Period     time.Duration // when the period ends in which it begins; 0: not known
}

// early is by how much a throttle that a write has ended ends before its period at least: the kernel's timers may be
// late, not early.
const early = time.Millisecond

// cut says whether a write has ended the throttle.
func (t Throttle) cut() bool { return t.End < t.Period-early }

// Throttles pairs the events of any number of groups, in order of their begins. A throttle that has not ended by the
// last instant is cut there.
func Throttles(events []probe.Event, last time.Duration) []Throttle {
	type key struct {
		group uint64
		since time.Duration
	}
	all := map[key]Throttle{}
	for _, e := range events {
		at := key{e.Group, e.Since}
		t, ok := all[at]
		if !ok {
			t = Throttle{Begin: e.Since, End: last}
		}
		switch e.Kind {
		case probe.Begin:
			t.Period = e.Facts.Expires
		case probe.End:
			t.End = min(e.At, last)
		default:
			continue
		}
		all[at] = t
	}
	var list []Throttle
	for _, t := range all {
		if t.Begin < last {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b Throttle) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	return list
}

// Stood is the wall time that at least one of the throttles covers: a container stands still whether it or its pod is
// throttled, and only once where both are. Throttles are in order of their begins.
func Stood(throttles []Throttle, from, to time.Duration) (sum time.Duration) {
	for _, t := range throttles {
		begin, end := max(t.Begin, from), min(t.End, to)
		if end > begin {
			sum += end - begin
			from = end
		}
	}
	return sum
}

// Effect is how soon an agent wrote.
type Effect struct {
	Throttled bool          `json:"throttled"` // a throttle began
	Written   bool          `json:"written"`   // a write followed
	After     time.Duration `json:"after_ns"`  // the begin of the first throttle
	What      string        `json:"what,omitempty"`
}

// FirstEffect is the first write at or after the begin of the first throttle. Throttles are in order of their begins,
// touches in that of their instants; before are the values that the files had, by group and file.
func FirstEffect(throttles []Throttle, touches []Touch, before map[[2]string]string) (e Effect) {
	if len(throttles) == 0 {
		return e
	}
	e.Throttled = true
	value := map[[2]string]string{}
	for _, t := range touches {
		file := [2]string{t.Group, t.File}
		was, known := value[file]
		if !known {
			was = before[file]
		}
		value[file] = t.Value
		write := t.Value != was || slices.ContainsFunc(throttles,
			func(s Throttle) bool { return s.cut() && s.Begin <= t.At && t.At <= s.End })
		if after := t.At - throttles[0].Begin; write && after >= 0 {
			e.Written, e.After, e.What = true, after, t.Group+" "+t.File
			return e
		}
	}
	return e
}
