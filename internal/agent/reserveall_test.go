package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/outcome"
	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// TestReserveAll: one key gives every container with a request or a limit exclusive CPUs, but offline work and who says
// no; and taking the key away puts everything back.
func TestReserveAll(t *testing.T) {
	for _, version := range []int{1, 2} {
		w := newShared(t, version, 8)
		w.made("/web", 150*ms, workload.ExclusiveByClass, 1.5)
		w.made("/limit", 200*ms, workload.ExclusiveByClass, 0)
		w.made("/no", 100*ms, workload.ExclusiveNo, 1)
		w.made("/batch", 100*ms, workload.ExclusiveByClass, 1)
		w.place.pods[3].Containers[0].Class = workload.ClassBE
		w.made("/nothing", cpu.Unlimited, workload.ExclusiveByClass, 0)
		w.made("/zero", cpu.Unlimited, workload.ExclusiveByClass, workload.LeastRequest)
		w.made("/small", 50*ms, workload.ExclusiveByClass, 0.4)
		groups := []string{"/web", "/limit", "/no", "/batch", "/nothing", "/zero", "/small"}
		before := w.files(groups...)
		w.run(time.Second)
		if got := w.files(groups...); got != before {
			t.Fatalf("nobody asks: %s, before: %s", got, before)
		}
		rules := w.agent.cpus.Rules
		all := rules
		all.All = true
		w.agent.Reserve(all)
		w.run(3 * time.Second)
		want := "/web=0-1 max, /limit=2-3 max, /no=5-7 100ms, /batch=5-7 100ms, /nothing=5-7 max, /zero=5-7 max, " +
			"/small=4-7 50ms"
		if got := w.files(groups...); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if s := w.agent.Status(); s.Reserve == nil || len(s.Reserve.Exclusive) != 3 || !s.Reserve.All ||
			len(s.Reserve.Refused) != 0 {
			t.Errorf("status %+v", s.Reserve)
		}
		all.Strict = true
		w.agent.Reserve(all)
		w.run(3 * time.Second)
		if got, want := w.files("/small"), "/small=4 50ms"; got != want {
			t.Errorf("strict: %s, want %s", got, want)
		}
		w.agent.Reserve(rules)
		w.run(3 * time.Second)
		if got := w.files(groups...); got != before {
			t.Errorf("without the key: %s, before: %s", got, before)
		}
	}
}

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
	w.agent.record = outcome.New(slog.New(slog.NewTextHandler(&log, nil)))
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
