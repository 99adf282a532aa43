package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/report"
)

// Lost resizes while the agent runs.
//
// Problem: the owner's last writes are compared with the files at the end. A resize that was lost before, and was
// followed by another, is not found that way. While the agent runs, a file may rightly hold a value of the agent's.
//
// Approach: the agent's status says of each group what it takes for the limit, what is in force, and whether that
// is a value of its own. Once spec, file and status of a resize have agreed for as long as the agent may need to
// learn of it, the agent's limit must be the owner's, and what is in force that limit or the agent's own value.
//
// Known limits: a resize that is followed by another within that time is not judged, nor one shortly after the API
// server was away.

// patience is how long the agent may need after an outage, or after its start: settling, then three seconds until it
// takes a declared limit for lost (ledger, lostAfter), and its back-off.
const patience = 15 * time.Second

// lostLimits says of each group of which the agent has another limit than the owner wrote what is wrong.
func lostLimits(s report.Status, owners []limited, before time.Time) map[string]string {
	known := make(map[string]report.Container, len(s.Containers))
	for _, c := range s.Containers {
		known[c.Cgroup] = c
	}
	lost := map[string]string{}
	for _, o := range owners {
		if o.settled.IsZero() || o.settled.After(before) {
			continue
		}
		c, ok := known[o.group]
		switch {
		case !ok:
			lost[o.group] = "the agent does not know it"
		case c.Limit != o.quota:
			lost[o.group] = fmt.Sprintf("the owner wrote %v, the agent takes %v for the limit (%s)", o.quota, c.Limit,
				c.Why)
		case !c.Quota.Changed && c.Quota.InForce != o.quota:
			lost[o.group] = fmt.Sprintf("the owner wrote %v, in force is %v, which is not the agent's (%s)", o.quota,
				c.Quota.InForce, c.Quota.Problem)
		}
	}
	return lost
}

// suspect counts how many samples in a row have said of a group that its limit is lost, whatever they said of it.
func suspect(before map[string]int, lost map[string]string) map[string]int {
	suspects := map[string]int{}
	for group := range lost {
		suspects[group] = before[group] + 1
	}
	return suspects
}

// confirmed lists the groups of which a second sample in a row says so, and what it says.
func confirmed(suspects map[string]int, lost map[string]string) (list []string) {
	for _, group := range slices.Sorted(maps.Keys(lost)) {
		if suspects[group] == 2 {
			list = append(list, group+": "+lost[group])
		}
	}
	return list
}

// limited is a group with the quota that its owner wrote last.
type limited struct {
	group   string
	quota   time.Duration
	settled time.Time // since when the spec, the file and the status say so; zero: they do not
}

// all are all groups, pods first.
func (o *owner) all() (list []limited) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.pods {
		var since time.Time
		whole := true
		for _, c := range p.containers {
			whole = whole && !c.settled.IsZero()
			if c.settled.After(since) {
				since = c.settled
			}
		}
		if !whole {
			since = time.Time{}
		}
		list = append(list, limited{p.group, p.written.quota(), since})
	}
	for _, p := range o.pods {
		for _, c := range p.containers {
			list = append(list, limited{c.group, c.written.quota(), c.settled})
		}
	}
	return list
}
