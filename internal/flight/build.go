package flight

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Period is one record of the kernel: Count periods that ended together,
// of which more than one are where its timer was late.
type Period struct {
	Cgroup    string
	End       int64 // Unix time in ms
	Used      int64 // us of CPU time, of all of them
	Quota     int64 // us, in force as it ended
	Throttled int64 // us of wall time
	Throttles int32
	Refills   int32
	Count     int32
}

// Known is what is known of a control group besides its periods.
type Known struct {
	Namespace, Pod, Container string
	Limit                     time.Duration // of CPU time per period; 0: none, or not known
	Period                    time.Duration // 0: not known yet
}

// named says whether rows can be made of the group's periods.
func (k Known) named() bool { return k.Period >= time.Millisecond }

// Builder collects periods into minutes. It has no clock: Close is told the time.
type Builder struct {
	known   map[string]Known
	open    map[int64]map[string]*Minute // by minute and group
	ended   []Minute                     // rows that ended within their minute
	held    []Period                     // of groups that Know has not named: how long they are is not known
	dropped int64                        // periods that found no room since Add last said how many
	begun   int64                        // of the time that is recorded, and neither over nor in a batch
	seen    int64                        // when it was last told the time
	over    Spans                        // what is over, and in no batch yet
}

const (
	minuteMs  = int64(time.Minute / time.Millisecond)
	grace     = 2 * time.Second // after its end a minute still gets periods, which the kernel's ring has
	maxGroups = 4096            // in a minute
	maxHeld   = 1 << 15         // records of 300 containers that are never idle, in 10 s
	maxPlaces = 60_000          // of a period of 1 ms
	// A builder that is not told the time for longer has not recorded: the machine was suspended, or the clock was set.
	maxSilent = 10 * time.Second
	// A period that ends earlier than the one before it by less is in the place of that one: a second row costs more.
	maxBack = time.Second
	usual   = 100 * time.Millisecond
)

// NewBuilder makes a builder that records from now on.
func NewBuilder(now time.Time) *Builder {
	ms := now.UnixMilli()
	return &Builder{known: map[string]Known{}, open: map[int64]map[string]*Minute{}, begun: ms, seen: ms}
}

func minuteOf(ms int64) int64 { return ms - ms%minuteMs }

// over says whether a minute gets no more periods. One of the future gets none: the clock was set back.
func over(start, now int64) bool {
	return start+minuteMs+grace.Milliseconds() <= now || start > now+minuteMs
}

// Know takes what is known of groups, for the rows that are closed from now on. Rows of another period end: what comes
// does not fit into their places.
func (b *Builder) Know(groups map[string]Known) {
	b.known = groups
	for start, minute := range b.open {
		for path, m := range minute {
			if k := groups[path]; k.named() && k.Period.Microseconds() != int64(m.PeriodUs) {
				b.end(start, path)
			}
		}
	}
	b.release(func(p *Period) bool { return groups[p.Cgroup].named() })
}

// Strays is how many records wait for Know to name their groups.
func (b *Builder) Strays() int { return len(b.held) }

// Ends says whether Close has rows to return. What is known of groups should be new then.
func (b *Builder) Ends(now time.Time, all bool) bool {
	ms := now.UnixMilli()
	for start := range b.open {
		if all || over(start, ms) {
			return true
		}
	}
	ends := func(p Period) bool { return all || over(minuteOf(p.End), ms) }
	return len(b.ended) > 0 || slices.ContainsFunc(b.held, ends)
}

// Add adds records, and returns how many periods found no room since it was last called.
func (b *Builder) Add(list []Period) (dropped int64) {
	for i := range list {
		p := &list[i]
		switch known := b.known[p.Cgroup]; {
		case known.named():
			b.put(p, known)
		case len(b.held) < maxHeld:
			b.held = append(b.held, *p)
		default:
			b.dropped += int64(p.Count)
		}
	}
	dropped, b.dropped = b.dropped, 0
	return dropped
}

// release puts records that were held into their rows.
func (b *Builder) release(which func(*Period) bool) {
	b.held = slices.DeleteFunc(b.held, func(p Period) bool {
		if !which(&p) {
			return false
		}
		b.put(&p, b.known[p.Cgroup])
		return true
	})
	if len(b.held) == 0 {
		b.held = nil // megabytes, where many containers start
	}
}

// put adds a record to the row of its group.
func (b *Builder) put(p *Period, known Known) {
	if m := b.row(p, known); m != nil {
		m.add(p)
	} else {
		b.dropped += int64(p.Count)
	}
}

// row is that of the period's minute; nil where there are too many groups.
func (b *Builder) row(p *Period, known Known) *Minute {
	start := minuteOf(p.End)
	groups := b.open[start]
	if groups == nil {
		groups = map[string]*Minute{}
		b.open[start] = groups
	}
	m := groups[p.Cgroup]
	if m != nil && p.End < m.end()-maxBack.Milliseconds() {
		b.end(start, p.Cgroup)
		m = nil
	}
	if m == nil && len(groups) < maxGroups {
		period := known.Period
		if period < time.Millisecond {
			period = usual
		}
		us := period.Microseconds()
		first := int32((p.End - start) * 1000 % us / 1000)
		m = &Minute{Cgroup: p.Cgroup, Start: start, PeriodUs: int32(us), First: first,
			ContainerID: ContainerID(p.Cgroup), LimitUs: -1, Used: make([]float32, 0, min(minuteMs*1000/us+1, 601))}
		m.describe(known)
		groups[p.Cgroup] = m
	}
	return m
}

// end ends a row within its minute: the clock was set back, or the period has changed.
func (b *Builder) end(start int64, path string) {
	b.ended = append(b.ended, *b.open[start][path])
	delete(b.open[start], path)
}

// end is that of the last place.
func (m *Minute) end() int64 {
	return m.Start + int64(m.First) + int64(len(m.Used)-1)*int64(m.PeriodUs)/1000
}

// add adds a record at its place. CPU time of periods that ended together is spread over them.
func (m *Minute) add(p *Period) {
	us := int64(m.PeriodUs)
	at := max(int(((p.End-m.Start-int64(m.First))*1000+us/2)/us), len(m.Used)-1, 0)
	count := max(int64(p.Count), 1)
	first := max(at+1-int(min(count, maxPlaces)), len(m.Used)) // the first that has no value yet
	for len(m.Used) <= at {
		m.Used = append(m.Used, 0)
	}
	first = min(first, at)
	each := p.Used / int64(at-first+1)
	for i := first; i <= at; i++ {
		m.Used[i] = round(int64(m.Used[i])*usedUnit + each)
	}
	m.Periods += int32(count)
	m.UsedUs += p.Used
	m.PeakUs = max(m.PeakUs, p.Used/count)
	m.ThrottledUs += p.Throttled
	m.Throttles += p.Throttles
	m.Refills += p.Refills
	if p.Throttled > 0 {
		for len(m.ThrottledMs) <= at {
			m.ThrottledMs = append(m.ThrottledMs, 0)
		}
		m.ThrottledMs[at] += max(int32((p.Throttled+500)/1000), 1) // less is not nothing
	}
	for range min(p.Refills, maxRefills) {
		m.RefillAt = append(m.RefillAt, int32(at))
	}
	if n := len(m.QuotaUs); n == 0 || m.QuotaUs[n-1] != p.Quota {
		if n > 0 && m.QuotaAt[n-1] == int32(at) {
			m.QuotaUs[n-1] = p.Quota
			return
		}
		m.QuotaAt, m.QuotaUs = append(m.QuotaAt, int32(at)), append(m.QuotaUs, p.Quota)
	}
}

// maxRefills bounds the places of one period: there are more only where something is wrong.
const maxRefills = 64

// Close returns the minutes that are over, false where none is. all: also those that are not, and the time in which all
// groups slept, of which there may be no row.
func (b *Builder) Close(now time.Time, all bool) (Batch, bool) {
	ms := now.UnixMilli()
	b.release(func(p *Period) bool { return all || over(minuteOf(p.End), ms) }) // Know has not named it: it is gone
	batch := Batch{Rows: b.ended}
	b.ended = nil
	for start, groups := range b.open {
		if !all && !over(start, ms) {
			continue
		}
		for _, m := range groups {
			batch.Rows = append(batch.Rows, *m)
		}
		delete(b.open, start)
	}
	for i := range batch.Rows {
		m := &batch.Rows[i]
		if known, named := b.known[m.Cgroup]; named { // else it is gone, or was never known
			m.describe(known)
		}
	}
	slices.SortStableFunc(batch.Rows, func(x, y Minute) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), strings.Compare(x.Cgroup, y.Cgroup))
	})
	b.cover(ms, all)
	if len(batch.Rows) == 0 && !(all && len(b.over) > 0) {
		return batch, false
	}
	batch.Covered, b.over = b.over, nil
	return batch, true
}

// cover notes the time that is over: a group without a row slept in it.
func (b *Builder) cover(now int64, all bool) {
	if silent := now - b.seen; silent < 0 || silent > maxSilent.Milliseconds() {
		b.over = Union(b.over, Spans{{b.begun, b.seen}})
		b.begun = now
	}
	b.seen = now
	end := minuteOf(now - grace.Milliseconds())
	if all {
		end = now
	}
	if end > b.begun {
		b.over = Union(b.over, Spans{{b.begun, end}}).Within(now-maxCovered.Milliseconds(), end)
		b.begun = end
	}
}

// maxCovered bounds the time in which all groups slept.
const maxCovered = 24 * time.Hour

func (m *Minute) describe(known Known) {
	m.Namespace, m.Pod, m.Container = known.Namespace, known.Pod, known.Container
	if known.Limit > 0 && known.Period.Microseconds() == int64(m.PeriodUs) { // else it has changed since
		m.LimitUs = known.Limit.Microseconds()
	}
}

// ContainerID is the 64 hexadecimal digits by which runtimes name a container's group; "" where there are none.
func ContainerID(cgroup string) string {
	const digits = 64
	name := cgroup[strings.LastIndexByte(cgroup, '/')+1:]
	name = strings.TrimSuffix(name, ".scope")
	name = name[strings.LastIndexByte(name, '-')+1:]
	if len(name) != digits || strings.Trim(name, "0123456789abcdef") != "" {
		return ""
	}
	return name
}
