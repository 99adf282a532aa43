package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
)

// quiet is a group with a limit and an idle task, managed by an agent.
func quiet(t *testing.T, s *shipped) (*cgrouptest.Group, map[string]string, *daemon) {
	t.Helper()
	g := cgrouptest.New(t)
	g.Limit(hogLimit)
	g.Idle()
	before := files(t, g)
	s.configure("cpuBurstOnly", g.Path)
	first := s.start()
	if hasBurst(g) {
		changed(t, s, before, g)
	}
	return g, before, first
}

// stands says what is wrong with the group's burst.
func stands(t *testing.T, g *cgrouptest.Group) string {
	if _, burst := bandwidthNow(t, g); hasBurst(g) && burst != hogLimit {
		return fmt.Sprintf("the burst is %v", burst)
	}
	return ""
}

// TestUpdateKeepsBursts: an agent that ends while another stands by leaves its bursts to that one, which puts them back
// at its own end. The unit file's command after the first one's end (ExecStopPost=) neither restores nor holds the
// second.
func TestUpdateKeepsBursts(t *testing.T) {
	s := newShipped(t)
	g, before, first := quiet(t, s)
	second := s.launch("--stand-by")
	if !second.says("standing by") {
		t.Fatalf("it does not stand by:\n%s", second.log)
	}
	time.Sleep(patience(200 * ms)) // it stands in line
	watched, quit := make(chan string, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-quit:
				watched <- ""
				return
			default:
			}
			if wrong := stands(t, g); wrong != "" {
				watched <- wrong
				return
			}
			time.Sleep(ms)
		}
	}()
	first.stop(syscall.SIGTERM)
	s.must("restore", "--unless-running")
	if !second.runs() {
		t.Fatalf("it does not take over:\n%s", second.log)
	}
	s.must("restore", "--unless-running")
	eventually(t, patience(3*time.Second), func() string {
		if n := len(s.status().Containers); n == 0 {
			return "the second agent knows of no group"
		}
		return ""
	})
	close(quit)
	if wrong := <-watched; wrong != "" {
		t.Errorf("during the update %s", wrong)
	}
	if mode := s.status().Mode; mode != report.Active {
		t.Errorf("mode %q of the second agent, want active", mode)
	}
	second.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestEndOfBothPutsBack: when the one that stands by is ended with the one that runs, nothing of theirs stays.
func TestEndOfBothPutsBack(t *testing.T) {
	s := newShipped(t)
	g, before, first := quiet(t, s)
	second := s.launch("--stand-by")
	if !second.says("standing by") {
		t.Fatalf("it does not stand by:\n%s", second.log)
	}
	time.Sleep(patience(200 * ms))
	for _, l := range []*daemon{first, second} {
		if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []*daemon{first, second} {
		select {
		case <-l.done:
		case <-time.After(patience(5 * time.Second)):
			t.Fatal("it does not end")
		}
		if code := l.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	same(t, 0, before, g)
}

// TestEndOfAStandByChangesNothing: an update that is called off leaves the agent that runs alone.
func TestEndOfAStandByChangesNothing(t *testing.T) {
	s := newShipped(t)
	g, before, first := quiet(t, s)
	second := s.launch("--stand-by")
	if !second.says("standing by") {
		t.Fatalf("it does not stand by:\n%s", second.log)
	}
	time.Sleep(patience(200 * ms))
	second.stop(syscall.SIGTERM)
	if wrong := stands(t, g); wrong != "" {
		t.Error(wrong)
	}
	first.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}

// TestRetiredAgentIsAsGoodAsStopped: its writes are restored, it writes nothing, and the next one is not held.
func TestRetiredAgentIsAsGoodAsStopped(t *testing.T) {
	s := newShipped(t)
	g, before, first := quiet(t, s)
	s.must("retire")
	same(t, 0, before, g)
	time.Sleep(time.Second)
	same(t, 0, before, g)
	first.stop(syscall.SIGKILL)
	same(t, 0, before, g)
	second := s.start()
	if hasBurst(g) {
		changed(t, s, before, g)
	}
	second.stop(syscall.SIGTERM)
	same(t, 0, before, g)
}
