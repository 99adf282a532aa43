package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// pane is a terminal of 80 by 24, in which a program runs.
type pane struct {
	t      *testing.T
	socket string
}

// openPane starts a program in a tmux of its own.
func openPane(t *testing.T, command ...string) pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		cgrouptest.Skip(t, "tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "pl") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	p := pane{t, filepath.Join(dir, "tmux")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() // it may have ended
		os.RemoveAll(dir)
	})
	p.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-e", "NO_COLOR=1"},
		command...)...)
	return p
}

func (p pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// shows waits until all these words are on the screen.
func (p pane) shows(within time.Duration, words ...string) string {
	p.t.Helper()
	screen := ""
	eventually(p.t, within, func() string {
		screen = p.tmux("capture-pane", "-p")
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return "no " + word + " in\n" + screen
			}
		}
		return ""
	})
	return screen
}

// TestTopInATerminal: a throttled group is on the screen, with its cause; enter opens its periods, in which the
// throttles are marked; the loss of the agent is said within 3 s; and q leaves the terminal as it was.
func TestTopInATerminal(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil && os.Getenv("PLIMSOLL_EMULATED") != "" {
		cgrouptest.Elsewhere(t, "tier kernel", "there is no tmux in the machines of test/vm")
	}
	s := newShipped(t)
	g, _ := newHog(t)
	s.configure("none", g.Path)
	agent := s.start()
	p := openPane(t, s.binary, "top", "--state-dir", s.state, "--cgroup-root", cgrouptest.Root())
	name := filepath.Base(g.Path)
	screen := p.shows(patience(20*time.Second), "NAME", name, "policy-none", " of the last ",
		"throttled by its own limit", "sort: l lost")
	if lines := strings.Split(strings.TrimRight(screen, "\n"), "\n"); len(lines) != 24 ||
		!strings.Contains(lines[23], "q quit") {
		t.Errorf("%d lines, or no keys below:\n%s", len(lines), screen)
	}
	p.tmux("send-keys", "Enter")
	strip := p.shows(patience(10*time.Second), "in periods of 100ms", "xxxxx", "─ quota", "limit 0.20 CPUs")
	t.Log("\n" + strip)
	p.tmux("send-keys", "Escape")
	p.shows(patience(5*time.Second), "THR")
	p.tmux("send-keys", "/", "z", "z", "z")
	p.shows(patience(5*time.Second), "no container has zzz", "/zzz_")
	p.tmux("send-keys", "Escape")
	p.shows(patience(5*time.Second), "policy-none")
	once, err := s.run("top", "--once")
	if err != nil || !strings.Contains(once, name) || strings.Contains(once, "\x1b") {
		t.Errorf("top --once: %v\n%s", err, once)
	}
	if why, err := s.run("why", name, "--for", "1s"); err != nil ||
		!strings.Contains(joined(why), "its policy is none") || !strings.Contains(why, "stood still for") {
		t.Errorf("why: %v\n%s", err, why)
	}
	agent.stop(syscall.SIGTERM)
	p.shows(patience(3*time.Second), "NO AGENT since", name)
	p.tmux("send-keys", "q")
	eventually(t, patience(5*time.Second), func() string {
		if out, err := exec.Command("tmux", "-S", p.socket, "has-session").CombinedOutput(); err == nil {
			return "it still runs: " + string(out)
		}
		return ""
	})
}
