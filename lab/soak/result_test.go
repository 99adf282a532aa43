package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
)

// TestAims: each aim can be missed.
func TestAims(t *testing.T) {
	samples, last := short(310, func(*sample, *rand.Rand) {})
	const grow = "quantities that grow, or of which that is unclear"
	good := func() *result {
		return &result{Groups: 375, Samples: samples, Flaps: 1, Kills: 11, Checks: 1, LeftByKill: 5, IdleSamples: 400,
			Owner: counts{AtRaise: 1}}
	}
	for name, c := range map[string]struct {
		change func(*result)
		want   string // "" for none
	}{
		"all met":       {func(*result) {}, ""},
		"a lost resize": {func(r *result) { r.Lost = []string{"/a: the owner wrote 5ms"} }, "lost resizes"},
		"after a stop": {func(r *result) { r.AfterStop = []string{"/a: cpu.max"} },
			"files that differ after a stop"},
		"after a restore": {func(r *result) { r.AfterRestore = []string{"/a: cpu.max"} },
			"files that differ after kill -9 and restore"},
		"a map":               {func(r *result) { r.LeftMaps = 3 }, "eBPF maps that are left"},
		"nothing to restore":  {func(r *result) { r.LeftByKill = 0 }, "files that differ after kill -9 alone"},
		"no kill":             {func(r *result) { r.Kills = 0 }, "kills"},
		"no flap":             {func(r *result) { r.Flaps = 0 }, "failures of the API server"},
		"no check":            {func(r *result) { r.Checks = 0 }, "checks for lost resizes"},
		"no raise":            {func(r *result) { r.Owner.AtRaise = 0 }, "resizes at a raise"},
		"no raise, full node": {func(r *result) { r.Owner.AtRaise, r.IdleSamples = 0, int64(len(samples)/2-1) }, ""},
		"too few samples":     {func(r *result) { r.Samples = samples[len(samples)-3:] }, grow},
		"noise": {func(r *result) {
			r.Samples = noisy(samples, func(s *sample, n int64) { s.RSS += n << 20 })
		}, grow},
		"noise, full node": {func(r *result) {
			r.Samples, r.IdleSamples = noisy(samples, func(s *sample, n int64) { s.RSS += n << 16 }), 0
		}, ""},
		"noise of descriptors, full node": {func(r *result) {
			r.Samples, r.IdleSamples = noisy(samples, func(s *sample, n int64) { s.Files += 100 * n }), 0
		}, grow},
		"a leak of memory, full node": {func(r *result) {
			r.Samples, r.IdleSamples = noisy(samples, func(s *sample, _ int64) { s.RSS += 64 << 10 * s.Started }), 0
		}, grow},
		"too much memory": {func(r *result) {
			r.Samples = append(samples[:len(samples):len(samples)], sample{RSS: 97 << 20, Life: last})
		}, "most memory in MiB"},
		"a journal that is never written anew": {func(r *result) {
			r.Samples = append(samples[:len(samples):len(samples)], sample{Journal: 5 << 20, Life: last})
		},
			"largest journal in KiB"},
	} {
		r := good()
		c.change(r)
		r.Growth = judge(r.Samples, r.Groups, last)
		for _, f := range r.Aims() {
			if f.Name == c.want && f.Met() || c.want == "" && !f.Met() {
				t.Errorf("%s: %+v, want %q missed", name, f, c.want)
			}
		}
		var page bytes.Buffer
		r.WriteText(&page)
		if missed := strings.Contains(page.String(), "missed"); missed != (c.want != "") {
			t.Errorf("%s: the page does not agree:\n%s", name, page.String())
		}
		for _, what := range append(r.Lost, r.AfterStop...) {
			if !strings.Contains(page.String(), what) {
				t.Errorf("%s: the page does not say %q", name, what)
			}
		}
	}
}

// noisy changes a copy of the samples, each with another random number below 1,000.
func noisy(samples []sample, change func(s *sample, n int64)) []sample {
	rng := rand.New(rand.NewPCG(5, 5))
	samples = slices.Clone(samples)
	for i := range samples {
		change(&samples[i], rng.Int64N(1000))
	}
	return samples
}

func TestLostLimits(t *testing.T) {
	const group = "/kubepods/burstable/pod1/c"
	now := time.Unix(1000, 0)
	long, wrote := now.Add(-time.Minute), 5*time.Millisecond
	is := func(limit, inForce time.Duration, ours bool) report.Container {
		return report.Container{Cgroup: group, Limit: limit, Quota: report.Knob{InForce: inForce, Changed: ours}}
	}
	for name, c := range map[string]struct {
		status  []report.Container
		settled time.Time
		lost    bool
	}{
		"the owner's":                 {[]report.Container{is(wrote, wrote, false)}, long, false},
		"a raise":                     {[]report.Container{is(wrote, 3*wrote, true)}, long, false},
		"another limit":               {[]report.Container{is(2*wrote, 2*wrote, false)}, long, true},
		"a raise from another limit":  {[]report.Container{is(2*wrote, 4*wrote, true)}, long, true},
		"the old value, and nobody's": {[]report.Container{is(wrote, 2*wrote, false)}, long, true},
		"no limit":                    {[]report.Container{is(cpu.Unlimited, wrote, false)}, long, true},
		"not known":                   {nil, long, true},
		"not known yet":               {nil, now, false},
		"another limit, a moment ago": {[]report.Container{is(2*wrote, 2*wrote, false)}, now, false},
		"another limit, under way":    {[]report.Container{is(2*wrote, 2*wrote, false)}, time.Time{}, false},
		"another limit, just in time": {[]report.Container{is(2*wrote, 2*wrote, false)}, now.Add(-patience).Add(1),
			false},
		"another limit, long in force": {[]report.Container{is(2*wrote, 2*wrote, false)}, now.Add(-patience), true},
	} {
		got := lostLimits(report.Status{Containers: c.status}, []limited{{group, wrote, c.settled}}, now.Add(-patience))
		if (len(got) > 0) != c.lost {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestConfirmed: two samples in a row say that a limit is lost, also where the second says it in other words; it counts
// once.
func TestConfirmed(t *testing.T) {
	var got []string
	var suspects map[string]int
	for _, lost := range []map[string]string{{"/a": "5 ms"}, {"/a": "6 ms", "/b": "7 ms"}, {"/a": "6 ms"},
		{"/b": "7 ms"}, {}, {"/b": "7 ms"}} {
		suspects = suspect(suspects, lost)
		got = append(got, confirmed(suspects, lost)...)
	}
	if want := []string{"/a: 6 ms"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDiffer(t *testing.T) {
	want := map[string]string{"cpu.max": "5000 100000\n", "cpu.weight": "100\n"}
	for name, c := range map[string]struct {
		have map[string]string
		n    int
	}{
		"the same":  {map[string]string{"cpu.max": "5000 100000\n", "cpu.weight": "100\n"}, 0},
		"a quota":   {map[string]string{"cpu.max": "9000 100000\n", "cpu.weight": "100\n"}, 1},
		"a newline": {map[string]string{"cpu.max": "5000 100000", "cpu.weight": "100\n"}, 1},
		"two files": {map[string]string{"cpu.max": "max 100000\n", "cpu.weight": "1\n"}, 2},
		"no file":   {map[string]string{"cpu.max": "5000 100000\n"}, 1},
	} {
		if got := differ(want, c.have); len(got) != c.n {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestCountOverLives(t *testing.T) {
	r := &result{}
	at := func(life int, raises, refills int64, node string) {
		r.count(life, report.Status{Writes: report.Writes{Decisions: map[string]int64{"raise": raises}},
			Events: report.Events{Refills: refills}, Node: report.Node{State: node}})
	}
	at(0, 1, 10, "idle")
	at(0, 2, 20, "overload")
	at(1, 0, 5, "idle")
	at(2, 4, 1, "cooling")
	if r.Raises != 6 || r.Refills != 26 || r.IdleSamples != 2 {
		t.Errorf("%+v", r)
	}
}

func parse(args []string) (*settings, error) {
	s := usual()
	return s, frame.Parse("soak", s, args)
}

func TestParse(t *testing.T) {
	s, err := parse([]string{"-seconds", "180", "-kill", "10s", "-every", "1s"})
	if err != nil || s.span != 3*time.Minute || s.last != 45*time.Second || s.containers != 250 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, args := range [][]string{{"-seconds", "5"}, {"-seconds", "1e9"}, {"-containers", "1"}, {"-kill", "1s"},
		{"-last", "0"}, {"-last", "1"}, {"-churn", "0"},
		{"-churn", "1000"}, {"-flap", "1s"}, {"-every", "1ms"}, {"-every", "30s"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was taken", args)
		}
	}
}
