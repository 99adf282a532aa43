package view

import (
	"maps"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// Bursts knows which burst was in force in the periods that have ended. The zero value knows nothing.
//
// Problem: tokens are replayed from the periods, and the kernel's record of a period has its quota and not its burst.
// The burst that is in force now is not that of a quarter of an hour ago.
//
// Approach: each snapshot says which burst is in force. Where two successive ones say the same, it was in force in all
// periods between them. Where they differ, it is not known which of them it was,
// and nor is it before the first snapshot.
//
// Known limits: a burst that another program writes and puts back between two snapshots is not seen. The agent reads
// idle groups seldom: what another program writes there counts from when it was read.
type Bursts struct{ groups map[string]seenBurst }

// seenBurst is what the snapshots have said of a group. It is the same group for as long as
// the agent counts from one instant.
type seenBurst struct {
	since       time.Time // when the agent began to count
	before, now int32     // us, of the snapshot before the change, and after it
	until, from int64     // Unix ms: the first was in force until then, and the other one from then on
	last        int64     // the latest snapshot
}

// Note writes the burst into periods that have ended since the snapshot before.
func (b *Bursts) Note(s report.Status, periods map[string][]recent.Period) {
	if b.groups == nil {
		b.groups = map[string]seenBurst{}
	}
	at := s.Now.UnixMilli()
	for i := range s.Containers {
		c := &s.Containers[i]
		seen, known := b.groups[c.Cgroup]
		seen = seen.next(c, at, known && seen.since.Equal(c.Since))
		for k := range periods[c.Cgroup] {
			p := &periods[c.Cgroup][k]
			p.Burst = seen.at(p.End)
		}
		b.groups[c.Cgroup] = seen
	}
	maps.DeleteFunc(b.groups, func(_ string, seen seenBurst) bool { return seen.last != at })
}

// next takes a snapshot.
func (b seenBurst) next(c *report.Container, at int64, known bool) seenBurst {
	burst := recent.Us(c.Burst.InForce)
	switch {
	case !known:
		b = seenBurst{since: c.Since, before: recent.UnknownBurst, now: burst, from: at}
	case burst != b.now:
		b.before, b.now, b.until, b.from = b.now, burst, b.last, at
	}
	b.last = at
	return b
}

// at is the burst that was in force at an instant.
func (b seenBurst) at(end int64) int32 {
	switch {
	case end >= b.from:
		return b.now
	case end <= b.until:
		return b.before
	}
	return recent.UnknownBurst
}
