// Package record keeps what the agent tells of itself: log lines, the status and what metrics are made of, and problems. All of
// them come from here, and nothing is decided by them.
//
// A problem is a sentence for people, with a hint, that stands as long as the thing does. It has a key that begins with the
// group's path, so that it goes with the group.
package record

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Recorder keeps the record of one agent.
type Recorder struct {
	log      *slog.Logger
	groups   map[workload.ID]*Group
	problems map[string]string
	writes   report.Writes
	node     report.Node
	turns    ring
	refills  refills
	lastTurn time.Time
}

// New makes an empty record.
func New(log *slog.Logger) *Recorder {
	return &Recorder{log: log, groups: map[workload.ID]*Group{}, problems: map[string]string{},
		writes: report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{}, Decisions: map[string]int64{}}}
}

// Problem says what is wrong, or with "" that it is no longer.
func (r *Recorder) Problem(key, text string) {
	delete(r.problems, key)
	if text != "" {
		r.problems[key] = text
	}
}

// Unreadable says that a group cannot be read, or with nil that it can.
func (r *Recorder) Unreadable(g *observe.Group, err error) {
	problem := ""
	if err != nil {
		problem = fmt.Sprintf("%s: %v", g.Path, err)
	}
	r.Problem(g.Path, problem)
}

// Problems lists all problems.
func (r *Recorder) Problems() []string { return slices.Sorted(maps.Values(r.problems)) }

// Turned notes that the loop took a turn by itself: a sign of life.
func (r *Recorder) Turned(now time.Time) { r.lastTurn = now }

// LastTurn is when the loop last took a turn.
func (r *Recorder) LastTurn() time.Time { return r.lastTurn }

// Results counts what became of writes.
func (r *Recorder) Results(results []plan.Result) {
	for _, x := range results {
		if r.writes.Results[x.Change.Knob] == nil {
			r.writes.Results[x.Change.Knob] = map[plan.Outcome]int64{}
		}
		r.writes.Results[x.Change.Knob][x.Outcome]++
	}
}

// Decided books what was decided for the bandwidth of groups, and what became of it.
func (r *Recorder) Decided(now time.Time, out policy.Output, results []plan.Result) {
	for kind, n := range out.Kinds {
		r.writes.Decisions[string(kind)] += n
	}
	for _, v := range out.Views {
		if g := r.groups[v.Cgroup]; g != nil {
			r.view(now, g, v)
		}
	}
	for _, x := range results {
		if g := r.groups[x.Change.Cgroup]; g != nil && x.Change.Knob.OfBandwidth() {
			r.result(now, g, x)
		}
	}
}

// WholeTurn books what a turn for all groups found of the node, and how long it took.
func (r *Recorder) WholeTurn(out policy.Output, took time.Duration) {
	n := out.Node
	r.node = report.Node{State: string(n.State()), CPUs: n.CPUs, Capacity: n.Capacity, Used: n.Used, Threshold: n.Threshold(),
		Granted: out.Granted}
	r.turns.add(took)
}

// Node is what the last whole turn found of the machine.
func (r *Recorder) Node() report.Node { return r.node }

// Writes is a copy of what was counted of writes.
func (r *Recorder) Writes() report.Writes {
	w := report.Writes{Undone: r.writes.Undone, Results: map[plan.Knob]map[plan.Outcome]int64{}, Decisions: maps.Clone(r.writes.Decisions)}
	for knob, outcomes := range r.writes.Results {
		w.Results[knob] = maps.Clone(outcomes)
	}
	return w
}

// Self adds what the record knows of the agent's cost.
func (r *Recorder) Self(self report.Self) report.Self {
	self.Turns, self.TurnP50, self.TurnP99 = r.turns.count, r.turns.quantile(0.5), r.turns.quantile(0.99)
	return self
}

// Restored sums up a restore, and returns the first refusal.
func (r *Recorder) Restored(results []plan.Result) error {
	counts := map[plan.Outcome]int{}
	var first error
	for _, x := range results {
		counts[x.Outcome]++
		if x.Outcome == plan.Refused && first == nil {
			first = fmt.Errorf("restore %s of %s to %s: %s", x.Change.Knob, x.Change.Cgroup.Path, x.Change.To, x.Err)
		}
	}
	// A file that took another value is put back, too: a cpuset that inherited has all CPUs (v2).
	r.log.Info("restored", "files", counts[plan.Applied]+counts[plan.Clamped], "gone", counts[plan.Gone],
		"left_alone", counts[plan.Trampled], "refused", counts[plan.Refused])
	return first
}

// Group is the record of a group that was read; it begins with the first call.
func (r *Recorder) Group(g *observe.Group) *Group {
	known := r.groups[g.ID]
	if known == nil {
		known = &Group{Group: g}
		r.groups[g.ID] = known
	}
	return known
}

// Drop forgets a group that is gone, and its problems.
func (r *Recorder) Drop(id workload.ID) {
	delete(r.groups, id)
	for key := range r.problems {
		if key == id.Path || strings.HasPrefix(key, id.Path+" ") {
			delete(r.problems, key)
		}
	}
}

// Containers is what a status says of all groups. throttles are what the kernel's programs count of a group, and scheduled what a
// scheduler of ours has counted besides.
func (r *Recorder) Containers(now time.Time, throttles func(*Group) (report.Throttles, bool), scheduled func(*Group) report.Throttles) []report.Container {
	list := make([]report.Container, 0, len(r.groups))
	for _, g := range r.groups {
		t, watched := throttles(g)
		list = append(list, g.container(now, t, watched, scheduled(g)))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Cgroup < list[j].Cgroup })
	return list
}

// ring keeps the latest durations.
type ring struct {
	kept  []time.Duration
	count int64
}

// ringSize is how many durations a quantile is taken over.
const ringSize = 1024

func (r *ring) add(d time.Duration) {
	if len(r.kept) < ringSize {
		r.kept = append(r.kept, d)
	} else {
		r.kept[r.count%ringSize] = d
	}
	r.count++
}

// quantile is the duration that a part q of them does not exceed, 0 for none.
func (r *ring) quantile(q float64) time.Duration {
	if len(r.kept) == 0 {
		return 0
	}
	sorted := slices.Clone(r.kept)
	slices.Sort(sorted)
	return sorted[int(float64(len(sorted)-1)*q)]
}
