package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// startsVar says how many containers are started; test-long starts 10,000.
const startsVar = "PLIMSOLL_STARTS"

func starts(t *testing.T, usual int) int {
	t.Helper()
	if emulated() {
		usual /= 5
	}
	text := os.Getenv(startsVar)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", startsVar, err)
	}
	return n
}

// startLimit is the limit of the containers that are started.
const startLimit = 20 * ms

// needHazard proves that a burst in a group that has no quota yet makes the runtime's write fail: that is what the
// order of the agent's writes is about.
func needHazard(t *testing.T) {
	t.Helper()
	g := cgrouptest.New(t)
	defer g.Remove()
	if err := g.Tree().SetBurst(g.Path, 2*startLimit); err != nil {
		t.Logf("the kernel itself takes no burst without a quota: %v", err)
		return
	}
	if err := g.Tree().SetQuota(g.Path, startLimit); err == nil {
		t.Fatal("a quota below the burst is taken: the scenario proves nothing")
	}
}

// TestStartOfAContainer: a runtime puts the first task in and then sets the limit (runc,
// libcontainer/process_linux.go), or first the limit. The agent sees both at once, sets the burst after the limit and
// soon, and no start fails.
func TestStartOfAContainer(t *testing.T) {
	s := newShipped(t)
	base := cgrouptest.New(t)
	if !hasBurst(base) {
		s.configure("auto", base.Path+"/*") // the test is about the race only
	} else {
		needHazard(t)
		s.configure("cpuBurstOnly", base.Path+"/*")
	}
	s.start()
	r := rand.New(rand.NewPCG(1, 0))
	var waits []time.Duration
	for i := range starts(t, 300) {
		g := base.Child(fmt.Sprintf("c%d", i))
		limitFirst, pause := r.IntN(4) == 0, time.Duration(r.IntN(4000))*time.Microsecond
		if limitFirst {
			g.Limit(startLimit)
			time.Sleep(pause)
		}
		p, first := g.Idle(), time.Now()
		if !limitFirst {
			time.Sleep(pause)
			g.Limit(startLimit)
		}
		if hasBurst(base) && i%2 == 0 { // others end at once
			eventually(t, patience(10*time.Second), func() string { return startedWith(t, g) })
			waits = append(waits, time.Since(first))
			if w := waits[len(waits)-1]; w > 200*ms {
				t.Logf("start %d, limit first: %v, pause %v: the burst came after %v", i, limitFirst, pause,
					w.Round(ms))
			}
		}
		p.Stop()
		g.Remove()
	}
	if len(waits) == 0 {
		return
	}
	slices.Sort(waits)
	quantile := func(percent int) time.Duration { return waits[len(waits)*percent/100].Round(ms / 10) }
	t.Logf("burst %v (median), %v (p90) and %v (p99) after the first task", quantile(50), quantile(90), quantile(99))
	// a machine that is full has the agent wait now and then
	if late, most := quantile(90), patience(200*ms); late > most {
		t.Errorf("the burst comes %v after the first task (p90), want %v", late, most)
	}
}

func startedWith(t *testing.T, g *cgrouptest.Group) string {
	b, err := g.Tree().Bandwidth(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	if want := (cpu.Bandwidth{Quota: startLimit, Period: 100 * ms, Burst: startLimit}); b != want {
		return fmt.Sprintf("it has %+v, not %+v", b, want)
	}
	return ""
}

// TestStartIsRefilled: refills give a new container CPU time beyond its limit, and its quota stays unchanged.
func TestStartIsRefilled(t *testing.T) {
	s := newShipped(t)
	s.baseline = true
	base := cgrouptest.New(t)
	s.configure("cfsQuotaBurstOnly", base.Path+"/*")
	agent := s.start()
	if e := s.status().Events; !e.Subscribed {
		t.Fatalf("no throttle events: %s", e.Why)
	}
	cgrouptest.Need(t, base.Features().Get(cgroup.FeatureBurst)) // without, a start is as any other time
	eventually(t, patience(20*time.Second), func() string {
		if s.status().Self.Turns == 0 {
			return "no turn of the agent, which knows of no start before it"
		}
		return ""
	})
	g := base.Child("new")
	g.Limit(hogLimit)
	before := files(t, g)
	g.Spin(2)
	eventually(t, raiseWait, func() string {
		same(t, 0, before, g)
		status := s.status()
		if n := status.Events.Refills; n < 20 {
			return fmt.Sprintf("%d refills; node %+v", n, status.Node)
		}
		return ""
	})
	agent.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}
