package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/capacity"
	"plimsoll/internal/golden"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// save writes a recording for a test.
func save(t *testing.T, name string, tape trace.Trace) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := trace.Save(file, tape); err != nil {
		t.Fatal(err)
	}
	return file
}

// pulses is a container with a demand for a share of the machine in every second period, from the first or second on.
func pulses(name string, share float64, first, n int) trace.Series {
	s := trace.Series{Name: name, Limit: math.Inf(1), Used: make([]float64, n)}
	for i := range s.Used {
		if i%2 == first {
			s.Used[i] = share
		}
	}
	return s
}

func command(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := testNode{}.run(args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stderr)
	}
	return out
}

// TestSimulateGolden compares the text with testdata/simulate.
func TestSimulateGolden(t *testing.T) {
	for name, args := range map[string]string{
		"exp":       "exp --utilization 0.7 --cgroups 10 --burst 1 --periods 20000",
		"published": "exp --utilization 90% --cgroups 5 --burst 100% --rule published --interference --periods 20000",
		"poisson":   "poisson --utilization 0.9 --cgroups 5 --burst inf --periods 20000",
		"sweep":     "exp --utilization 0.6 --sweep burst=0..1:0.5,inf --sweep cgroups=10,20 --periods 20000",
	} {
		out := command(t, append([]string{"simulate"}, strings.Fields(args)...)...)
		golden.File(t, "simulate/"+name+".txt", out)
	}
}

// TestSimulateJSON: the fields are the documented ones, and no others.
func TestSimulateJSON(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(command(t, "simulate", "exp", "--utilization", "0.5", "--cgroups", "3", "--burst",
		"1", "--periods", "20000", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"containers", "e_wcet", "e_wcet_ci95", "method", "p_miss", "p_miss_ci95", "periods", "rule"}
	if diff := cmp.Diff(want, keys(got)); diff != "" {
		t.Error(diff)
	}
	containers := got["containers"].([]any)
	if diff := cmp.Diff([]string{"mean_delay_periods", "throttled_with", "throttled_without"},
		keys(containers[0].(map[string]any))); diff != "" || len(containers) != 3 {
		t.Errorf("%d containers: %s", len(containers), diff)
	}
	// The closed form for exponential demand: sigma^(1+b), and sigma^(1+b) / (1-sigma) periods of delay.
	const sigma = 0.20318787
	c := containers[0].(map[string]any)
	for key, want := range map[string]float64{"throttled_without": sigma, "throttled_with": sigma * sigma,
		"mean_delay_periods": sigma * sigma / (1 - sigma)} {
		if v := c[key].(float64); math.Abs(v/want-1) > 0.01 {
			t.Errorf("%s = %g, want %g", key, v, want)
		}
	}
	// So near to the quota there is no exact law.
	if err := json.Unmarshal([]byte(command(t, "simulate", "exp", "--utilization", "0.9996", "--cgroups", "3",
		"--burst", "1", "--periods", "20000", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	c = got["containers"].([]any)[0].(map[string]any)
	if with, without := c["throttled_with"].(float64), c["throttled_without"].(float64); with <= 0 || without <= with {
		t.Errorf("throttled in %g of the periods with a burst, in %g without", with, without)
	}
	var sweep struct {
		Schema string
		Points []struct{ Burst *float64 }
	}
	if err := json.Unmarshal([]byte(command(t, "simulate", "exp", "--utilization", "0.5", "--cgroups", "3", "--sweep",
		"burst=1,inf", "--periods", "20000", "--json")), &sweep); err != nil {
		t.Fatal(err)
	}
	if sweep.Schema != "plimsoll.sweep/v1" || len(sweep.Points) != 2 || *sweep.Points[0].Burst != 1 ||
		sweep.Points[1].Burst != nil {
		t.Errorf("%+v", sweep)
	}
}

func keys(m map[string]any) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// TestSimulateBuffer: the published names mean the same.
func TestSimulateBuffer(t *testing.T) {
	base := []string{"simulate", "exp", "--utilization", "0.5", "--cgroups", "3", "--periods", "20000"}
	if a, b := command(t, append(base, "--burst", "inf")...), command(t, append(base, "--buffer", "-1")...); a != b {
		t.Errorf("%s\nis not\n%s", a, b)
	}
}

// TestSimulateData: recordings of one file are replayed together, those of two files are not.
func TestSimulateData(t *testing.T) {
	tape := func(series ...trace.Series) trace.Trace {
		return trace.Trace{Period: 100 * time.Millisecond, CPUs: 2, Series: series}
	}
	even, odd := pulses("even", 0.8, 0, 4000), pulses("odd", 0.8, 1, 4000)
	both := save(t, "both.npy", tape(even, odd))
	missed := func(args ...string) float64 {
		var got struct {
			Miss float64 `json:"p_miss"`
		}
		if err := json.Unmarshal([]byte(command(t,
			append([]string{"simulate", "data", "--burst", "1", "--periods", "20000", "--json"}, args...)...)),
			&got); err != nil {
			t.Fatal(err)
		}
		return got.Miss
	}
	if p := missed(both); p != 0 {
		t.Errorf("in turn, both 0.8 of the node: %g of the periods are missed", p)
	}
	if p := missed(save(t, "even.csv", tape(even)), save(t, "odd.csv", tape(odd))); p < 0.2 || p > 0.8 {
		t.Errorf("at random, both 0.8 of the node: %g of the periods are missed", p)
	}
	for rho, together := range map[string]bool{"0": true, "0.1": false} {
		out := command(t, "simulate", "data", both, "--burst", "1", "--periods", "2000", "--rho", rho)
		if strings.Contains(out, "replayed together") != together {
			t.Errorf("rho %s: %s", rho, out)
		}
	}
	if p := missed(both, "--cpus", "4", "--limit", "1"); p != 0 {
		t.Errorf("on twice the CPUs: %g of the periods are missed", p)
	}
	if p, q := missed(both, "--cgroups", "4", "--utilization", "0.5"), missed(both, "--cgroups", "4", "--utilization",
		"0.9"); p >= q {
		t.Errorf("of twice two: %g of the periods are missed at half of the load, %g at 90 %%", p, q)
	}
}

func TestSimulateRefuses(t *testing.T) {
	good := save(t, "good.npy", trace.Trace{Period: time.Second / 10, Series: []trace.Series{pulses("a", 0.2, 0, 100)}})
	slow := save(t, "slow.npy", trace.Trace{Period: time.Second / 4, Series: []trace.Series{pulses("a", 0.2, 0, 100)}})
	idle := save(t, "idle.npy", trace.Trace{Period: time.Second / 10, Series: []trace.Series{pulses("a", 0, 0, 100)}})
	for args, want := range map[string]struct{ err, hint string }{
		"exp --cgroups 2 --burst 1":                       {"--utilization is missing", "0.7"},
		"exp --utilization 0.5 --burst 1":                 {"--cgroups is missing", ""},
		"exp --utilization 0.5 --cgroups 2":               {"--burst is missing", "mainline"},
		"exp --utilization 0.5 --cgroups 0 --burst 1":     {"0 containers", ""},
		"exp --utilization 0.5 --cgroups -1 --burst 1":    {"--cgroups -1", ""},
		"exp --utilization 0.5 --cgroups 65537 --burst 1": {"--cgroups 65537", "65536"},
		"exp --utilization 0.5 --cgroups 2 --burst -0.5":  {"below 0", ""},
		"exp --utilization 0.5 --cgroups 2 --burst nan":   {"not a number", ""},
		"exp --utilization 1 --cgroups 2 --burst 1":       {"no steady state", ""},
		"exp --utilization 70 --cgroups 2 --burst 1": {"70 is 7000%: write 70% if you mean " +
			"percent", ""},
		"exp --utilization 7 --cgroups 2 --burst 1":                          {"7 times the quota", "0.07 or 7%"},
		"exp --utilization 0 --cgroups 2 --burst 1":                          {"mean 0", ""},
		"exp --utilization 0.5 --cgroups 2 --burst 1 --rule mine":            {`--rule "mine"`, "strict, published"},
		"exp --utilization 0.5 --cgroups 2 --burst 1 --rho 1":                {"rho 1", ""},
		"exp --utilization 0.5 --cgroups 2 --burst 1 --periods 0":            {"--periods 0", ""},
		"exp --utilization 0.5 --cgroups 2 --burst 1 --figure x.svg":         {"--figure needs a --sweep", ""},
		"exp --utilization 0.5 --cgroups 2 --sweep burst=1,2 --figure x.pdf": {".svg or .png", ""},
		"exp --utilization 0.5 --cgroups 2 --sweep burst=0..2":               {"has no step", "burst=0..2:0.25"},
		"exp --utilization 0.5 --cgroups 2 --sweep burst=2..0:1":             {"2 to 0 in steps of 1", ""},
		"exp --utilization 0.5 --cgroups 2 --sweep rho=0..1:0.1":             {`"rho" cannot be varied`, ""},
		"exp --utilization 0.5 --sweep cgroups=1.5 --burst 1": {`"1.5" is not a number of containers`,
			""},
		"exp --utilization 0.5 --sweep burst=0..9:0.01 --sweep cgroups=1..9:1": {"more than 2000", ""},
		"exp --sweep utilization=0.5,1.2 --cgroups 2 --burst 1":                {"utilization 1.2", ""},
		"pareto --utilization 0.5 --cgroups 2 --burst 1 --alpha 1.5":           {"alpha", ""},
		"data --burst 1":                                              {"at least 1 arg", ""},
		"data none.npy --cgroups 2 --burst 1":                         {"none.npy", ""},
		"data " + good + " --burst 1":                                 {"--cgroups is missing", ""},
		"data " + good + " --burst 1 --cgroups 2 --limit 1":           {"how many CPUs", "--cpus"},
		"data " + good + " --burst 1 --cgroups 2 --limit -1 --cpus 1": {"above 0", ""},
		"data " + good + " --burst 1 --cgroups -1":                    {"--cgroups -1", ""},
		"data " + good + " --burst 1 --cgroups 20":                    {"no steady state", ""},
		"data " + good + " " + slow + " --burst 1 --cgroups 2":        {"periods of 250ms", "one period"},
		"data " + idle + " --burst 1 --cgroups 2":                     {"samples are 0", ""},
		"data " + good + " --burst 1 --cgroups 2 --replay backwards":  {`--replay "backwards"`, "offsets, blocks, iid"},
		"normal": {`unknown command "normal"`, "plimsoll simulate"},
		"":       {"what demand", "pareto"},
	} {
		out, stderr, err := testNode{}.run(append([]string{"simulate"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want.err) || !strings.Contains(stderr, want.hint) ||
			strings.Contains(out, "P(WCET") {
			t.Errorf("%s: stderr %q, error %v; want %q and the hint %q", args, stderr, err, want.err, want.hint)
		}
	}
}

// TestDraw: the picture is in the file, in the format that its name says.
func TestDraw(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.png")
	if err := draw(file, capacity.Draw(report.Sweep{},
		[]capacity.Range{{Name: "cgroups"}, {Name: "utilization"}})); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "\x89PNG") {
		t.Errorf("%.8q, %v", data, err)
	}
}
