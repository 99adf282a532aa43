package main

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/trace"
)

// demandOfService is exponential demand with a mean in shares of the machine.
func demandOfService(name string, mean float64, n int) trace.Series {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	s := trace.Series{Name: name, Limit: math.Inf(1)}
	for range n {
		s.Used = append(s.Used, mean*random.ExpFloat64())
	}
	return s
}

// onFour is a recording on a machine of four CPUs.
func onFour(series ...trace.Series) trace.Trace {
	return trace.Trace{Period: 100 * time.Millisecond, CPUs: 4, Series: series}
}

// advice runs the command with --json.
func advice(t *testing.T, args ...string) report.Advice {
	t.Helper()
	var a report.Advice
	out := command(t, append([]string{"advise", "--periods", "5000", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Schema != report.AdviceSchema {
		t.Fatalf("%v in %s", err, out)
	}
	return a
}

// TestAdviseCensored: a recording under a limit of half of the demand must not count as a container with little demand.
// Whether the work waits (then the container never catches up) or is lost, the advice is that the limit must rise, and
// never that a burst is enough.
func TestAdviseCensored(t *testing.T) {
	free := demandOfService("web", 0.1, 400)
	const limit = 0.05 // share of the machine: half of the mean
	waits := trace.Series{Name: "waits", Limit: limit * 4}
	lost := trace.Series{Name: "lost", Limit: limit * 4}
	backlog := 0.0
	for _, x := range free.Used {
		backlog += x
		used := min(backlog, limit)
		backlog -= used
		waits.Used, waits.Throttled = append(waits.Used, used), append(waits.Throttled, min(backlog, 0.25-limit))
		lost.Used, lost.Throttled = append(lost.Used, min(x, limit)), append(lost.Throttled, max(0, x-limit))
	}
	for _, s := range []trace.Series{waits, lost} {
		a := advice(t, save(t, s.Name+".npy", onFour(s)), "--cgroups", "10")
		k := a.Kinds[0]
		if k.Limit != 0.2 || k.Enough || k.Saving >= 0 || k.LimitBurst <= k.Limit {
			t.Errorf("%s: %+v", s.Name, k)
		}
		d, err := loadTapes([]string{save(t, s.Name+".csv", onFour(s))}, 0, 0)
		if err != nil || !strings.Contains(strings.Join(d.notes, " "), "reached its limit of 0.2 CPUs") {
			t.Errorf("%s: no warning in %q, %v", s.Name, d.notes, err)
		}
	}
}

// TestAdviseCounts: the number of containers and their limits come from the flags, else from the recording.
func TestAdviseCounts(t *testing.T) {
	s := demandOfService("web", 0.02, 100)
	file := save(t, "free.npy", onFour(s))
	s.Limit = 0.5
	limited := save(t, "limited.npy", onFour(s))
	for _, tt := range []struct {
		files       []string
		flags       adviseFlags
		count       int
		limit, mean float64 // of the first, in CPUs
	}{
		{[]string{limited}, adviseFlags{}, 8, 0.5, 0.08},
		{[]string{limited}, adviseFlags{cpus: 2}, 4, 0.5, 0.08},
		{[]string{limited}, adviseFlags{cgroups: 5}, 5, 0.5, 0.08},
		{[]string{limited}, adviseFlags{limit: 0.4}, 10, 0.4, 0.08},
		{[]string{file}, adviseFlags{cgroups: 5}, 5, 0.8, 0.08},
		{[]string{limited, file}, adviseFlags{}, 2, 0.5, 0.08},
	} {
		f := tt.flags
		f.target, f.throttled, f.mostBurst = 0.999, 0.01, 1
		d, err := loadTapes(tt.files, f.cpus, f.limit)
		if err := errors.Join(err, f.complete(d)); err != nil {
			t.Fatal(err)
		}
		n, _, err := d.node(scenario{cgroups: f.cgroups})
		if err != nil {
			t.Fatal(err)
		}
		c := n.Containers[0]
		if len(n.Containers) != tt.count || math.Abs(c.Quota*d.cpus-tt.limit) > 1e-9 || math.Abs(c.Demand.Mean()*d.cpus/tt.mean-1) > 0.2 {
			t.Errorf("%+v: %d containers with %g CPUs that want %g, want %d with %g that want %g", tt.flags, len(n.Containers), c.Quota*d.cpus, c.Demand.Mean()*d.cpus, tt.count, tt.limit, tt.mean)
		}
	}
}

// TestAdviseSeveral: the node of several recordings is one question, and each kind another.
func TestAdviseSeveral(t *testing.T) {
	a := advice(t, save(t, "a.npy", onFour(demandOfService("calm", 0.01, 300))), save(t, "b.npy", onFour(demandOfService("busy", 0.06, 300))), "--cgroups", "9", "--limit", "0.4")
	if len(a.Kinds) != 2 || a.Kinds[0].Count != 5 || a.Kinds[1].Count != 4 || !a.Stable || a.Sure != nil {
		t.Fatalf("%+v", a)
	}
	calm, busy := a.Kinds[0], a.Kinds[1]
	if !calm.Enough || busy.Enough || calm.Needed >= busy.Needed || math.Abs(calm.Saving-5*(0.4-calm.LimitBurst)) > 1e-9 || calm.LimitBurst >= calm.LimitAlone ||
		busy.ThrottledWith >= busy.ThrottledWithout || busy.DelayWith >= busy.DelayWithout {
		t.Errorf("calm %+v\nbusy %+v", calm, busy)
	}
}

// TestAdviseNeverSaysSafe: every advice comes with its conditions.
func TestAdviseNeverSaysSafe(t *testing.T) {
	out := command(t, "advise", save(t, "calm.npy", onFour(demandOfService("web", 0.01, 400))), "--cgroups", "10", "--periods", "5000")
	if strings.Contains(strings.ToLower(out), "safe") || !strings.Contains(out, "This holds under these conditions:\n- ") {
		t.Error(out)
	}
}

func TestAdviseRefuses(t *testing.T) {
	bare := onFour(demandOfService("web", 0.02, 400))
	bare.CPUs = 0
	noCPUs, free := save(t, "bare.npy", bare), save(t, "free.npy", onFour(demandOfService("web", 0.02, 400)))
	for args, want := range map[string]struct{ err, hint string }{
		"":                                       {"no recording is named", "--live"},
		noCPUs + " --cgroups 3":                  {"how many CPUs", "--cpus"},
		free:                                     {"without a limit", "--limit or --cgroups"},
		free + " --cgroups -1":                   {"--cgroups -1", ""},
		free + " --cgroups 5 --target 1":         {"--target 1", "99.9%"},
		free + " --cgroups 5 --target 2":         {"--target 2", "99.9%"},
		free + " --cgroups 5 --throttled 0":      {"--throttled 0", "1%"},
		free + " --cgroups 5 --kernel-burst inf": {"--kernel-burst +Inf", "mainline"},
		"none.npy":                               {"none.npy", ""},
	} {
		out, stderr, err := node{}.run(append([]string{"advise"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want.err) || !strings.Contains(stderr, want.hint) || out != "" {
			t.Errorf("%s: out %q, stderr %q, error %v; want %q and the hint %q", args, out, stderr, err, want.err, want.hint)
		}
	}
}

// TestAdviseLeavesOutTheIdle: one container that does nothing is no reason to say nothing of the others.
func TestAdviseLeavesOutTheIdle(t *testing.T) {
	d := &tapes{}
	list, err := d.busy([]trace.Series{pulses("idle", 0, 0, 10), pulses("web", 0.2, 0, 10)})
	if err != nil || len(list) != 1 || list[0].Name != "web" || len(d.notes) != 1 || !strings.Contains(d.notes[0], `"idle" is left out`) {
		t.Errorf("%v, %q, %v", list, d.notes, err)
	}
}

// TestAdviseLive: files that do not change are recorded, and refused as idle; without containers it says what to do.
func TestAdviseLive(t *testing.T) {
	n := recordNode(t)
	n.write(t, "pods/web/cpu.cfs_period_us", "1000\n")
	_, _, err := n.run("advise", "--live", "/pods/web", "--for", "20ms")
	if err == nil || !strings.Contains(err.Error(), "no container ran") {
		t.Errorf("error %v", err)
	}
	if _, _, err = n.run("advise", "--live", "--for", "1s", "--samples", "20"); exitCode(err) != exitMisused {
		t.Errorf("two lengths: error %v", err)
	}
	_, stderr, err := n.run("advise", "--live")
	if err == nil || !strings.Contains(errors.Join(err).Error(), "no container with a limit") || !strings.Contains(stderr, "--live /lab/a") {
		t.Errorf("error %v, %q", err, stderr)
	}
}
