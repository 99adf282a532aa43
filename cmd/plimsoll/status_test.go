package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"plimsoll/internal/lock"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// TestStatusWaitsForNoFile: without an agent status reads files, and one of them may block.
func TestStatusWaitsForNoFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	defer close(end)
	_, err := inTime(ctx, func() (report.Status, error) {
		cancel()
		<-end
		return report.Status{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}

// TestAgentWithAnotherStateDir: an agent that has the lock is at work, also when its state directory is not the one
// that was given. No command may say that nothing is changed then.
func TestAgentWithAnotherStateDir(t *testing.T) {
	n := newNode(t)
	lock, err := lock.Take(n.place())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	want := "process " + strconv.Itoa(os.Getpid()) + " is the agent of " + n.cgroups
	for _, args := range []string{"status", "status --json", "report", "hold", "resume", "resume web", "pause web",
		"release web"} {
		stdout, stderr, err := n.run(strings.Fields(args)...)
		if !errors.Is(err, web.ErrNoAnswer) || errors.Is(err, web.ErrNoAgent) || exitCode(err) != exitNoAgent {
			t.Errorf("%s: got %v (exit code %d), want ErrNoAnswer and exit code 3", args, err, exitCode(err))
		}
		if stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint: give the --state-dir") {
			t.Errorf("%s: got %q and %q, want nothing and %q with a hint", args, stdout, stderr, want)
		}
	}
}

// TestTopBesideALeftSocket: a socket for readers that a killed agent left does not hide the agent that runs.
func TestTopBesideALeftSocket(t *testing.T) {
	n := newNode(t).withAgent(t, &fakeAgent{})
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.state, web.ReadSocket), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if out, stderr, err := n.run("top", "--once"); err != nil || !strings.Contains(out, "default/web") {
		t.Errorf("%v, %s%s", err, out, stderr)
	}
}
