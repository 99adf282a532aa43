package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

const (
	// Window is what "the last minute" is.
	Window = time.Minute
	// idle is how long a use that does not change is shown: the agent reads quiet groups as seldom (observe,
	// quietEvery).
	idle = 32 * time.Second
	// recordedFor is how long periods are recorded before the use of a second is the sum of them.
	recordedFor = 1100 * time.Millisecond
)

// Tracker forms differences of successive snapshots of one agent. The zero value has seen none.
type Tracker struct {
	Node string // host name

	started time.Time // of the agent
	first   time.Time // snapshot of this agent, without a longer gap than Window since
	last    time.Time // snapshot
	taken   int64     // snapshots
	groups  map[string]*group
	made    []Row // of the last view, before they were sorted: the memory is used again
}

// group is what the tracker remembers of a container or a pod.
type group struct {
	since  time.Time // when the agent began to count
	taken  int64     // the last snapshot that it is in
	sums   []sums    // that differ, oldest first; the first one is as of the window's begin, or before it
	losses []loss    // of the window, oldest first
	peaks  []peak    // of the window, latest last, each larger than all that follow
	recent []peak    // periods of the last second
	used   rate
	bank   bank
}

// sums are a container's counters at an instant.
type sums struct {
	at        time.Time
	lost      time.Duration
	throttled int64
	refills   int64
	atCap     int64
	behind    time.Duration // thread time waited behind neighbours; 0 where it is not measured
}

// peak is what was used in a period, in CPUs for a peak.
type peak struct {
	end  int64
	used float64
}

// rate is the use between the last two readings that differ.
type rate struct {
	usage time.Duration
	at    time.Time
	cpus  *float64
}

// Add takes the next snapshot, with the periods that have ended since the last one and their bursts (Bursts), and
// returns the view. recording is nil where periods are not measured.
func (t *Tracker) Add(s report.Status, recording *Recording, periods map[string][]recent.Period) View {
	// Another agent, a clock that was set back, or a gap longer than the window: the machine slept, or the agent hung.
	if gap := s.Now.Sub(t.last); t.groups == nil || !s.Started.Equal(t.started) || gap < 0 || gap > Window {
		t.groups, t.started, t.first = map[string]*group{}, s.Started, s.Now
	}
	t.last = s.Now
	t.taken++
	for i := range s.Containers {
		c := &s.Containers[i]
		g := t.group(c)
		g.taken = t.taken
		g.take(&s, c, periods[c.Cgroup])
	}
	maps.DeleteFunc(t.groups, func(_ string, g *group) bool { return g.taken != t.taken })
	v := View{Schema: Schema, Now: s.Now, Node: t.Node, Version: s.Version, Kernel: s.Kernel, Cgroup: s.Cgroup,
		Mode:       s.Mode,
		HeldReason: s.HeldReason, Window: min(Window, s.Now.Sub(t.first)), Mark: mark(s), Rows: []Row{},
		Recording:  recording,
		Colocation: s.Colocation, Reserve: s.Reserve, Waits: s.Waits, Problems: append([]string{},
			s.Problems...), Flags: s.Flags}
	t.rows(&v, s, recording != nil && s.Now.Sub(recording.Since) >= recordedFor)
	v.Sentence = sentence(v, t.longestBehind(v))
	return v
}

// group is the memory of a container. A container that came while the tracker watched began at 0.
func (t *Tracker) group(c *report.Container) *group {
	g := t.groups[c.Cgroup]
	if g != nil && g.since.Equal(c.Since) {
		return g
	}
	g = &group{since: c.Since}
	if c.Since.After(t.first) {
		g.sums = []sums{{at: c.Since}}
		g.used = rate{at: c.Since}
	}
	t.groups[c.Cgroup] = g
	return g
}

// take adds a snapshot of the container.
func (g *group) take(s *report.Status, c *report.Container, periods []recent.Period) {
	now := s.Now
	next := sums{at: now, lost: c.Totals.ThrottledWall, throttled: c.Totals.Throttled, refills: c.Totals.Refills,
		atCap: c.Totals.AtCap, behind: behind(c.Totals.Waited)}
	if n := len(g.sums); n == 0 || !g.sums[n-1].same(next) {
		if g.sums = append(g.sums, next); n > 0 {
			g.lose(s, c, next.less(g.sums[n-1]))
		}
	}
	g.losses = slices.DeleteFunc(g.losses, func(l loss) bool { return !l.at.After(now.Add(-Window)) })
	for len(g.sums) > 1 && !g.sums[1].at.After(now.Add(-Window)) {
		g.sums = g.sums[1:]
	}
	g.used.take(now, c.Totals.Usage)
	for _, p := range periods {
		g.bank.add(p, c.Period)
		g.addPeak(p, c.Period)
	}
	from := now.Add(-Window).UnixMilli()
	g.peaks = slices.DeleteFunc(g.peaks, func(p peak) bool { return p.end <= from })
	from = now.Add(-time.Second).UnixMilli()
	g.recent = slices.DeleteFunc(g.recent, func(p peak) bool { return p.end <= from })
}

// lose keeps what a snapshot has found lost.
func (g *group) lose(s *report.Status, c *report.Container, found sums) {
	if found.lost > 0 || found.throttled > 0 {
		g.losses = append(g.losses, loss{s.Now, causeOf(s, c, found), found.lost, found.throttled})
	}
}

func (s sums) same(o sums) bool { s.at = o.at; return s == o }

// addPeak keeps only what may still become the most of a window: a smaller use before a larger one never is.
func (g *group) addPeak(p recent.Period, length time.Duration) {
	if length <= 0 {
		return
	}
	used := float64(p.Used) / float64(length.Microseconds())
	for len(g.peaks) > 0 && g.peaks[len(g.peaks)-1].used <= used {
		g.peaks = g.peaks[:len(g.peaks)-1]
	}
	g.peaks = append(g.peaks, peak{p.End, used})
	g.recent = append(g.recent, peak{p.End, float64(p.Used) / 1e6})
}

// take forms the rate once the usage has changed. A group that is idle is read seldom, so that a usage that has not
// changed may be an old one.
func (r *rate) take(now time.Time, usage time.Duration) {
	elapsed := now.Sub(r.at)
	switch {
	case r.at.IsZero() || usage < r.usage:
		*r = rate{usage: usage, at: now}
	case usage == r.usage && elapsed > idle:
		*r = rate{usage: usage, at: now, cpus: new(float64)}
	case usage > r.usage && elapsed > 0:
		cpus := float64(usage-r.usage) / float64(elapsed)
		*r = rate{usage: usage, at: now, cpus: &cpus}
	}
}

// window is what has been counted within the window.
func (g *group) window() sums {
	return g.sums[len(g.sums)-1].less(g.sums[0])
}

// less is what has been counted since.
func (s sums) less(o sums) sums {
	return sums{lost: max(0, s.lost-o.lost), throttled: max(0, s.throttled-o.throttled),
		refills: max(0, s.refills-o.refills), atCap: max(0, s.atCap-o.atCap), behind: max(0, s.behind-o.behind)}
}

// behind is the time waited behind neighbours.
func behind(w *report.Waited) (sum time.Duration) {
	if w == nil {
		return 0
	}
	for _, one := range w.Waits {
		if one.Cause == report.CauseNeighbour {
			sum += one.Time
		}
	}
	return sum
}

// longestBehind is who has waited longest behind neighbours in the window; nil: nobody for long.
func (t *Tracker) longestBehind(v View) *waiting {
	var worst *waiting
	for i := range v.Rows {
		r := &v.Rows[i]
		if w := t.groups[r.ID].window().behind; w >= worthTelling && (worst == nil || w > worst.time) {
			worst = &waiting{r.Name, w}
		}
	}
	return worst
}

// rows makes the rows of a view, worst first. A pod has one only where it has a limit and
// some container of it has none.
func (t *Tracker) rows(v *View, s report.Status, recorded bool) {
	unlimited, pods := map[string]bool{}, map[string]*report.Container{}
	for i := range s.Containers {
		c := &s.Containers[i]
		switch {
		case c.Level == "pod":
			pods[c.Cgroup] = c
		case !c.Limited():
			unlimited[parent(c.Cgroup)] = true
		}
	}
	t.made = slices.Grow(t.made[:0], len(s.Containers))
	all := make([]numbers, len(s.Containers))
	for i := range s.Containers {
		c := &s.Containers[i]
		if c.Level == "pod" && (!c.Limited() || !unlimited[c.Cgroup]) {
			continue
		}
		row := t.row(v, &all[i], c, recorded)
		if pod := pods[parent(c.Cgroup)]; pod != nil && !unlimited[pod.Cgroup] && pod.Limited() {
			t.fold(&row, pod, v.Now)
		}
		t.made = append(t.made, row)
	}
	order := make([]*Row, len(t.made)) // of rows, which are large
	for i := range t.made {
		order[i] = &t.made[i]
	}
	slices.SortStableFunc(order, worstFirst) // the containers come in order, so that it has little to do
	v.Rows = make([]Row, len(order))
	for i, row := range order {
		v.Rows[i] = *row
	}
}

func parent(cgroup string) string { return cgroup[:max(0, strings.LastIndexByte(cgroup, '/'))] }

// numbers are what a row points to. The rows of a view have them in one piece of memory.
type numbers struct {
	limit, quota, asked, tokens time.Duration
	peak, used                  float64
	window                      sums
}

// row is one container by itself.
func (t *Tracker) row(v *View, n *numbers, c *report.Container, recorded bool) Row {
	g := t.groups[c.Cgroup]
	row := Row{ID: c.Cgroup, Name: c.Name, Pod: c.Pod, Runtime: c.Runtime, Level: c.Level,
		Policy: string(c.Strategy.Policy), Limit: finite(&n.limit, c.Limit), Period: c.Period,
		Quota: finite(&n.quota, c.Quota.InForce), QuotaAsked: finite(&n.asked, c.Quota.Requested),
		Burst: c.Burst.InForce, BurstAsked: c.Burst.Requested, BurstChanged: c.Burst.Changed, Why: c.Why,
		Paused: c.Paused, Problem: cmp.Or(c.Quota.Problem, c.Burst.Problem), Used: g.used.cpus}
	if c.Requests != nil {
		row.Requests = &c.Requests.RequestWindow
	}
	measured := recorded && c.Totals.Events != nil && c.Limited()
	if measured {
		if len(g.peaks) > 0 {
			n.peak = g.peaks[0].used
		}
		for _, p := range g.recent {
			n.used += p.used
		}
		row.Peak, row.Used = &n.peak, &n.used
		if saved, known := g.bank.saved(); known {
			n.tokens = saved
			row.Tokens = &n.tokens
		}
	}
	if v.Window > 0 {
		n.window = g.window()
		row.Lost, row.Throttled, row.Refills = &n.window.lost, &n.window.throttled, &n.window.refills
		row.Cause = blame(g.losses)
		row.latest(v.Now, g.losses)
	}
	return row
}

// fold adds what its pod's limit took of a container. A pod that stands still takes all its containers with it.
func (t *Tracker) fold(row *Row, pod *report.Container, at time.Time) {
	if row.Lost == nil {
		return
	}
	g := t.groups[pod.Cgroup]
	w := g.window()
	if w.lost > *row.Lost {
		row.Lost, row.Cause = &w.lost, PodLimit
		throttled := max(w.throttled, *row.Throttled)
		row.Throttled = &throttled
	}
	row.latest(at, g.losses)
	refills := *row.Refills + w.refills
	row.Refills = &refills
	row.Problem = cmp.Or(row.Problem, pod.Quota.Problem, pod.Burst.Problem)
}

// latest says when something was lost last, by the container's limit or by its pod's, and why where that is now.
func (r *Row) latest(at time.Time, losses []loss) {
	if len(losses) == 0 {
		return
	}
	last := losses[len(losses)-1]
	if r.LastLost != nil && (last.at.Before(*r.LastLost) || last.at.Equal(*r.LastLost) && r.Cause != PodLimit) {
		return
	}
	r.LastLost, r.CauseNow = &last.at, NoCause
	if at.Sub(last.at) < losingFor {
		r.CauseNow = last.cause
	}
}

// worstFirst orders rows by time lost, throttled periods, use above the limit, and name.
func worstFirst(a, b *Row) int {
	if n := cmp.Or(cmp.Compare(known(b.Lost), known(a.Lost)), cmp.Compare(known(b.Throttled), known(a.Throttled)),
		cmp.Compare(b.above(), a.above())); n != 0 {
		return n
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// above is the use above the limit in CPUs.
func (r *Row) above() float64 {
	if r.Used == nil || r.Limit == nil || r.Period <= 0 {
		return 0
	}
	return max(0, *r.Used-float64(*r.Limit)/float64(r.Period))
}

// known is a value, or less than any where it is not measured.
func known[T ~int64](v *T) T {
	if v == nil {
		return -1
	}
	return *v
}

// finite writes a number to where a row points; nil for none.
func finite(n *time.Duration, d time.Duration) *time.Duration {
	if d == cpu.Unlimited {
		return nil
	}
	*n = d
	return n
}
