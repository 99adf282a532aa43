package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/record"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// TestStopCountsCPUSets: a group that cannot inherit again has all CPUs in the end, and is counted as put back.
func TestStopCountsCPUSets(t *testing.T) {
	w := sharedOn(t, sim.Config{CPUs: 4, Version: 2, BurstFile: true, CPUSets: true, Seed: 1})
	w.made("/a", 150*ms, workload.ExclusiveStrict, 1.5)
	w.made("/b", 100*ms, workload.ExclusiveByClass, 0)
	w.kernel.AddGroup("/plain")
	w.run(time.Second)
	if got, want := w.files("/a", "/b", "/plain"), "/a=0-1 max, /b=2-3 100ms, /plain=2-3 max"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	var log bytes.Buffer
	w.agent.record = record.New(slog.New(slog.NewTextHandler(&log, nil)))
	if err := w.agent.stop(); err != nil {
		t.Error(err)
	}
	if got, want := w.files("/a", "/b", "/plain"), "/a=0-3 150ms, /b=0-3 100ms, /plain= max"; got != want {
		t.Errorf("at the end: %s, want %s", got, want)
	}
	if !strings.Contains(log.String(), "msg=restored files=4 ") {
		t.Errorf("three cpusets and a quota were put back: %s", log.String())
	}
}
