package agent

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestOverruled: beside another scheduler that runs all tasks nobody is raised, and the status names it; when it has
// gone all is as before.
func TestOverruled(t *testing.T) {
	w := newWorld(t)
	by := ""
	w.agent.Overruled = func() string { return by }
	var log strings.Builder
	w.agent.otherScheduler.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.hog("/hog")
	w.run(3 * time.Second)
	w.wantRaised("/hog", 50*ms)
	w.wantProblem("")
	by = "lavd"
	w.run(2 * time.Second)
	w.want("/hog", 50*ms, 0)
	w.wantProblem("lavd runs all tasks")
	if n := testing.AllocsPerRun(10, func() { w.agent.whyPaused("/hog", w.kernel.Now()) }); n > 0 {
		t.Errorf("the reason is made anew for each group in each turn, with %v allocations", n)
	}
	before := w.ours()
	w.run(10 * time.Second)
	if n := w.ours() - before; n > 0 {
		t.Errorf("%d writes, and no limit is enforced", n)
	}
	by = ""
	w.run(3 * time.Second)
	w.wantRaised("/hog", 50*ms)
	w.wantProblem("")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "scheduler=lavd") ||
		!strings.Contains(lines[1], "level=INFO") {
		t.Errorf("in the log: %q", lines)
	}
}

// TestNotOverruledByOurOwn: it enforces the limits, while the kernel takes it in as well as later.
func TestNotOverruledByOurOwn(t *testing.T) {
	for _, slow := range []bool{false, true} {
		w := scheduledWorld(t, &loader{usable: true, slow: slow})
		w.run(2 * time.Second)
		w.agent.Overruled = func() string { return "plimsoll" }
		w.run(5 * time.Second)
		w.wantProblem("")
	}
}

// TestOverruledWhileLoading: another's scheduler stays known while the kernel checks the programs of ours.
func TestOverruledWhileLoading(t *testing.T) {
	w := scheduledWorld(t, &loader{usable: true, slow: true})
	w.agent.Overruled = func() string { return "lavd" }
	var log strings.Builder
	w.agent.otherScheduler.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.hog("/hog")
	w.run(5 * time.Second)
	w.want("/hog", 50*ms, 0)
	w.wantProblem("lavd runs all tasks")
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || strings.Contains(got, "level=INFO") {
		t.Errorf("in the log: %q", got)
	}
}
