package report

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
)

func sampleColocation() *Colocation {
	return &Colocation{Asked: strategy.MechanismAuto, Mechanism: strategy.MechanismIdle, Why: "the best here: cpu.idle",
		Mechanisms: []Mechanism{{strategy.MechanismGroupIdentity, false, "no cpu.bvt_warp_ns or cpu.identity"},
			{strategy.MechanismIdle, true, "cpu.idle"}},
		Knobs: []Priority{
			{Cgroup: "/kubepods/besteffort", Knob: plan.Weight, Want: "2", Have: "2", Original: "2", InForce: true,
				Since: t0},
			{Cgroup: "/kubepods/besteffort/pod1", Knob: plan.Idle, Want: "1", Have: "0", Original: "0", Since: t0,
				Resets: 3, Refused: 1, Problem: "refused: EPERM"},
		},
		Exposed:   []string{"/kubepods/burstable/pod2"},
		Scheduler: sampleScheduler(),
		Ranks: []Rank{{strategy.Online, 2, 1830 * time.Second, 0.3}, {strategy.Offline, 1, 30 * time.Second, 0.05},
			{Rank: strategy.Neutral}},
	}
}

func TestColocationInWords(t *testing.T) {
	c := sampleColocation()
	want := "idle (the best here: cpu.idle); in force in 1 of 2 files, reset by others 3 times, refused 1 time; " +
		c.Scheduler.line() + "; " +
		"online: 2 containers, 0.30 CPUs; offline: 1 container, 0.05 CPUs"
	if got := c.line(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c.InForce() {
		t.Error("in force, though one file holds something else")
	}
	c.Knobs[1].InForce = true
	if !c.InForce() || (Colocation{}).InForce() {
		t.Error("in force is when there are files and all hold what they are to")
	}
	problems := strings.Join(c.Problems(), "\n")
	for _, part := range []string{"/kubepods/besteffort/pod1: idle: refused: EPERM",
		"/kubepods/burstable/pod2: offline"} {
		if !strings.Contains(problems, part) {
			t.Errorf("%q is not in %q", part, problems)
		}
	}
}
