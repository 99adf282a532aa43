package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe"
)

// jvmLimit is half a CPU: a starting JVM uses up to three times as much.
const jvmLimit = 50 * ms

// jvm is one start of a real JVM.
type jvm struct {
	ready time.Duration // from its start until it is ready
	still time.Duration // for which it was throttled, by the kernel's counters
	saw   string        // of its limit
}

func (j jvm) lost() float64 { return j.still.Seconds() / j.ready.Seconds() }

// startJVM runs the lab's program in a new group to its end, which is when it is ready.
func startJVM(t *testing.T, p *probe.Probe, base *cgrouptest.Group, name string) jvm {
	t.Helper()
	g := base.Child(name)
	defer g.Remove()
	inode, err := g.Tree().Inode(g.Path)
	if err == nil {
		err = p.Watch([]uint64{inode})
	}
	if err != nil {
		t.Fatal(err)
	}
	g.Limit(jvmLimit)
	source, err := filepath.Abs("../../lab/start/Ready.java")
	if err != nil {
		t.Fatal(err)
	}
	out, begin := filepath.Join(t.TempDir(), "out"), time.Now()
	g.Start(fmt.Sprintf("java -Xmx256m %s >%s.new 2>&1; mv %[2]s.new %[2]s; sleep 60", source, out))
	var said []byte
	for end := begin.Add(2 * time.Minute); ; time.Sleep(5 * ms) {
		if said, err = os.ReadFile(out); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not ready after %v", name, time.Since(begin))
		}
	}
	ready := time.Since(begin)
	if !strings.HasPrefix(string(said), "processors=") {
		t.Fatalf("%s: %s", name, said)
	}
	totals, _ := p.Totals(inode) // it is watched
	return jvm{ready, totals.Wall, strings.TrimSpace(string(said))}
}

// TestJVMStart: a JVM that starts beside the agent sees its declared limit at every moment, and so chooses the same
// garbage collector as without; and it is hardly throttled. Seconds are for an idle machine: go run ./lab/start.
func TestJVMStart(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	s := newShipped(t)
	s.baseline = true
	base := cgrouptest.New(t)
	base.Prevail()
	cgrouptest.Need(t, base.Features().Get(cgroup.FeatureBurst)) // without, a start is as any other time
	p, err := probe.Open(probe.Options{})
	if err != nil {
		cgrouptest.Skip(t, "%v; hint: %s", err, probe.Explain(err))
	}
	defer p.Close()
	s.write(fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n  - {cgroup: %q, "+
		"policy: auto, startupBurstPercent: 1000}\n", base.Path+"/auto-*"))
	s.start()
	if e := s.status().Events; !e.Subscribed {
		t.Fatalf("no throttle events: %s", e.Why)
	}
	var none, auto []jvm
	for i := range 3 {
		none = append(none, startJVM(t, p, base, fmt.Sprint("none-", i)))
		auto = append(auto, startJVM(t, p, base, fmt.Sprint("auto-", i)))
		t.Logf("ready after %v without, %v with; throttled for %v and %v", none[i].ready.Round(ms),
			auto[i].ready.Round(ms), none[i].still.Round(ms), auto[i].still.Round(ms))
		if auto[i].saw != none[i].saw {
			t.Errorf("beside the agent it saw\n%s\nwithout it\n%s", auto[i].saw, none[i].saw)
		}
	}
	median := func(list []jvm) float64 {
		slices.SortFunc(list, func(a, b jvm) int { return int(1e6 * (a.lost() - b.lost())) })
		return list[len(list)/2].lost()
	}
	without, with := median(none), median(auto)
	t.Logf("it saw %s, and was throttled for %.1f %% of the time without, %.1f %% with; %d refills", auto[0].saw,
		100*without, 100*with, s.status().Events.Refills)
	if without < 0.2 {
		t.Errorf("its limit costs it %.3f of the time: the scenario proves nothing", without)
	}
	if with > 0.1 {
		t.Errorf("beside the agent it is throttled for %.3f of the time", with)
	}
}
