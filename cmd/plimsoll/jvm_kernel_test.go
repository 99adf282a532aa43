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

	"plimsoll/internal/cgrouptest"
)

// jvmLimit is half a CPU: a JVM that starts wants up to three times as much.
const jvmLimit = 50 * ms

// jvm is one start of a real JVM.
type jvm struct {
	ready     time.Duration // from its start until it is ready
	saw       string        // of its limit
	throttled time.Duration
}

// startJVM runs the program of testdata/jvm in a new group to its end, which is when it is ready.
func startJVM(t *testing.T, base *cgrouptest.Group, name string, limit time.Duration, flags string) jvm {
	t.Helper()
	g := base.Child(name)
	defer g.Remove()
	if limit > 0 {
		g.Limit(limit)
	}
	source, err := filepath.Abs("testdata/jvm/Ready.java")
	if err != nil {
		t.Fatal(err)
	}
	out, begin := filepath.Join(t.TempDir(), "out"), time.Now()
	g.Start(fmt.Sprintf("java -Xmx256m %s %s >%s.new 2>&1; mv %[3]s.new %[3]s; sleep 60", flags, source, out))
	var said []byte
	for end := begin.Add(patience(2 * time.Minute)); ; time.Sleep(5 * ms) {
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
	c, err := g.Tree().Stat(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return jvm{ready, strings.TrimSpace(string(said)), c.ThrottledTime}
}

// TestJVMStart: a JVM that starts beside the agent takes its limit for what it is, in every moment, and so the same garbage
// collector as without; and it is ready much sooner.
func TestJVMStart(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		cgrouptest.Skip(t, "%v; hint: make setup", err)
	}
	s := newShipped(t)
	base := cgrouptest.New(t)
	if !hasBurst(base) {
		t.Skip("no burst to rewrite: a start is as any other time")
	}
	s.configure("auto", base.Path+"/auto-*")
	s.start()
	if e := s.status().Events; !e.Heard {
		t.Fatalf("the kernel does not tell of throttles: %s", e.Why)
	}
	var none, auto, free []jvm
	for i := range 3 {
		name := func(mode string) string { return fmt.Sprintf("%s-%d", mode, i) }
		none = append(none, startJVM(t, base, name("none"), jvmLimit, ""))
		auto = append(auto, startJVM(t, base, name("auto"), jvmLimit, ""))
		// As the others see it, so that only the limit is missing.
		free = append(free, startJVM(t, base, name("free"), 0, "-XX:ActiveProcessorCount=1 -XX:+UseSerialGC"))
	}
	for i := range none {
		if auto[i].saw != none[i].saw {
			t.Errorf("beside the agent it saw\n%s\nwithout it\n%s", auto[i].saw, none[i].saw)
		}
	}
	ready := func(list []jvm) time.Duration {
		return slices.MinFunc(list, func(a, b jvm) int { return int(a.ready - b.ready) }).ready
	}
	without, with, best := ready(none), ready(auto), ready(free)
	t.Logf("ready after %v without, %v with, %v unlimited: %.2f and %.2f of unlimited; it saw %s; %d rescues", without.Round(ms), with.Round(ms), best.Round(ms),
		without.Seconds()/best.Seconds(), with.Seconds()/best.Seconds(), auto[0].saw, s.status().Events.Rescues)
	for i := range none {
		t.Logf("throttled for %v without, %v with", none[i].throttled.Round(ms), auto[i].throttled.Round(ms))
	}
	if s.status().Events.Rescues == 0 {
		t.Error("nothing was rescued")
	}
	if without > 2*best && with > without-without/5 { // else the machine is too busy for the limit to cost much
		t.Errorf("the agent does not help: %v, without it %v, unlimited %v", with, without, best)
	}
}
