package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/golden"
	"plimsoll/internal/recent"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// web is a container with half a CPU that throttle events are subscribed to.
func web(change func(*report.Container)) report.Container {
	c := report.Container{Cgroup: "/pods/web/main", Name: "default/web/main", Pod: "default/web", Runtime: "containerd",
		Level:    "container",
		Strategy: strategy.Strategy{Policy: strategy.Auto, CPUBurstPercent: 1000, CFSQuotaBurstPercent: 300},
		Limit:    50 * ms, Period: 100 * ms, Since: t0.Add(-time.Hour),
		Quota: report.Knob{Original: 50 * ms, Requested: 50 * ms, InForce: 50 * ms}, Why: "nothing to do",
		Burst: report.Knob{Requested: 50 * ms, InForce: 50 * ms, Changed: true},
		Totals: report.Totals{Usage: time.Hour, ThrottledWall: time.Minute, Throttled: 1000, Refills: 5,
			Events: &report.Throttles{}}}
	if change != nil {
		change(&c)
	}
	return c
}

func status(at time.Duration, list ...report.Container) report.Status {
	return report.Status{Schema: report.StatusSchema, Version: "1", Kernel: "6.18", Cgroup: "v2", Mode: report.Active,
		Started: t0.Add(-time.Hour),
		Now:     t0.Add(at), Node: report.Node{State: "idle", CPUs: 4, Capacity: 4, Used: 1,
			Threshold: 2}, Events: report.Events{Subscribed: true}, Containers: list}
}

func recordingSince(at time.Duration) *Recording { return &Recording{Since: t0.Add(at)} }

// lost is what has been lost and counted since the first snapshot.
func lost(d time.Duration, throttled int64) func(*report.Container) {
	return func(c *report.Container) { c.Totals.ThrottledWall += d; c.Totals.Throttled += throttled }
}

// TestWindow: what is shown are differences over the last minute, less after a start, and anew with another agent or
// container.
func TestWindow(t *testing.T) {
	var tr Tracker
	check := func(what string, v View, window, want time.Duration) {
		t.Helper()
		if len(v.Rows) != 1 || v.Window != window || v.Rows[0].Lost == nil || *v.Rows[0].Lost != want {
			t.Errorf("%s: window %v, %+v; want %v lost in %v", what, v.Window, v.Rows, want, window)
		}
	}
	if v := tr.Add(status(0, web(nil)), nil, nil); v.Window != 0 || v.Rows[0].Lost != nil ||
		v.Rows[0].Throttled != nil || !strings.Contains(v.Sentence, "Just begun") {
		t.Errorf("the first snapshot says nothing of a minute: %+v", v)
	}
	check("after 2 s", tr.Add(status(2*time.Second, web(lost(time.Second, 10))), nil, nil), 2*time.Second, time.Second)
	for s := range 70 {
		tr.Add(status(time.Duration(3+s)*time.Second, web(lost(time.Second, 10))), nil, nil)
	}
	check("after more than a minute", tr.Add(status(73*time.Second, web(lost(3*time.Second, 30))), nil, nil), Window,
		2*time.Second)
	check("when that is in the window alone", tr.Add(status(132*time.Second, web(lost(3*time.Second, 30))), nil, nil),
		Window, 2*time.Second)
	check("when it has left the window", tr.Add(status(134*time.Second, web(lost(3*time.Second, 30))), nil, nil),
		Window, 0)
	other := status(136*time.Second, web(lost(-time.Minute, -1000)))
	other.Started = t0.Add(135 * time.Second)
	if v := tr.Add(other, nil, nil); v.Window != 0 || v.Rows[0].Lost != nil {
		t.Errorf("another agent: %+v", v)
	}
	other = status(137*time.Second, web(lost(-time.Minute+ms, -999)))
	other.Started = t0.Add(135 * time.Second)
	check("another agent", tr.Add(other, nil, nil), time.Second, ms)
}

// TestGap: what was lost while no snapshot came for more than a minute is not that of the last minute, and neither is
// what was counted before the clock was set back.
func TestGap(t *testing.T) {
	for _, gap := range []time.Duration{10 * time.Minute, Window + 1, -ms} {
		var tr Tracker
		tr.Add(status(0, web(nil)), nil, nil)
		tr.Add(status(time.Second, web(nil)), nil, nil)
		after := status(time.Second+gap, web(lost(5*time.Minute, 3000)))
		if v := tr.Add(after, nil, nil); v.Window != 0 || v.Rows[0].Lost != nil {
			t.Errorf("after a gap of %v: %v lost in %v", gap, v.Rows[0].Lost, v.Window)
		}
	}
}

// TestNewContainer: what a container has counted since it came is all in the window.
func TestNewContainer(t *testing.T) {
	var tr Tracker
	tr.Add(status(0), nil, nil)
	fresh := web(func(c *report.Container) {
		c.Since = t0.Add(500 * ms)
		c.Totals = report.Totals{Usage: 250 * ms, ThrottledWall: 200 * ms, Throttled: 4}
	})
	v := tr.Add(status(time.Second, fresh), nil, nil)
	if r := v.Rows[0]; *r.Lost != 200*ms || *r.Throttled != 4 || r.Used == nil || *r.Used != 0.5 || r.Peak != nil ||
		r.Tokens != nil {
		t.Errorf("%+v", r)
	}
	if v := tr.Add(status(2*time.Second), nil, nil); len(v.Rows) != 0 || !strings.Contains(v.Sentence, "No container") {
		t.Errorf("it is gone: %+v", v)
	}
	again := web(func(c *report.Container) {
		c.Since = t0.Add(2500 * ms)
		c.Totals = report.Totals{ThrottledWall: 10 * ms}
	})
	if v := tr.Add(status(3*time.Second, again), nil, nil); *v.Rows[0].Lost != 10*ms {
		t.Errorf("another container of the same path: %+v", v.Rows[0])
	}
}

// TestMeasured: the use of limited containers comes from their periods, a peak is that of the window, and what is not
// measured is null.
func TestMeasured(t *testing.T) {
	var tr Tracker
	free := web(func(c *report.Container) {
		c.Cgroup, c.Name, c.Limit, c.Quota.InForce, c.Quota.Requested =
			"/free", "free", cpu.Unlimited, cpu.Unlimited, cpu.Unlimited
	})
	unwatched := web(func(c *report.Container) { c.Cgroup, c.Name, c.Totals.Events = "/unwatched", "unwatched", nil })
	idle := web(func(c *report.Container) { c.Cgroup, c.Name = "/sleeper", "sleeper" })
	list := []report.Container{web(nil), free, unwatched, idle}
	period := func(at time.Duration, used int32) recent.Period {
		return recent.Period{End: t0.Add(at).UnixMilli(), Used: used, Quota: 50_000}
	}
	tr.Add(status(0, list...), recordingSince(0), nil)
	v := tr.Add(status(time.Second, list...), recordingSince(0),
		map[string][]recent.Period{"/pods/web/main": {period(900*ms, 45_000)}})
	if r := rowOf(t, v, "/pods/web/main"); r.Peak != nil {
		t.Errorf("the recording has hardly begun: %+v", r)
	}
	v = tr.Add(status(2*time.Second, list...), recordingSince(0),
		map[string][]recent.Period{"/pods/web/main": {period(1100*ms, 20_000), period(1200*ms, 10_000)}})
	if r := rowOf(t, v, "/pods/web/main"); r.Used == nil || *r.Used < 0.029 || *r.Used > 0.031 || r.Peak == nil ||
		*r.Peak != 0.45 {
		t.Errorf("30 ms in the last second, at most 45 ms in a period: %+v", r)
	}
	if r := rowOf(t, v, "/sleeper"); r.Used == nil || *r.Used != 0 || r.Peak == nil || *r.Peak != 0 || r.Tokens != nil {
		t.Errorf("it sleeps, which is measured: %+v", r)
	}
	for _, id := range []string{"/free", "/unwatched"} {
		if r := rowOf(t, v, id); r.Peak != nil || r.Tokens != nil {
			t.Errorf("%s: its periods are not measured: %+v", id, r)
		}
	}
	if r := rowOf(t, v, "/free"); r.Limit != nil || r.Quota != nil || r.QuotaAsked != nil {
		t.Errorf("no limit is null: %+v", r)
	}
	v = tr.Add(status(62*time.Second, list...), recordingSince(0), nil)
	if r := rowOf(t, v, "/pods/web/main"); *r.Peak != 0 || *r.Used != 0 {
		t.Errorf("the periods have left the window: %+v", r)
	}
	if v := tr.Add(status(63*time.Second, list...), nil, nil); rowOf(t, v, "/sleeper").Peak != nil {
		t.Error("the recording has ended, and a peak is shown")
	}
}

func rowOf(t *testing.T, v View, id string) Row {
	t.Helper()
	for _, r := range v.Rows {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("no row %s: %+v", id, v.Rows)
	return Row{}
}

// TestUsageIsReadSeldom: a use stays while the agent has not read the group again,
// and is 0 when it has not changed for long.
func TestUsageIsReadSeldom(t *testing.T) {
	var r rate
	for _, c := range []struct {
		at, usage time.Duration
		want      float64 // -1: not known
	}{{0, time.Second, -1}, {time.Second, 1500 * ms, 0.5}, {2 * time.Second, 1500 * ms, 0.5},
		{5 * time.Second, 2500 * ms, 0.25},
		{35 * time.Second, 2500 * ms, 0.25}, {38 * time.Second, 2500 * ms, 0}, {39 * time.Second, time.Second, -1}} {
		r.take(t0.Add(c.at), c.usage)
		if got := r.cpus; got == nil && c.want >= 0 || got != nil && *got != c.want {
			t.Errorf("after %v: %v, want %v", c.at, got, c.want)
		}
	}
}

// TestCauses: one word for each, and a sentence that says it.
func TestCauses(t *testing.T) {
	no, now := time.Duration(0), t0
	set := func(f func(*report.Container)) func(*report.Status) {
		return func(s *report.Status) { f(&s.Containers[0]) }
	}
	cut := func(share float64, f func(*report.Container)) func(*report.Status) {
		return func(s *report.Status) {
			s.Node.Risk = &report.Risk{Share: share}
			f(&s.Containers[0])
		}
	}
	for _, c := range []struct {
		want   Cause
		change func(*report.Status)
		says   string
	}{
		{OwnLimit, func(*report.Status) {},
			"default/web/main lost 3.2 s of the last minute: throttled by its own limit of 0.5 CPUs."},
		{Held, func(s *report.Status) { s.Mode = report.Held }, "CPUs; the agent is held"},
		{Paused, set(func(c *report.Container) { c.Paused = &now }), "CPUs; it is paused"},
		{PolicyNone, set(func(c *report.Container) { c.Strategy.Policy = strategy.None }), "CPUs; its policy is none"},
		{Refused, set(func(c *report.Container) { c.Burst.Problem = "EINVAL" }), "refused"},
		{AtCap, set(func(c *report.Container) { c.Totals.AtCap = 3 }), "all that its policy permits"},
		{AtCap, cut(1, func(c *report.Container) { c.Totals.AtCap = 3 }), "all that its policy permits"},
		{LoadLine, cut(0.5, func(c *report.Container) { c.Totals.AtCap = 3 }),
			"load line cuts what its policy permits"},
		{AtCap, cut(0.5, func(c *report.Container) { c.Totals.AtCap, c.Strategy.CFSQuotaBurstPercent = 3, 100 }),
			"policy permits"},
		{LoadLine, cut(0.5, func(c *report.Container) { c.Strategy.Policy = strategy.CPUBurstOnly }), "load line cuts"},
		{OwnLimit, cut(0.5, func(*report.Container) {}), "its own limit of 0.5 CPUs."},
		{ExtraCores, func(s *report.Status) {
			cut(0.5, func(c *report.Container) { c.Totals.AtCap = 3 })(s)
			s.Cuts = []report.Cut{{Object: "default/web/main", Bound: "extraCoresPerPod"}}
		}, "an administrator's bound on CPUs above limits is used up"},
		{Budget, set(func(c *report.Container) { c.BudgetLeft = &no }), "is used up"},
		{Guard, func(s *report.Status) { s.Node.State = "overload" }, "nothing to spare"},
		{Guard, func(s *report.Status) { s.Node.State = "cooling" }, "nothing to spare"},
		{RefillsOff, func(s *report.Status) { s.Events.RefillsOff = &now }, "no effect here"},
		{RefillsOff, set(func(c *report.Container) { c.RefillsOff = &now }), "no effect here"},
		{OwnLimit, set(func(c *report.Container) { c.Limit = 100 * ms }), "its own limit of 1 CPU."},
		{Held, func(s *report.Status) {
			s.Mode = report.Held
			s.Containers[0].Paused = &now
			s.Node.State = "overload"
		}, "held"},
	} {
		var tr Tracker
		tr.Add(status(0, web(nil)), nil, nil)
		s := status(Window, web(lost(3200*ms, 40)))
		c.change(&s)
		v := tr.Add(s, nil, nil)
		if got := v.Rows[0].Cause; got != c.want || !strings.Contains(v.Sentence, c.says) {
			t.Errorf("%q, %s; want %q and %q", got, v.Sentence, c.want, c.says)
		}
		if strings.Contains(v.Sentence, "neighbour") {
			t.Errorf("a throttle is blamed on a neighbour: %s", v.Sentence)
		}
	}
	var tr Tracker
	tr.Add(status(0, web(nil)), nil, nil)
	if v := tr.Add(status(30*time.Second, web(func(c *report.Container) { c.Quota.Problem = "refused" })), nil,
		nil); v.Rows[0].Cause != NoCause ||
		v.Sentence != "Nobody stood still in the last 30 s." || v.Rows[0].Problem != "refused" {
		t.Errorf("nobody stood still: %s %+v", v.Sentence, v.Rows[0])
	}
}

// TestCauseIsOfWhatWasLost: the cause of a minute is as of when most of it was lost, and not as of now. The sentence
// says until when time was lost.
func TestCauseIsOfWhatWasLost(t *testing.T) {
	type turn struct {
		at    time.Duration
		lost  time.Duration // since the begin
		state string        // of the node
	}
	for _, c := range []struct {
		name  string
		turns []turn
		want  Cause
		now   Cause
		says  string
	}{
		{"the node was full, and is not any more", []turn{{5 * time.Second, time.Second, "overload"},
			{20 * time.Second, time.Second, "idle"}}, Guard, NoCause,
			"default/web/main lost 1.0 s of the last 20 s: throttled by its own limit of 0.5 CPUs until 15 s ago; " +
				"the node had nothing to spare."},
		{"the node is full, and was not", []turn{{5 * time.Second, time.Second, "idle"},
			{6 * time.Second, time.Second, "overload"}}, OwnLimit, OwnLimit,
			"default/web/main lost 1.0 s of the last 6 s: throttled by its own limit of 0.5 CPUs."},
		{"the node is full", []turn{{5 * time.Second, time.Second, "overload"},
			{6 * time.Second, 2 * time.Second, "overload"}}, Guard, Guard,
			"default/web/main lost 2.0 s of the last 6 s: throttled by its own limit of 0.5 CPUs; the node has " +
				"nothing to spare."},
		{"the larger part counts", []turn{{5 * time.Second, 2 * time.Second, "overload"},
			{6 * time.Second, 3 * time.Second, "idle"}}, Guard, OwnLimit,
			"default/web/main lost 3.0 s of the last 6 s: throttled by its own limit of 0.5 CPUs; the node had " +
				"nothing to spare."},
		{"of the window", []turn{{5 * time.Second, 2 * time.Second, "overload"},
			{20 * time.Second, 3 * time.Second, "idle"}, {70 * time.Second, 3 * time.Second, "idle"}}, OwnLimit,
			NoCause,
			"default/web/main lost 1.0 s of the last minute: throttled by its own limit of 0.5 CPUs until 50 s ago."},
		{"nothing in the window", []turn{{5 * time.Second, time.Second, "overload"},
			{30 * time.Second, time.Second, "idle"}, {66 * time.Second, time.Second, "idle"}}, NoCause, NoCause,
			"Nobody stood still in the last minute."},
	} {
		var tr Tracker
		v := tr.Add(status(0, web(nil)), nil, nil)
		for _, turn := range c.turns {
			s := status(turn.at, web(lost(turn.lost, int64(turn.lost/time.Second))))
			s.Node.State = turn.state
			v = tr.Add(s, nil, nil)
		}
		if r := v.Rows[0]; r.Cause != c.want || r.CauseNow != c.now || v.Sentence != c.says ||
			(r.LastLost == nil) != (c.want == NoCause) {
			t.Errorf("%s: %q, now %q, last %v: %s", c.name, r.Cause, r.CauseNow, r.LastLost, v.Sentence)
		}
	}
}

// TestWaitsAreNamed: who waited behind neighbours is said to have done so where no limit took any time, and only there.
func TestWaitsAreNamed(t *testing.T) {
	waits := func(behind, limit time.Duration) func(*report.Container) {
		return func(c *report.Container) {
			c.Totals.Waited = &report.Waited{Waits: []report.Wait{{Cause: report.CauseNeighbour, Time: behind},
				{Cause: report.CauseOwnLimit, Time: limit}}}
		}
	}
	for _, c := range []struct {
		behind, limit, lost time.Duration
		want                string
	}{
		{2100 * ms, 0, 0,
			"Nobody was throttled in the last minute; the threads of default/web/main waited 2.1 s for CPUs that " +
				"neighbours had."},
		{2100 * ms, 9 * time.Second, 3 * time.Second,
			"default/web/main lost 3.0 s of the last minute: throttled by its own limit of 0.5 CPUs."},
		{100 * ms, 0, 0, "Nobody stood still in the last minute."},
		{0, 9 * time.Second, 0, "Nobody stood still in the last minute."},
	} {
		var tr Tracker
		tr.Add(status(0, web(waits(time.Hour, time.Hour))), nil, nil)
		v := tr.Add(status(Window, web(func(r *report.Container) {
			waits(time.Hour+c.behind, time.Hour+c.limit)(r)
			lost(c.lost, int64(c.lost/time.Second))(r)
		})), nil, nil)
		if v.Sentence != c.want {
			t.Errorf("%+v: %s", c, v.Sentence)
		}
	}
}

// TestPods: a pod's figures are in its containers' rows. It has a row of its own only where it alone has a limit.
func TestPods(t *testing.T) {
	pod := func(change func(*report.Container)) report.Container {
		return web(func(c *report.Container) {
			c.Cgroup, c.Name, c.Pod, c.Level, c.Limit = "/pods/web", "default/web", "", "pod", 100*ms
			if change != nil {
				change(c)
			}
		})
	}
	side := func(limit time.Duration) report.Container {
		return web(func(c *report.Container) {
			c.Cgroup, c.Name, c.Limit = "/pods/web/side", "default/web/side", limit
		})
	}
	for _, c := range []struct {
		name    string
		limit   time.Duration // of the sidecar
		pod     func(*report.Container)
		ids     string
		causes  string
		says    string
		refills int64
	}{
		{"all have limits", 50 * ms, nil, "/pods/web/main /pods/web/side", "own-limit ", "its own limit", 0},
		{"the pod loses more", 50 * ms, func(c *report.Container) { lost(5*time.Second, 50)(c); c.Totals.Refills += 7 },
			"/pods/web/main /pods/web/side", "pod-limit pod-limit",
			"default/web/main lost 5.0 s of the last minute: throttled by the limit of its pod", 7},
		{"the pod alone limits the sidecar", cpu.Unlimited, lost(5*time.Second, 50),
			"/pods/web /pods/web/main /pods/web/side", "pod-limit own-limit ",
			"default/web lost 5.0 s of the last minute: throttled by its own limit of 1 CPU", 0},
	} {
		var tr Tracker
		tr.Add(status(0, web(nil), pod(nil), side(c.limit)), nil, nil)
		v := tr.Add(status(Window, web(lost(time.Second, 10)), pod(c.pod), side(c.limit)), nil, nil)
		var ids, causes []string
		for _, r := range v.Rows {
			ids, causes = append(ids, r.ID), append(causes, string(r.Cause))
		}
		if got := strings.Join(ids, " "); got != c.ids || strings.Join(causes, " ") != c.causes ||
			!strings.Contains(v.Sentence, c.says) {
			t.Errorf("%s: %s, %q, %s", c.name, got, causes, v.Sentence)
		}
		if got := *rowOf(t, v, "/pods/web/main").Refills; got != c.refills {
			t.Errorf("%s: %d refills, want %d", c.name, got, c.refills)
		}
	}
}

// TestGolden holds the JSON of a view and of a detail.
func TestGolden(t *testing.T) {
	tr := Tracker{Node: "node-1"}
	s := status(0, web(nil))
	tr.Add(s, recordingSince(0), nil)
	s = status(Window, web(lost(3200*ms, 40)))
	s.Events.Missing = []report.MissingPart{{Part: "forecast", Lost: "throttles are not foreseen",
		Why: "the verifier says no"}}
	s.Waits = &report.Waits{Problem: "no BTF", Ranks: []report.RankWaits{}}
	s.Problems = []string{"something; hint: do"}
	s.Containers[0].Totals.Waited = &report.Waited{Wanted: 10 * time.Second, Received: 4 * time.Second,
		Waits: []report.Wait{
			{Cause: report.CauseNeighbour, Time: time.Second}, {Cause: report.CauseOwnLimit,
				Time: 5 * time.Second}, {Cause: report.CauseKernel}}}
	periods := []recent.Period{}
	for i := range 20 {
		p := recent.Period{End: t0.Add(Window - 2*time.Second + time.Duration(i)*100*ms).UnixMilli(), Quota: 50_000,
			Burst: 50_000, Used: int32(i%4) * 15_000}
		if i%4 == 3 {
			p.Throttles, p.Lost, p.Used = 1, 30_000, 50_000
		}
		periods = append(periods, p)
	}
	v := tr.Add(s, recordingSince(0), map[string][]recent.Period{"/pods/web/main": periods})
	recorded(t, "view.json", v)
	recorded(t, "detail.json", NewDetail(v.Rows[0], v.Recording, Notes(s, v.Rows)[0], periods))
}

func recorded(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, name, string(got)+"\n")
}

// TestChangedFiles: the files of all groups that are kept off exclusive CPUs count, not only those of the container.
func TestChangedFiles(t *testing.T) {
	s := status(0, web(func(c *report.Container) { c.Quota.Changed = true }))
	s.Reserve = &report.Reserve{Exclusive: []report.ExclusiveCPUs{{Cgroup: "/pods/web/main"}}, Changed: 5}
	if n := changed(s); n != 7 {
		t.Errorf("%d files, want quota, burst and five of cpusets", n)
	}
}

// TestUndoFindsTheAgent: the command that is shown undoes what this agent has changed, when it is copied.
func TestUndoFindsTheAgent(t *testing.T) {
	for flags, want := range map[string]string{"": "plimsoll restore",
		"--state-dir /run/lab": "plimsoll restore --state-dir /run/lab"} {
		var tr Tracker
		v := tr.Add(status(0, web(func(c *report.Container) { c.Quota.Changed = true })).Reached(flags), nil, nil)
		if v.Mark.Undo != want || v.Flags != flags {
			t.Errorf("%q, %q; want %q", v.Mark.Undo, v.Flags, want)
		}
	}
}
