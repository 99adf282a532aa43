package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/probe"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

const ms = time.Millisecond

func TestLengths(t *testing.T) {
	end := func(since, at time.Duration) probe.Event {
		return probe.Event{Group: 1, Kind: probe.End, Since: since, At: at}
	}
	begin := func(group uint64, at, used, held time.Duration) probe.Event {
		return probe.Event{Group: group, Kind: probe.Begin, Since: at, At: at,
			Facts: probe.Facts{Quota: 5 * ms, Used: used, Runtime: ms / 2, OnCPUs: held}}
	}
	all, endable := lengths([]probe.Event{
		end(5*ms, 99*ms), // before the window
		begin(1, 100*ms, 5*ms, 0),
		end(90*ms, 100*ms), // in its first instant; its begin was before the lab listened
		begin(1, 120*ms, 9*ms, ms/2),
		end(120*ms, 123*ms), // in it, with just enough for another quota below 15 ms
		begin(1, 130*ms, 9*ms, ms),
		begin(2, 130*ms, 0, 0),
		end(130*ms, 180*ms), // at the cap, by the runtime of a CPU
		begin(1, 181*ms, probe.NoUse, 9*ms),
		end(181*ms, 182*ms), // unknown
		begin(1, 190*ms, 0, 0),
		end(190*ms, 200*ms), // after it
	}, 5*ms, 100*ms, 200*ms)
	if diff := cmp.Diff([]time.Duration{ms, 3 * ms, 10 * ms, 50 * ms}, all); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]time.Duration{ms, 3 * ms, 10 * ms}, endable); diff != "" {
		t.Errorf("those that may be ended: %s", diff)
	}
}

func TestSum(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * ms
	}
	for _, c := range []struct {
		sorted []time.Duration
		want   lost
	}{
		{nil, lost{}},
		{[]time.Duration{7 * ms}, lost{Throttles: 1, Median: 7 * ms, P99: 7 * ms, Mean: 7 * ms, Total: 7 * ms}},
		{[]time.Duration{ms, 2 * ms, 9 * ms}, lost{Throttles: 3, Median: 2 * ms, P99: 9 * ms, Mean: 4 * ms,
			Total: 12 * ms}},
		{hundred, lost{Throttles: 100, Median: 50 * ms, P99: 99 * ms, Mean: 50*ms + ms/2, Total: 5050 * ms}},
	} {
		if diff := cmp.Diff(c.want, sum(c.sorted)); diff != "" {
			t.Errorf("%d lengths:\n%s", len(c.sorted), diff)
		}
	}
}

func TestBetween(t *testing.T) {
	status := func(cpu time.Duration, refills, writes int64) report.Status {
		return report.Status{
			Self:   report.Self{CPU: cpu},
			Events: report.Events{Subscribed: true, Refills: refills, DelayP50: ms, DelayP99: 2 * ms},
			Writes: report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{plan.Burst: {plan.Applied: writes,
				plan.Refused: 50}}},
		}
	}
	got := between(reading{at: time.Second, tally: tally{2, 10 * ms, 1}, used: time.Second,
		status: status(100*ms, 5, 9)},
		reading{at: 3 * time.Second, tally: tally{7, 50 * ms, 1}, used: 2 * time.Second, status: status(120*ms, 9, 49)},
		lost{Throttles: 5, Total: 40 * ms}, lost{Throttles: 4, Total: 4 * ms})
	want := outcome{Subscribed: true, Lost: lost{Throttles: 5, Total: 40 * ms},
		Endable: lost{Throttles: 4, Total: 4 * ms}, Tally: tally{5, 40 * ms, 0}, Refills: 4,
		DelayP50: ms, DelayP99: 2 * ms, LostPerSecond: 0.02, Writes: 20, AgentCPU: 0.01, GroupsCPU: 0.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// good is a result that keeps all promises.
func good() *result {
	idle := report.Node{State: "idle"}
	few := lost{Throttles: 600, Median: ms / 4, P99: 2 * ms, Mean: ms / 3, Total: 200 * ms}
	long := lost{Throttles: 500, Median: 50 * ms, P99: 95 * ms, Mean: 45 * ms, Total: 22500 * ms}
	subscribed := outcome{Subscribed: true, Lost: few, Endable: few, Tally: tally{Ends: 600}, Refills: 590,
		DelayP50: ms / 10, DelayP99: ms, Node: idle}
	polled := outcome{Lost: long, Endable: long, Tally: tally{Ends: 500}, Node: idle}
	return &result{Groups: 16, Seconds: 20, Policy: "auto", Behind: true,
		Scenarios: []scenario{{Events: subscribed, Polled: polled}, {Loaded: true, Events: subscribed, Polled: polled}}}
}

func TestFigures(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(subscribed, polled *outcome) // unloaded
		missed, not int
	}{
		"all met":      {func(subscribed, polled *outcome) {}, 0, 0},
		"few":          {func(subscribed, polled *outcome) { subscribed.Lost.Throttles = 499 }, 1, 0},
		"few, polled":  {func(subscribed, polled *outcome) { polled.Lost.Throttles = 499 }, 1, 0},
		"late median":  {func(subscribed, polled *outcome) { subscribed.DelayP50 = 501 * time.Microsecond }, 1, 0},
		"late tail":    {func(subscribed, polled *outcome) { subscribed.DelayP99 = 5001 * time.Microsecond }, 1, 0},
		"short median": {func(subscribed, polled *outcome) { polled.Lost.Median = 4 * ms }, 1, 0},
		"median":       {func(subscribed, polled *outcome) { subscribed.Endable.Median = 3 * ms }, 1, 0},
		"tail":         {func(subscribed, polled *outcome) { subscribed.Endable.P99 = 5 * ms }, 1, 0},
		"mean":         {func(subscribed, polled *outcome) { subscribed.Endable.Mean = 3 * ms }, 1, 0},
		"at the cap": {func(subscribed, polled *outcome) { subscribed.Lost.Mean, subscribed.Lost.P99 = 13*ms, 86*ms },
			0, 0},
		"all at it": {func(subscribed, polled *outcome) { subscribed.Endable = lost{} }, 0, 3},
		"polling": {func(subscribed, polled *outcome) { subscribed.Subscribed, subscribed.Refills = false, 0 }, 0,
			10},
		"no refill": {func(subscribed, polled *outcome) { subscribed.Refills = 0 }, 0, 2},
	} {
		r := good()
		c.change(&r.Scenarios[0].Events, &r.Scenarios[0].Polled)
		missed, not := 0, 0
		for _, f := range r.Aims() {
			switch {
			case !f.Measured:
				not++
			case !f.Met():
				missed++
			}
		}
		if missed != c.missed || not != c.not {
			t.Errorf("%s: %d missed, %d not measured; want %d, %d", name, missed, not, c.missed, c.not)
		}
	}
}

// TestFiguresAhead: of quotas from 20 ms on it counts how many throttles begin at all, and few are not a failure.
func TestFiguresAhead(t *testing.T) {
	for begun, missed := range map[int]int{0: 0, 5: 0, 6: 1} {
		r := good()
		r.Quota = foreseen
		r.Scenarios = r.Scenarios[:1]
		r.Scenarios[0].Events.Lost.Throttles = begun
		for _, f := range r.Aims() {
			if f.Measured && !f.Met() {
				missed--
			}
		}
		if missed != 0 {
			t.Errorf("%d of 500: %d missed more than that", begun, -missed)
		}
	}
}

func TestText(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*result)
		want   string
	}{
		"good":       {func(*result) {}, "behind by the kernel (cpu.idle)"},
		"not behind": {func(r *result) { r.Behind = false }, "cannot keep behind"},
		"events lost": {func(r *result) { r.Scenarios[1].Events.Tally = tally{610, 2 * time.Second, 10} },
			"loaded, subscribed: the kernel's sums say 610 throttles, 100 ms lost a second, 10 events dropped"},
		"guard": {func(r *result) { r.Scenarios[0].Polled.Node.State = "cooling" },
			"unloaded, polling: the node was cooling"},
		"polling": {func(r *result) { r.Scenarios[0].Events = outcome{Why: "not permitted"} },
			"not subscribed to throttle events: not permitted"},
		"nothing lost": {func(r *result) { r.Scenarios = []scenario{{}} }, "not measured"},
	} {
		r := good()
		c.change(r)
		var page bytes.Buffer
		if r.WriteText(&page); !strings.Contains(page.String(), c.want) {
			t.Errorf("%s: %q is missing in\n%s", name, c.want, page.String())
		}
		if strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "Inf") {
			t.Errorf("%s: not a number in\n%s", name, page.String())
		}
		if name == "good" && strings.Contains(page.String(), "Careful") {
			t.Errorf("a warning in\n%s", page.String())
		}
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("reaction", s, args)
}

func TestParseRefuses(t *testing.T) {
	if s, err := parse([]string{"-subscribed", "--ahead=false --realtime=false"}); err != nil || len(s.events) != 2 ||
		s.events[0] != "--ahead=false" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := parse(nil); err != nil || s.job.Worker >= 0 || s.groups != 100 || s.policy != "auto" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"-groups", "0"}, {"-groups", "501"}, {"-seconds", "0.5"}, {"-seconds", "601"},
		{"-policy", "none"}, {"-every", "1ms"},
		{"-policy", "cpuBurstOnly"}, {"-quota", "4ms"}, {"-quota", "1s"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
