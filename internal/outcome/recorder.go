// Package outcome keeps what the agent reports: log lines, the status, the numbers for the metrics, and problems. No
// decision depends on it.
//
// A problem is a sentence for people, with a hint, and is reported as long as it persists. Its key begins with the
// group's path, so that it is removed with the group.
package outcome

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
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
	groups   map[workload.ID]*Account
	order    []*Account // by path: to sort thousands would keep a throttle waiting
	problems map[string]string
	writes   report.Writes
	node     report.Node
	turns    ring
	refills  refills
	bounded  []*Account // since the last full turn
	lastTurn time.Time
}

// New makes an empty record.
func New(log *slog.Logger) *Recorder {
	return &Recorder{log: log, groups: map[workload.ID]*Account{}, problems: map[string]string{},
		writes: report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{}, Decisions: map[string]int64{}}}
}

// Problem sets a problem, or with "" removes it.
func (r *Recorder) Problem(key, text string) {
	delete(r.problems, key)
	if text != "" {
		r.problems[key] = text
	}
}

// Unreadable records that a group cannot be read, or with nil that it can.
func (r *Recorder) Unreadable(g *observe.Group, err error) {
	problem := ""
	if err != nil {
		problem = fmt.Sprintf(report.ProblemUnreadable, r.called(g.ID), err)
	}
	r.Problem(g.Path, problem)
}

// Problems lists all problems.
func (r *Recorder) Problems() []string { return slices.Sorted(maps.Values(r.problems)) }

// Turned records that the loop took a turn, for the health check.
func (r *Recorder) Turned(now time.Time) { r.lastTurn = now }

// LastTurn is when the loop last took a turn.
func (r *Recorder) LastTurn() time.Time { return r.lastTurn }

// Results counts the outcomes of writes.
func (r *Recorder) Results(results []plan.Result) {
	for _, x := range results {
		if r.writes.Results[x.Change.Knob] == nil {
			r.writes.Results[x.Change.Knob] = map[plan.Outcome]int64{}
		}
		r.writes.Results[x.Change.Knob][x.Outcome]++
	}
}

// Decisions counts the decisions on the bandwidth of groups.
func (r *Recorder) Decisions(kinds map[policy.Kind]int64) {
	for kind, n := range kinds {
		r.Decided(kind, n)
	}
}

// Decided counts decisions of one kind.
func (r *Recorder) Decided(kind policy.Kind, n int64) { r.writes.Decisions[string(kind)] += n }

// View books what was decided for the bandwidth of one group.
func (r *Recorder) View(now time.Time, v policy.View) {
	if g := r.groups[v.Cgroup]; g != nil {
		r.view(now, g, v)
	}
}

// Result books what became of a change of bandwidth.
func (r *Recorder) Result(now time.Time, x plan.Result) {
	if g := r.groups[x.Change.Cgroup]; g != nil && x.Change.Knob.OfBandwidth() {
		r.result(now, g, x)
	}
}

// WholeTurn records the state of the node in a full turn, and how long the turn took. It calls bounded, unless that is
// nil, once for each group and bound that limits the group.
func (r *Recorder) WholeTurn(out policy.Output, took time.Duration, bounded func(group, what string)) {
	for _, g := range r.bounded {
		if bounded != nil && g.First("bound "+g.bounded.By) {
			bounded(g.Path, g.bounded.By+" is the administrator's bound on CPUs above limits, and keeps it from more")
		}
	}
	r.bounded = nil
	n := out.Node
	r.node = report.Node{State: string(n.State()), CPUs: n.CPUs, Capacity: n.Capacity, Used: n.Used,
		Threshold: n.Threshold(), Granted: out.Granted}
	r.turns.add(took)
}

// Node is the state of the node in the last full turn.
func (r *Recorder) Node() report.Node { return r.node }

// Writes is a copy of the counts of writes.
func (r *Recorder) Writes() report.Writes {
	w := report.Writes{Undone: r.writes.Undone, Results: map[plan.Knob]map[plan.Outcome]int64{},
		Decisions: maps.Clone(r.writes.Decisions)}
	for knob, outcomes := range r.writes.Results {
		w.Results[knob] = maps.Clone(outcomes)
	}
	return w
}

// Self adds the numbers of the agent's turns.
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
	// A clamped value counts as restored: a cpuset that inherited now has all CPUs (v2).
	r.log.Info("restored", "files", counts[plan.Applied]+counts[plan.Clamped], "gone", counts[plan.Gone],
		"left_alone", counts[plan.Trampled], "refused", counts[plan.Refused])
	return first
}

// Account is the record of a group. It begins with the first call.
func (r *Recorder) Account(g *observe.Group) *Account {
	known := r.groups[g.ID]
	if known == nil {
		known = &Account{Group: g}
		r.groups[g.ID] = known
		at, _ := slices.BinarySearchFunc(r.order, g.ID, byPath)
		r.order = slices.Insert(r.order, at, known)
	}
	return known
}

// byPath orders the groups. Two may have one path for a moment: one is gone.
func byPath(g *Account, id workload.ID) int {
	return cmp.Or(strings.Compare(g.Path, id.Path), cmp.Compare(g.Inode, id.Inode))
}

// Groups is how many there are.
func (r *Recorder) Groups() int { return len(r.order) }

// Drop forgets a group that is gone, and its problems.
func (r *Recorder) Drop(id workload.ID) {
	delete(r.groups, id)
	if at, known := slices.BinarySearchFunc(r.order, id, byPath); known {
		r.order = slices.Delete(r.order, at, at+1)
	}
	for key := range r.problems {
		if key == id.Path || strings.HasPrefix(key, id.Path+" ") {
			delete(r.problems, key)
		}
	}
}

// Containers overwrites a list with the status of all groups that work for somebody, ordered by their paths. throttles
// returns the eBPF totals of a group, and scheduled those of our scheduler.
func (r *Recorder) Containers(list []report.Container, now time.Time, throttles func(*Account) (report.Throttles, bool),
	scheduled func(*Account) report.Throttles) []report.Container {
	list = slices.Grow(list[:0], len(r.order)) // once: containers are large
	for _, g := range slices.Clone(r.order) {  // it may change in between
		if g.idleSandbox() {
			continue
		}
		t, watched := throttles(g)
		list = append(list, g.counted(now, t, watched, scheduled(g)))
	}
	return list
}

// Estimated lists the same groups with the time lost as it is estimated. The counts of throttles are left alone.
func (r *Recorder) Estimated(now time.Time, yield func()) []report.Container {
	list := make([]report.Container, 0, len(r.order))
	for _, g := range slices.Clone(r.order) { // it may change in between
		if yield(); !g.idleSandbox() {
			list = append(list, g.container(now))
		}
	}
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

// quantile is the least duration that a part q of them does not exceed, 0 for none.
func (r *ring) quantile(q float64) time.Duration {
	if len(r.kept) == 0 {
		return 0
	}
	sorted := slices.Clone(r.kept)
	slices.Sort(sorted)
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
