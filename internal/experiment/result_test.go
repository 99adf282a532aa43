package experiment

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/golden"
	"plimsoll/internal/load"
	"plimsoll/internal/sample"
)

const ms = time.Millisecond

// slotOf makes a slot of ten seconds whose latencies lie between fast and slow.
func slotOf(mode Mode, round int, fast, slow time.Duration, throttled int64, used time.Duration) Slot {
	rng := rand.New(rand.NewPCG(uint64(round), 9))
	o := &load.Outcome{Latency: load.NewLatencies(), Late: ms}
	for range 60 {
		r := rng.Float64()
		o.Latency.Record(fast + time.Duration(r*r*r*r*float64(slow-fast)))
	}
	start := time.Unix(int64(100*round), 0)
	return Slot{Mode: mode, Load: o, NodeUse: used + time.Second/2, Lost: time.Duration(throttled) * 20 * ms,
		Usage: sample.Usage{From: start, To: start.Add(10 * time.Second), Used: used, Periods: 100,
			Throttled: throttled}}
}

// measured is a result as the demo has it.
func measured() *Result {
	var slots []Slot
	for round := range 3 {
		more := int64(round)
		slots = append(slots,
			slotOf("auto", round, 40*ms, 75*ms, 1, 2260*ms),
			slotOf("none", round, 40*ms, 330*ms, 20+more, 2230*ms),
			slotOf(Unlimited, round, 40*ms, 70*ms, 0, 2240*ms),
			slotOf(RequestsOnly, round, 40*ms, 96*ms, 0, 2240*ms),
			slotOf("cpuBurstOnly", round, 40*ms, 140*ms, 3+more, 2250*ms),
			slotOf("cfsQuotaBurstOnly", round, 40*ms, 110*ms, 4, 2300*ms))
	}
	r := summarize(slots, Modes())
	r.Conditions = Conditions{Version: "test", Kernel: "6.18.0", Cgroup: "v1", CPUs: 2, Limit: 0.5, Utilization: 0.45,
		Rate: 5.625, Work: 37.5, Seconds: 30, Rounds: 3, Seed: 1, CanBurst: true}
	return r
}

// measuredTwice has the second run without a limit, and what the agent did.
func measuredTwice() *Result {
	var slots []Slot
	for round := range 3 {
		for _, s := range []Slot{
			slotOf(Unlimited, round, 40*ms, 70*ms, 0, 2240*ms),
			slotOf(UnlimitedAgain, round+3, 40*ms, 74*ms, 0, 2240*ms),
			slotOf("none", round, 40*ms, 330*ms, 20, 2230*ms),
			slotOf("cfsQuotaBurstOnly", round, 40*ms, 72*ms, 0, 2300*ms),
			slotOf("auto", round, 40*ms, 90*ms, 0, 2260*ms),
		} {
			switch s.Mode {
			case "none":
				s.Ended = 200
			case "cfsQuotaBurstOnly":
				s.Lost, s.Writes, s.Ended = ms, 20, 3
			case "auto":
				s.Lost, s.Writes, s.Ended = 3*ms, 3, 1
			}
			slots = append(slots, s)
		}
	}
	r := summarize(slots, []Mode{Unlimited, UnlimitedAgain, "none", "cfsQuotaBurstOnly", "auto"})
	r.Conditions = measured().Conditions
	return r
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	measured().WriteText(&b)
	golden.File(t, "demo.txt", b.String())
}

func TestChart(t *testing.T) {
	var svg bytes.Buffer
	if err := measured().Chart().SVG(&svg); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "demo.svg", svg.String())
	for d := xml.NewDecoder(&svg); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
}

func TestFiguresText(t *testing.T) {
	var b bytes.Buffer
	WriteFigures(&b, measured().Figures())
	golden.File(t, "figures.txt", b.String())
}

func TestFiguresOfTwoRunsText(t *testing.T) {
	var b bytes.Buffer
	WriteFigures(&b, measuredTwice().Figures())
	golden.File(t, "figures-twice.txt", b.String())
}

// TestJSON holds the names that programs rely on.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(measured())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Modes []map[string]any `json:"modes"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Modes) != 6 {
		t.Fatalf("%d modes", len(got.Modes))
	}
	for i, m := range got.Modes {
		if m["name"] != string(Modes()[i]) {
			t.Errorf("mode %d is %v, want %s", i, m["name"], Modes()[i])
		}
		for _, name := range []string{"p50_ms", "p90_ms", "p99_ms", "mean_ms", "throttled_ratio", "cpu_cores",
			"requests", "errors"} {
			if _, ok := m[name].(float64); !ok {
				t.Errorf("mode %v: %s is %v, want a number", m["name"], name, m[name])
			}
		}
	}
}

func TestSummarize(t *testing.T) {
	a := slotOf("none", 0, 40*ms, 41*ms, 10, 2*time.Second)
	b := slotOf("none", 1, 40*ms, 41*ms, 40, 3*time.Second)
	b.Usage.Periods = 50
	b.Load.Errors, b.Load.Cause = 2, errors.New("refused")
	a.GaveBack, b.GaveBack = 7*time.Second, time.Second
	a.Writes, b.Writes, a.Ended, b.Ended, b.Offline = 3, 4, 5, 6, time.Second
	r := summarize([]Slot{a, slotOf("auto", 0, ms, ms, 0, 0), b}, []Mode{"none"})
	if len(r.Modes) != 1 {
		t.Fatalf("%d modes", len(r.Modes))
	}
	m := r.Modes[0]
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"throttled ratio, pooled", m.ThrottledRatio, 50.0 / 150},
		{"CPUs", m.CPUs, 0.25},
		{"requests", float64(m.Requests), 122},
		{"errors", float64(m.Errors), 2},
		{"lost", m.Lost, 1},
		{"work", m.Work, 5000.0 / 122},
		{"node use", m.NodeUse, 0.3},
		{"gave back", m.GaveBack, 7},
		{"writes", float64(m.Writes), 7},
		{"throttles", float64(m.Ended), 11},
		{"offline use", m.Offline, 0.05},
		{"seconds", m.Seconds, 20},
		{"rounds", float64(len(m.Rounds)), 2},
		{"throttled ratio of the second round", m.Rounds[1].ThrottledRatio, 0.8},
	} {
		if diff := c.got - c.want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s = %v, want %v", c.what, c.got, c.want)
		}
	}
	if m.P50 < 40 || m.P99 > 41.1 || m.Cause != "refused" {
		t.Errorf("p50 %v, p99 %v, cause %q", m.P50, m.P99, m.Cause)
	}
}

// TestConclude changes one thing of a good run at a time: the words must follow.
func TestConclude(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Result)
		want   string
		not    string
	}{
		{"good", func(*Result) {}, "auto: p99 -", "WORSE"},
		{"worse", func(r *Result) { r.Mode("auto").P99 = 2 * r.Mode("none").P99 },
			"auto: p99 +100 %: it made the latency WORSE", ""},
		{"same", func(r *Result) { r.Mode("auto").P99 = 1.05 * r.Mode("none").P99 },
			"auto: p99 +5 %: no clear difference", ""},
		{"more CPU", func(r *Result) { r.Mode("auto").CPUs = 0.446 }, "average CPU +100 %", ""},
		{"not throttled", func(r *Result) { r.Mode("none").ThrottledRatio = 0.01 }, "there is nothing to gain here",
			"yet"},
		{"throttled, not slow", func(r *Result) { r.Mode(Unlimited).P99 = r.Mode("none").P99 },
			"Throttling does not show in the latency", ""},
		{"errors", func(r *Result) { r.Mode("auto").Errors, r.Mode("auto").Cause = 3, "refused" },
			"3 of 180 requests failed in mode auto", ""},
		{"busy", func(r *Result) { r.Mode("auto").NodeUse = 1.2 }, "above the guard's threshold of 1.00", ""},
		{"others", func(r *Result) { r.Mode("none").NodeUse = 0.6 }, "others used up to 0.38 of the 2 CPUs",
			"threshold"},
		{"late", func(r *Result) { r.Mode("none").Late = 50 }, "late by up to 50.0 ms", ""},
		{"kept", func(r *Result) { r.Mode("auto").GaveBack = 6 }, "outlived the demand by 6.0 s", ""},
		{"loaded", func(r *Result) {
			r.Conditions.Loaded, r.Conditions.Behind = true, true
			for i := range r.Modes {
				r.Modes[i].NodeUse, r.Modes[i].Offline = 1.99, 1.6
			}
		},
			"1.99 or more of 2 CPUs were used. The kernel keeps it behind the service (cpu.idle), but in " +
				"requestsOnly; beside", "Careful"},
		{"loaded, always behind", func(r *Result) {
			r.Conditions.Loaded, r.Conditions.Behind = true, true
			r.Modes = slices.DeleteFunc(r.Modes, func(m ModeResult) bool { return m.Name == string(RequestsOnly) })
		}, "behind the service (cpu.idle); beside ordinary work", "requestsOnly"},
		{"requests on an idle machine", func(r *Result) { r.Mode(RequestsOnly).P99 = 2 * r.Mode("auto").P99 },
			", 2.00 times that of auto, 0.46 times that of none. Nobody else wants the CPUs here", "compete"},
		{"requests on a full machine", func(r *Result) { r.Conditions.Loaded = true },
			"which requests the other 1.5 CPUs.", "Nobody else wants"},
		{"requests without an answer", func(r *Result) {
			*r.Mode(RequestsOnly) = ModeResult{Name: string(RequestsOnly)}
		}, "auto: p99", "weights by request"},
		{"loaded, not behind", func(r *Result) {
			r.Conditions.Loaded = true
			r.Mode("auto").NodeUse, r.Mode("auto").Offline = 1.99, 1.6
		}, "the machine used up to 1.99 CPUs, above the guard's threshold", "keeps it behind the service (cpu.idle);"},
		{"writes", func(r *Result) { r.Mode("auto").Writes, r.Mode("auto").Seconds = 3, 30 },
			"Writes of the agent a second: auto 0.10.", ""},
		{"twice", func(r *Result) { *r = *measuredTwice() }, "auto: p99", "unlimited again: p99"},
		{"no burst", func(r *Result) { r.Conditions.CanBurst = false }, "has no CPU burst", ""},
		{"few", func(*Result) {}, "depends on the slowest 2", ""},
		{"many", func(r *Result) {
			for i := range r.Modes {
				r.Modes[i].Requests = 3000
			}
		}, "auto", "depends on"},
		{"no answer", func(r *Result) { *r.Mode("auto") = ModeResult{Name: "auto", Requests: 10, Errors: 10} },
			"10 of 10 requests failed", "auto: p99"},
		{"one mode", func(r *Result) { r.Modes = r.Modes[:1] }, "A p99 of", "The limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := measured()
			for i := range r.Modes {
				r.Modes[i].NodeUse = r.Modes[i].CPUs + 0.05
			}
			c.change(r)
			text := strings.Join(r.conclude(), "\n")
			if !strings.Contains(text, c.want) {
				t.Errorf("%q is missing in:\n%s", c.want, text)
			}
			if c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%q must not be said:\n%s", c.not, text)
			}
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("not a number:\n%s", text)
			}
			if len(plot(r.Modes, 60)) == 0 || r.Chart() == nil {
				t.Error("nothing is drawn")
			}
		})
	}
}

func TestFigures(t *testing.T) {
	for _, f := range measured().Figures() {
		want := f.Name != "requests in each mode"
		if f.Met() != want {
			t.Errorf("%s: %v, met %v, want %v", f.Name, f.Value, f.Met(), want)
		}
	}
	for _, f := range summarize(nil, nil).Figures() {
		if f.Met() {
			t.Errorf("%s: met, and nothing was measured", f.Name)
		}
	}
	for _, c := range []struct {
		f    Figure
		want bool
	}{
		{Figure{Value: 0.2, AtMost: 0.2, Measured: true}, true},
		{Figure{Value: 0.21, AtMost: 0.2, Measured: true}, false},
		{Figure{Value: 0.15, AtLeast: 0.15, Measured: true}, true},
		{Figure{Value: 0.14, AtLeast: 0.15, Measured: true}, false},
		{Figure{Value: 0.9, AtLeast: 0.95, AtMost: 1.05, Measured: true}, false},
		{Figure{Value: 1, AtLeast: 0.95, AtMost: 1.05}, false},
		{Figure{Value: 1.1, AtMost: 1.05, Measured: true, Chance: &Interval{0.9, 1.11}}, true},
		{Figure{None: true, Measured: true}, true},
		{Figure{Value: 1, None: true, Measured: true}, false},
		{Figure{None: true}, false},
		{Figure{Value: 1.12, AtMost: 1.05, Measured: true, Chance: &Interval{0.9, 1.11}}, false},
		{Figure{Value: 1.04, AtMost: 1.05, Measured: true, Chance: &Interval{0.8, 0.9}}, true},
	} {
		if c.f.Met() != c.want {
			t.Errorf("%+v: met %v", c.f, c.f.Met())
		}
	}
}

func TestMedianIsOfRounds(t *testing.T) {
	m := &ModeResult{Rounds: []Round{{CPUs: 5}, {CPUs: 1}, {CPUs: 2}}}
	cpus := func(r Round) float64 { return r.CPUs }
	if got := MedianOf(m.Rounds, cpus); got != 2 {
		t.Errorf("median of 5, 1, 2 = %v", got)
	}
	m.Rounds = append(m.Rounds, Round{CPUs: 3})
	if got := MedianOf(m.Rounds, cpus); got != 2.5 {
		t.Errorf("median of 5, 1, 2, 3 = %v", got)
	}
}

func TestPlotLineMarks(t *testing.T) {
	a := axis{lo: 10, hi: 1000, width: 21}
	for _, c := range []struct {
		m    ModeResult
		want string
	}{
		{ModeResult{P50: 10, P90: 100, P99: 1000}, "●━━━━━━━━━┿─────────┤"},
		{ModeResult{P50: 100, P90: 100, P99: 100}, "          ●"},
		{ModeResult{P50: 10, P90: 100, P99: 100}, "●━━━━━━━━━┥"},
		{ModeResult{}, " no answer"},
	} {
		if got := a.line(c.m); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}
