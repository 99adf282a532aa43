package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/capacity"
	"plimsoll/internal/golden"
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
		d, err := capacity.Load([]string{save(t, s.Name+".csv", onFour(s))}, 0, 0)
		if err != nil || !strings.Contains(strings.Join(d.Notes(), " "), "reached its limit of 0.2 CPUs") {
			t.Errorf("%s: no warning in %q, %v", s.Name, d.Notes(), err)
		}
	}
}

// TestAdviseSeveral: the node of several recordings is one question, and each kind another.
func TestAdviseSeveral(t *testing.T) {
	a := advice(t, save(t, "a.npy", onFour(demandOfService("calm", 0.01, 300))),
		save(t, "b.npy", onFour(demandOfService("busy", 0.06, 300))), "--cgroups", "9", "--limit", "0.4")
	if len(a.Kinds) != 2 || a.Kinds[0].Count != 5 || a.Kinds[1].Count != 4 || !a.Stable || a.Sure != nil {
		t.Fatalf("%+v", a)
	}
	calm, busy := a.Kinds[0], a.Kinds[1]
	if !calm.Enough || busy.Enough || calm.Needed >= busy.Needed ||
		math.Abs(calm.Saving-5*(0.4-calm.LimitBurst)) > 1e-9 || calm.LimitBurst >= calm.LimitAlone ||
		busy.ThrottledWith >= busy.ThrottledWithout || busy.DelayWith >= busy.DelayWithout {
		t.Errorf("calm %+v\nbusy %+v", calm, busy)
	}
}

// TestAdviseNeverSaysSafe: every advice comes with its conditions.
func TestAdviseNeverSaysSafe(t *testing.T) {
	out := command(t, "advise", save(t, "calm.npy", onFour(demandOfService("web", 0.01, 400))), "--cgroups", "10",
		"--periods", "5000")
	if strings.Contains(strings.ToLower(out), "safe") ||
		!strings.Contains(out, "This holds under these conditions:\n- ") {
		t.Error(out)
	}
}

// TestAdviseEnds: a signal ends the command while it computes, which may take minutes. By its warning it has the
// recording.
func TestAdviseEnds(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := demandOfService("web", 0.01, 400)
	s.Limit, s.Throttled = 0.4, make([]float64, len(s.Used))
	s.Throttled[1] = 0.01
	cmd := exec.Command(self, "advise", save(t, "web.npy", onFour(s)), "--cgroups", "10", "--periods", "60000000000")
	cmd.Args[0] = "plimsoll"
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience(10*time.Second), func() { cmd.Process.Kill() }).Stop()
	if line, err := bufio.NewReader(stderr).ReadString('\n'); !strings.Contains(line, "warning") {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("after SIGTERM: %v", cmd.ProcessState)
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
		free + " --cgroups 5 --periods -1":       {"--periods -1", "usual"},
		free + " --cgroups 5 --for 1h":           {"--for and --samples", "advise --live"},
		"--samples 5":                            {"go with --live", "advise --live"},
		"none.npy":                               {"none.npy", ""},
	} {
		out, stderr, err := testNode{}.run(append([]string{"advise"}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want.err) || !strings.Contains(stderr, want.hint) || out != "" {
			t.Errorf("%s: out %q, stderr %q, error %v; want %q and the hint %q", args, out, stderr, err, want.err,
				want.hint)
		}
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
	for _, flag := range []string{"--target=1", "--cgroups=-1", "--cpus=NaN", "--limit=-1", "--periods=-1"} {
		if _, _, err = n.run("advise", "--live", "/pods/web", "--for", "20ms", flag); exitCode(err) != exitMisused {
			t.Errorf("%s is not refused before the recording: %v", flag, err)
		}
	}
	_, stderr, err := n.run("advise", "--live")
	if err == nil || !strings.Contains(errors.Join(err).Error(), "no container with a limit") ||
		!strings.Contains(stderr, "--live /lab/a") {
		t.Errorf("error %v, %q", err, stderr)
	}
}

// TestAdviseIsDocumented: docs/REFERENCE.md has what these two commands print. UPDATE_GOLDEN=1 writes it anew.
func TestAdviseIsDocumented(t *testing.T) {
	for part, args := range map[string]string{
		"advise": "advise ../../docs/figures/service.npy --limit 0.6 --cpus 8",
		"sweep":  "simulate exp --utilization 0.5 --sweep burst=0..2:0.5,inf --sweep cgroups=10,20",
	} {
		golden.Part(t, referenceFile, part, "```\n"+command(t, strings.Fields(args)...)+"```\n")
	}
}
