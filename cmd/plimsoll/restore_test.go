package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/lock"
	"plimsoll/internal/plan"
	"plimsoll/internal/web"
	"plimsoll/internal/workload"
)

// TestShowRestored: all results are shown, and one that the kernel refused is an error besides.
func TestShowRestored(t *testing.T) {
	back := plan.Result{Change: plan.Change{Cgroup: workload.ID{Path: "/a"}, Knob: plan.Quota, From: "150ms",
		To: "50ms"}, Outcome: plan.Applied, InForce: "50ms"}
	not := back
	not.Change.Cgroup.Path, not.Outcome, not.Err = "/b", plan.Refused, "invalid argument"
	for name, c := range map[string]struct {
		results []plan.Result
		want    string // of the error
	}{
		"put back":         {[]plan.Result{back}, ""},
		"one was refused":  {[]plan.Result{not, back}, "quota of /b could not be put back to 50ms: invalid argument"},
		"nothing stood":    {nil, ""},
		"it was not there": {[]plan.Result{{Change: not.Change, Outcome: plan.Gone}}, ""},
	} {
		var out bytes.Buffer
		err := showRestored(&out, c.results, false)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, r := range c.results {
			if !strings.Contains(out.String(), r.Change.Cgroup.Path) {
				t.Errorf("%s: %s is not in %q", name, r.Change.Cgroup.Path, out.String())
			}
		}
	}
}

// TestSteeringOfALoopThatHangs: where only the agent's server answers, a command fails soon, and leaves no request
// behind that takes effect once the loop goes on.
func TestSteeringOfALoopThatHangs(t *testing.T) {
	for args, hint := range map[string]string{
		"restore": "kill -9",
		"retire":  "kill -9",
		"hold":    "its loop hangs",
		"resume":  "its loop hangs",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := &fakeAgent{hangs: make(chan struct{})}
			n := newNode(t).withAgent(t, a)
			defer close(a.hangs)
			begin := time.Now()
			_, stderr, err := n.run(args)
			if took := time.Since(begin); err == nil || took > 2*askTimeout || exitCode(err) != exitNoAgent ||
				!strings.Contains(stderr, hint) {
				t.Errorf("%v after %v, %q; want no answer soon, and the hint %q", err, took, stderr, hint)
			}
			if len(a.calls) > 0 {
				t.Errorf("the agent got the calls %q", a.calls)
			}
		})
	}
}

// TestSteeringOfASlowLoop: an agent that gives no answer at first is asked again.
func TestSteeringOfASlowLoop(t *testing.T) {
	n := newNode(t)
	asked := n.answersWith(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			http.Error(w, "{}", http.StatusServiceUnavailable)
		}
	})
	if _, stderr, _ := n.run("resume"); !slices.Contains(*asked, http.MethodPost) {
		t.Errorf("%s; the requests %v, want a POST", stderr, *asked)
	}
}

// TestRetireLeavesAnUnknownAgentAlone: an agent that does not say whose it is may be another installation's.
func TestRetireLeavesAnUnknownAgentAlone(t *testing.T) {
	n := newNode(t)
	asked := n.answersWith(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "1") // it answers others
		http.Error(w, "{}", http.StatusServiceUnavailable)
	})
	if _, _, err := n.run("retire", "--installation", "plimsoll/x"); !errors.Is(err, web.ErrBusy) ||
		slices.Contains(*asked, http.MethodPost) {
		t.Errorf("%v, and the requests %v; want ErrBusy, and no POST", err, *asked)
	}
}

// answersWith serves the control socket. It returns the methods of the requests, which are numbered from 1.
func (n testNode) answersWith(t *testing.T, answer func(n int, w http.ResponseWriter)) (asked *[]string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(n.state, web.ControlSocket))
	if err != nil {
		t.Fatal(err)
	}
	asked = new([]string)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method)
		answer(len(*asked), w)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return asked
}

// TestRestoreUnlessRunning: with a running agent, or a successor that takes over, nothing is restored, no agent is
// asked, and that is no error. Without one everything is restored.
func TestRestoreUnlessRunning(t *testing.T) {
	if os.Getuid() != 0 {
		cgrouptest.Skip(t, "cannot restore: not root")
	}
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before   func(t *testing.T, n testNode)
		restores bool
		says     string
	}{
		"no agent": {func(*testing.T, testNode) {}, true, ""},
		"a running agent": {func(t *testing.T, n testNode) { n.lock(t) }, false,
			"nothing is restored: another plimsoll already runs"},
		"a successor that takes over": {func(t *testing.T, n testNode) {
			line, done := n.wait(t), make(chan error, 1)
			go func() {
				// as after an agent that hands over: the lock is free, and the successor is about to try
				time.Sleep(300 * ms)
				lock, _, err := line.Take(t.Context(), n.place())
				done <- err
				if err == nil {
					t.Cleanup(func() { lock.Release() })
				}
			}()
			t.Cleanup(func() {
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}, false, "nothing is restored: another plimsoll already runs"},
		"a successor that hangs": {func(t *testing.T, n testNode) { n.wait(t) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeAgent{}
			n := newNode(t).withAgent(t, a)
			n.leave(t, boot)
			c.before(t, n)
			_, stderr, err := n.run("restore", "--unless-running")
			if err != nil || !strings.Contains(stderr, c.says) {
				t.Errorf("%v, %q; want success and %q", err, stderr, c.says)
			}
			// a shorter write does not shorten a plain file
			want := map[bool]string{true: "50000", false: "150000"}[c.restores]
			if quota, err := os.ReadFile(filepath.Join(n.cgroups,
				"cpu/pods/web/cpu.cfs_quota_us")); !strings.HasPrefix(string(quota), want) {
				t.Errorf("quota %q, %v; want %s", quota, err, want)
			}
			if len(a.calls) > 0 {
				t.Errorf("the agent got the call %q", a.calls)
			}
		})
	}
}

// TestRestoreSaysWhatTheJournalLost: a damaged line of the journal may be of a value that is not put back.
func TestRestoreSaysWhatTheJournalLost(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.leave(t, boot)
	f, err := os.OpenFile(filepath.Join(n.state, "journal"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("no record\n")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := n.run("restore", "--unless-running")
	for _, want := range []string{n.state + ": line ", "dropped", "kept as journal.damaged"} {
		if err != nil || !strings.Contains(stderr, want) {
			t.Errorf("%v, %q; want success and %q", err, stderr, want)
		}
	}
}

// lock is the lock of a running agent.
func (n testNode) lock(t *testing.T) {
	t.Helper()
	lock, err := lock.Take(n.place())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Release() })
}

// wait is a successor that waits for the handover. It leaves when the context of the test ends.
func (n testNode) wait(t *testing.T) *lock.Line {
	t.Helper()
	line, err := lock.WaitForHandover(t.Context(), n.state)
	if err != nil {
		t.Fatal(err)
	}
	// which fails, and leaves the line
	t.Cleanup(func() { line.Take(t.Context(), lock.Place{Dir: n.state, Root: n.cgroups + "/none"}) })
	return line
}

// TestUnitFileCallsWhatThereIs: every command and flag of the unit file is one of the binary's.
func TestUnitFileCallsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/plimsoll.service")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, call, _ := strings.Cut(strings.TrimSpace(line), "=")
		args := strings.Fields(call)
		if !strings.HasPrefix(key, "Exec") || len(args) == 0 || filepath.Base(args[0]) != "plimsoll" {
			continue
		}
		cmd, rest, err := newRoot().Find(args[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		called[key] = strings.Join(args[1:], " ")
	}
	if called["ExecStopPost"] != "restore --unless-running" || called["ExecStart"] == "" {
		t.Errorf("the unit calls %q", called)
	}
}
