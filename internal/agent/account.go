package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// account is the agent's books: what it did, and what it costs.
type account struct {
	writes   report.Writes
	self     report.Self
	node     report.Node
	problems map[string]string // by cgroup and knob
	lastTurn time.Time
	turns    []time.Duration // of the recent turns, a ring
}

func newAccount() account {
	return account{
		writes:   report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{}, Decisions: map[string]int64{}},
		problems: map[string]string{},
	}
}

// turnsKept is how many turns the 99th percentile of the turn time is taken over.
const turnsKept = 1024

func (b *account) turn(took time.Duration) {
	if len(b.turns) < turnsKept {
		b.turns = append(b.turns, took)
	} else {
		b.turns[b.self.Turns%turnsKept] = took
	}
	b.self.Turns++
}

// quantile is the value that a part q of the list does not exceed, 0 for none.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return sorted[int(float64(len(sorted)-1)*q)]
}

// book counts results.
func (b *account) book(results []plan.Result) {
	for _, r := range results {
		if b.writes.Results[r.Change.Knob] == nil {
			b.writes.Results[r.Change.Knob] = map[plan.Outcome]int64{}
		}
		b.writes.Results[r.Change.Knob][r.Outcome]++
	}
}

// left forgets the problems of a group that is gone.
func (b *account) left(group string) {
	for key := range b.problems {
		if key == group || strings.HasPrefix(key, group+" ") {
			delete(b.problems, key)
		}
	}
}

func (b *account) listProblems() []string {
	list := make([]string, 0, len(b.problems))
	for _, p := range b.problems {
		list = append(list, p)
	}
	sort.Strings(list)
	return list
}

// book books what was decided and done.
func (a *Agent) book(now time.Time, out policy.Output, results []plan.Result) {
	a.account.book(results)
	for kind, n := range out.Kinds {
		a.account.writes.Decisions[string(kind)] += n
	}
	for _, v := range out.Views {
		a.view(now, v)
	}
	for _, r := range results {
		a.result(now, r)
	}
}

// bookTurn books a whole turn.
func (a *Agent) bookTurn(now time.Time, out policy.Output, results []plan.Result) {
	a.book(now, out, results)
	b, n := &a.account, out.Node
	b.node = report.Node{State: string(n.State()), CPUs: n.CPUs, Capacity: n.Capacity, Used: n.Used,
		Threshold: n.Threshold(), Granted: out.Granted}
	b.turn(a.Clock().Sub(now))
}

// view books what was decided for one group and what it did since the last look.
func (a *Agent) view(now time.Time, v policy.View) {
	g := a.groups[v.Cgroup]
	if g == nil {
		return
	}
	g.Watched, g.Stable = v.Watched, v.Stable && g.late.IsZero()
	a.suppressEvents(g, v.SuppressEvents)
	g.Throttled = v.Window.Throttled > 0
	if !g.Stable {
		g.MarkDue()
	}
	s := &g.status
	if v.Limit.Quota != s.Limit && v.Limit.Limited() {
		a.counted(g, v.Limit.Quota)
	}
	s.Limit, s.Period, s.Why = v.Limit.Quota, v.Limit.Period, v.Why
	s.Quota.Original, s.Quota.Requested, s.Quota.InForce = v.Limit.Quota, v.RequestedQuota, g.Disk.Quota
	s.Burst.Original, s.Burst.Requested, s.Burst.InForce = v.Limit.Burst, v.RequestedBurst, g.Disk.Burst
	s.Burst.Clamped = g.burstOurs && g.Disk.Burst < v.RequestedBurst
	change(&s.Quota, g.quotaOurs, now)
	g.Raised = s.Quota.Changed
	change(&s.Burst, g.burstOurs, now)
	a.tooLow(g, v.LimitTooLow)
	a.writtenAgain(g)
	if v.AtCap > 0 {
		s.Totals.AtCap++
		s.Totals.AtCapWall += v.AtCap
	}
	s.BudgetLeft = nil
	if left := v.BudgetLeft; left != cpu.Unlimited {
		s.BudgetLeft = &left
	}
	g.Bounded = s.BudgetLeft != nil
	if v.Window.Elapsed() > 0 && g.Looked {
		addTotals(&s.Totals, v, g.status.Quota.Changed)
		s.Totals.AboveLimit += a.aboveLimit(g, v)
		if !v.IsPod {
			a.priority.usage.add(g.QOS.Rank(), v.Window.Used)
		}
	}
}

// tooLow says of a limit, once, that it does not do.
func (a *Agent) tooLow(g *group, now bool) {
	if now == g.status.TooLow {
		return
	}
	g.status.TooLow = now
	key := g.Path + " limit"
	if !now {
		delete(a.account.problems, key)
		return
	}
	a.account.problems[key] = fmt.Sprintf("%s: the limit is too low: throttled in more than half of the periods of the last "+
		"minute; hint: raise the limit", g.Path)
	a.Log.Warn("the limit is too low", "cgroup", g.Path, "limit", g.status.Limit, "period", g.status.Period)
}

func change(k *report.Knob, ours bool, now time.Time) {
	switch {
	case ours && !k.Changed:
		k.Since = &now
	case !ours:
		k.Since = nil
	}
	k.Changed = ours
}

func addTotals(t *report.Totals, v policy.View, raised bool) {
	w := v.Window
	t.Usage += w.Used
	t.Periods += w.Periods
	t.Throttled += w.Throttled
	t.ThrottledTime += w.ThrottledTime
	if w.ThrottledTime > 0 {
		t.ThrottledWall += w.ThrottledWall(v.Limit.Period)
	}
	t.Bursts += w.Bursts
	t.BurstTime += w.BurstTime
	if raised {
		t.Raised += w.Elapsed()
	}
}

func (a *Agent) forget(id workload.ID, knob plan.Knob) {
	if err := a.Writer.Forget(id, knob); err != nil {
		a.Log.Error("journal", "cgroup", id.Path, "error", err)
	}
}

func knobOf(g *group, knob plan.Knob) *report.Knob {
	if knob == plan.Burst {
		return &g.status.Burst
	}
	return &g.status.Quota
}

// stands books what was read back, and has the files read again before the next decision.
func (a *Agent) stands(g *group, r plan.Result) {
	g.DiskAt = time.Time{}
	g.MarkDue()
	if d, err := r.InForce.Time(); err == nil {
		if r.Change.Knob == plan.Burst {
			g.Disk.Burst = d
		} else {
			g.Disk.Quota = d
		}
	}
}

// result says what became of a change: one line for an outcome, not one for each time it is the same.
func (a *Agent) result(now time.Time, r plan.Result) {
	c := r.Change
	g := a.groups[c.Cgroup]
	if g == nil {
		return
	}
	k := knobOf(g, c.Knob)
	if !c.Refill {
		a.stands(g, r)
	}
	if !c.Refill && (r.Outcome == plan.Applied || r.Outcome == plan.Clamped) {
		a.applied(g, k, r, now)
	}
	key := c.Cgroup.Path + " " + string(c.Knob)
	problem := ""
	if r.Outcome == plan.Refused || r.Outcome == plan.Trampled {
		problem = fmt.Sprintf("%s: %s %s to %s: %s", c.Cgroup.Path, r.Outcome, c.Knob, c.To, r.Err)
	}
	if problem != "" && problem != a.account.problems[key] {
		a.Log.Warn("write", "cgroup", c.Cgroup.Path, "knob", c.Knob, "from", c.From, "to", c.To, "outcome", r.Outcome, "error", r.Err)
	}
	delete(a.account.problems, key)
	if problem != "" {
		a.account.problems[key] = problem
	}
	k.Problem = problem
}

func (a *Agent) applied(g *group, k *report.Knob, r plan.Result, now time.Time) {
	from, _ := r.Change.From.Time()
	in, err := r.InForce.Time()
	if err != nil {
		return
	}
	k.InForce = in
	if r.Change.Knob == plan.Quota && in > from {
		g.status.Totals.Raises++
	}
	change(k, in != k.Original, now)
	g.Raised = g.status.Quota.Changed
	level, outcome := slog.LevelDebug, string(r.Change.Knob)+" "+string(r.Outcome)
	if g.first(outcome) { // the first of its kind is news
		level = slog.LevelInfo
	}
	a.Log.Log(context.Background(), level, "write", "cgroup", r.Change.Cgroup.Path, "knob", r.Change.Knob, "from", r.Change.From,
		"to", r.Change.To, "in_force", r.InForce, "why", r.Change.Why)
}

// sayRestored sums up a restore.
func (a *Agent) sayRestored(results []plan.Result) error {
	counts := map[plan.Outcome]int{}
	var first error
	for _, r := range results {
		counts[r.Outcome]++
		if r.Outcome == plan.Refused && first == nil {
			first = fmt.Errorf("restore %s of %s to %s: %s", r.Change.Knob, r.Change.Cgroup.Path, r.Change.To, r.Err)
		}
	}
	a.Log.Info("restored", "files", counts[plan.Applied], "gone", counts[plan.Gone], "left_alone", counts[plan.Trampled],
		"refused", counts[plan.Refused])
	return first
}
