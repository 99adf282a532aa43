package outcome

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/observe"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
)

// Account is the record of one group.
type Account struct {
	*observe.Group
	QuotaOurs  bool // the file held a value of ours at the last reading
	BurstOurs  bool
	tooLow     bool
	limit      time.Duration
	period     time.Duration
	quota      report.Knob
	burst      report.Knob
	budgetLeft *time.Duration
	why        string
	refillsOff *time.Time
	totals     report.Totals
	saving     saving
	throttles  throttles
	undone     time.Duration // the quota in force although its owner may have written another one; 0: none
	bounded    policy.Bounded
	boundedAt  time.Time // when a bound kept it from more last
	logged     []string  // outcomes that were logged
}

// First says whether a message about the group is logged for the first time.
func (g *Account) First(what string) bool {
	if slices.Contains(g.logged, what) {
		return false
	}
	g.logged = append(g.logged, what)
	return true
}

func (g *Account) knob(knob plan.Knob) *report.Knob {
	if knob == plan.Burst {
		return &g.burst
	}
	return &g.quota
}

// view records the decision for one group and its usage since the last reading.
func (r *Recorder) view(now time.Time, g *Account, v policy.View) {
	g.limit, g.period, g.why = v.Limit.Quota, v.Limit.Period, v.Why
	g.quota.Original, g.quota.Requested, g.quota.InForce = v.Limit.Quota, v.RequestedQuota, g.Disk.Quota
	g.burst.Original, g.burst.Requested, g.burst.InForce = v.Limit.Burst, v.RequestedBurst, g.Disk.Burst
	g.burst.Clamped = g.BurstOurs && g.Disk.Burst < v.RequestedBurst
	change(&g.quota, g.QuotaOurs, now)
	change(&g.burst, g.BurstOurs, now)
	r.tooLow(g, v.LimitTooLow)
	r.writtenAgain(g)
	if v.Bounded.By != "" {
		g.bounded, g.boundedAt = v.Bounded, now
		r.bounded = append(r.bounded, g)
	}
	if v.AtCap > 0 {
		g.totals.AtCap++
		g.totals.AtCapWall += v.AtCap
	}
	g.budgetLeft = nil
	if v.BudgetLeft != cpu.Unlimited {
		left := v.BudgetLeft
		g.budgetLeft = &left
	}
	if v.Window.Elapsed() > 0 {
		addTotals(&g.totals, v, g.quota.Changed)
	}
}

// Above adds CPU time that the group has used above its limit.
func (g *Account) Above(used time.Duration) { g.totals.AboveLimit += used }

// tooLow reports, once, that a limit is too low.
func (r *Recorder) tooLow(g *Account, now bool) {
	if now == g.tooLow {
		return
	}
	g.tooLow = now
	key := g.Path + " limit"
	if !now {
		r.Problem(key, "")
		return
	}
	r.Problem(key, fmt.Sprintf(report.ProblemLimitTooLow, r.called(g.ID)))
	r.log.Warn("the limit is too low", "cgroup", g.Path, "limit", g.limit, "period", g.period)
}

func change(k *report.Knob, ours bool, now time.Time) {
	switch {
	case ours && !k.Changed:
		since := now // now itself would escape to the heap at each call
		k.Since = &since
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

// result records the result of a change. It logs a repeated outcome once.
func (r *Recorder) result(now time.Time, g *Account, x plan.Result) {
	c := x.Change
	k := g.knob(c.Knob)
	if !c.Refill && (x.Outcome == plan.Applied || x.Outcome == plan.Clamped) {
		r.applied(now, g, k, x)
	}
	key, problem := g.Path+" "+string(c.Knob), ""
	switch x.Outcome {
	case plan.Refused:
		problem = fmt.Sprintf(report.ProblemRefused, r.called(g.ID), c.Knob, c.To, x.Err)
	case plan.Trampled:
		problem = fmt.Sprintf(report.ProblemTrampled, r.called(g.ID), c.Knob, c.To, x.Err)
	}
	if problem != "" && problem != r.problems[key] {
		r.log.Warn("write", "cgroup", g.Path, "knob", c.Knob, "from", c.From, "to", c.To, "outcome", x.Outcome, "error",
			x.Err)
	}
	r.Problem(key, problem)
	k.Problem = problem
}

func (r *Recorder) applied(now time.Time, g *Account, k *report.Knob, x plan.Result) {
	from, _ := x.Change.From.Time()
	in, err := x.InForce.Time()
	if err != nil {
		return
	}
	k.InForce = in
	if x.Change.Knob == plan.Quota && in > from {
		g.totals.Raises++
	}
	change(k, in != k.Original, now)
	level := slog.LevelDebug
	if g.First(string(x.Change.Knob) + " " + string(x.Outcome)) { // the first of its kind
		level = slog.LevelInfo
	}
	r.log.Log(context.Background(), level, "write", "cgroup", g.Path, "knob", x.Change.Knob, "from", x.Change.From,
		"to", x.Change.To, "in_force", x.InForce, "why", x.Change.Why)
}

// idleSandbox says that nobody asks for the group: each pod has one, which works for nobody and cannot be throttled.
func (g *Account) idleSandbox() bool {
	return g.Sandbox && !g.Disk.Limited() && !g.quota.Changed && !g.burst.Changed
}

// counted is the status of the group with its throttles.
func (g *Account) counted(now time.Time, t report.Throttles, watched bool,
	scheduled report.Throttles) report.Container {
	c := g.container(now)
	g.throttles.add(t, watched, scheduled.Wall, &c.Totals)
	addThrottles(scheduled, &c.Totals)
	return c
}

// container is the status of the group without what is counted of its throttles.
func (g *Account) container(now time.Time) report.Container {
	g.totals.WallSaved += g.saving.by(now)
	c := report.Container{Cgroup: g.Path, Name: g.Name, Pod: g.Pod, Runtime: g.Runtime, Level: string(g.Level),
		Strategy: g.Strategy, Request: g.Request, Since: g.Since, LimitFrom: "cgroup", Limit: g.limit, Period: g.period,
		Quota: g.quota, Burst: g.burst, BudgetLeft: g.budgetLeft, Why: g.why, TooLow: g.tooLow,
		RefillsOff: g.refillsOff, Totals: g.totals}
	if g.Declared != nil {
		c.LimitFrom = g.Declared.Source
	}
	return c
}

// addThrottles adds the throttles that a scheduler has counted. Without eBPF the time lost is estimated from the
// counters, which include the scheduler's part already.
func addThrottles(t report.Throttles, totals *report.Totals) {
	switch {
	case t.Begun == 0 && t.Peak == 0:
	case totals.Events == nil:
		only := t // t itself would escape to the heap at each call
		totals.Events = &only
	default:
		sum := totals.Events.Plus(t)
		totals.Events = &sum
		totals.ThrottledWall += t.Wall
	}
}

// boundedFor is for how long it is told that a bound kept a group from more.
const boundedFor = 10 * time.Second

// Cuts lists the groups that bounds on CPUs above limits have kept from more of late, in any order.
func (r *Recorder) Cuts(now time.Time) []report.Cut {
	var list []report.Cut
	for _, g := range r.groups {
		if b := g.bounded; b.By != "" && now.Sub(g.boundedAt) < boundedFor {
			list = append(list, report.Cut{Object: g.Name, Key: "CPUs above the limit",
				Asked: fmt.Sprintf("%.2f", b.Asked), Given: fmt.Sprintf("%.2f", b.Given), Bound: b.By})
		}
	}
	return list
}
