package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/journal"
	"plimsoll/internal/journal/leftover"
	"plimsoll/internal/lock"
	"plimsoll/internal/node"
	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
	"plimsoll/internal/workload"
)

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// fakeAgent records its calls.
type fakeAgent struct {
	calls   []string
	outcome plan.Outcome
	err     error
	kube    *report.Kubernetes
	hangs   chan struct{} // Status waits until it is closed; nil: does not wait
}

func (f *fakeAgent) note(call ...string) error {
	f.calls = append(f.calls, strings.Join(call, " "))
	return f.err
}

func (f *fakeAgent) Status() report.Status {
	if f.hangs != nil {
		<-f.hangs
	}
	s := report.Status{Schema: report.StatusSchema, Version: "1", Started: t0, Now: t0.Add(time.Minute), LastTurn: t0,
		ConfigOK: true,
		Mode:     report.Active, Kernel: "6.18.44", Cgroup: "v1", Installation: "plimsoll/plimsoll",
		Node:       report.Node{State: "idle", CPUs: 2, Capacity: 2, Threshold: 1},
		Kubernetes: f.kube, Writes: report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{},
			Decisions: map[string]int64{"raise": 1}}}
	for _, name := range []string{"default/web/nginx", "default/api/nginx"} {
		const ms = time.Millisecond
		s.Containers = append(s.Containers, report.Container{Cgroup: "/pods/" + strings.Split(name, "/")[1], Name: name,
			Level: "container",
			Limit: 50 * ms, Period: 100 * ms, Since: t0, Quota: report.Knob{Original: 50 * ms, Requested: 50 * ms,
				InForce: 50 * ms},
			Totals: report.Totals{Periods: 10, Throttled: 1}})
	}
	return s
}

func (f *fakeAgent) Glance([]report.Container) report.Status { return f.Status() }

func (f *fakeAgent) Health() report.Status { return f.Status() }

func (f *fakeAgent) Hold(_ context.Context, restore bool, reason string) ([]plan.Result, error) {
	if restore {
		return nil, f.note("hold+restore", reason)
	}
	return nil, f.note("hold", reason)
}

func (f *fakeAgent) Retire(context.Context) ([]plan.Result, error) {
	return nil, f.note("retire")
}

func (f *fakeAgent) Resume(context.Context) error { return f.note("resume") }

func (f *fakeAgent) Pause(_ context.Context, container string, d time.Duration) error {
	return f.note("pause", container, d.String())
}

func (f *fakeAgent) Release(_ context.Context, cgroup string, d time.Duration) ([]plan.Result, error) {
	return []plan.Result{{Change: plan.Change{Cgroup: workload.ID{Path: cgroup}, Knob: plan.Burst, From: "50ms",
			To: "0s"}, Outcome: f.outcome}},
		f.note("release", cgroup, d.String())
}

// node is a state directory, a cgroup root, and perhaps an agent.
type testNode struct {
	state, cgroups string
}

// newNode makes the files of a cgroup v1 tree with one group, /pods/web.
func newNode(t *testing.T) testNode {
	t.Helper()
	n := testNode{t.TempDir(), t.TempDir()}
	for name, text := range map[string]string{"cpu.shares": "1024\n", "pods/web/cpu.cfs_quota_us": "150000\n",
		"pods/web/cpu.cfs_period_us": "100000\n", "pods/web/cpu.cfs_burst_us": "50000\n"} {
		n.write(t, name, text)
	}
	return n
}

// place is where the node's agent has its lock.
func (n testNode) place() lock.Place {
	return lock.Place{Dir: n.lockDir(), Root: filepath.Join(n.cgroups, "cpu"), StateDir: n.state}
}

// dirs are those that the commands are told.
func (n testNode) dirs() node.Dirs {
	return node.Dirs{CgroupRoot: n.cgroups, StateDir: n.state, LockDir: n.lockDir()}
}

// lockDir is that of a node that is made of files, and the machine's of one that is the machine.
func (n testNode) lockDir() string {
	if n.cgroups == cgrouptest.Root() {
		return lock.LockDir
	}
	return filepath.Join(n.state, "locks")
}

func (n testNode) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(n.cgroups, "cpu", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (n testNode) withAgent(t *testing.T, a web.Agent) testNode {
	t.Helper()
	s, err := web.Listen(a, web.Options{Control: filepath.Join(n.state, web.ControlSocket), Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return n
}

// flags are those that a command needs to find the node.
func (n testNode) flags() string { return "--cgroup-root " + n.cgroups + " --state-dir " + n.state }

// run runs a command and adds what main prints for an error.
func (n testNode) run(args ...string) (stdout, stderr string, err error) {
	var out, problems bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&problems)
	root.SetArgs(append([]string{"--state-dir", n.state, "--cgroup-root", n.cgroups, "--lock-dir", n.lockDir()},
		args...))
	err = root.Execute()
	if err != nil {
		complain(&problems, "plimsoll", flagsOf(root.PersistentFlags()), err)
	}
	return out.String(), problems.String(), err
}

func TestSteering(t *testing.T) {
	for args, want := range map[string]struct {
		call, stdout, stderr, err string
	}{
		"pause default/web/nginx --for 10m": {call: "pause /pods/web 10m0s",
			stdout: "default/web/nginx (/pods/web) is kept at its limit for 10m0s\n",
			stderr: "`plimsoll resume /pods/web FLAGS` ends that"},
		"pause web":               {call: "pause /pods/web 30m0s", stdout: "for 30m0s"},
		"pause ROOT/cpu/pods/web": {call: "pause /pods/web 30m0s", stdout: "/pods/web"},
		"pause web --for 0":       {call: "pause /pods/web 0s", stdout: "no longer paused"},
		"resume web": {call: "pause /pods/web 0s",
			stdout: "default/web/nginx (/pods/web) is no longer paused\n"},
		"resume": {call: "resume", stdout: "resumed: changes are written again\n"},
		"hold --reason incident-7": {call: "hold incident-7",
			stdout: "held: nothing is written from now on; what was written stays\n",
			stderr: "`plimsoll restore FLAGS` puts it back, `plimsoll resume FLAGS` ends"},
		"release web": {call: "release /pods/web 1m0s",
			stdout: "default/web/nginx (/pods/web) is released for 1m0s\n/pods/web burst 50ms -> 0s: applied\n"},
		"release web --for 5s --json": {call: "release /pods/web 5s", stdout: `"schema": "plimsoll.results/v1"`},
		"pause nginx": {err: "default/api/nginx (/pods/api), default/web/nginx (/pods/web)",
			stderr: "cgroup path"},
		"retire": {call: "retire", stdout: "nothing",
			stderr: "writes nothing until it is stopped: `plimsoll resume FLAGS`"},
		"retire --installation plimsoll/plimsoll": {call: "retire", stdout: "nothing"},
		"retire --installation plimsoll/other": {stdout: "nothing",
			stderr: "the agent of this node is not that of plimsoll/other: it is left alone"},
		"restore": {call: "hold+restore plimsoll restore", stdout: "nothing",
			stderr: "the agent is held now, and writes nothing, also after a restart: `plimsoll resume FLAGS` ends " +
				"that"},
		"restore --to-spec": {err: "--to-spec needs it stopped", stderr: "stop it"},
		"pause nobody": {err: `no container is called "nobody"`,
			stderr: "`plimsoll status FLAGS` lists"},
		"pause web --for -1s": {err: "negative"},
		"release web --for 0": {err: "above 0"},
		"pause":               {err: "accepts 1 arg"},
	} {
		t.Run(args, func(t *testing.T) {
			a := &fakeAgent{outcome: plan.Applied}
			n := newNode(t).withAgent(t, a)
			stdout, stderr, err := n.run(strings.Fields(strings.ReplaceAll(args, "ROOT", n.cgroups))...)
			want.stderr = strings.ReplaceAll(want.stderr, "FLAGS", n.flags())
			if !strings.Contains(stdout, want.stdout) || !strings.Contains(stderr, want.stderr) {
				t.Errorf("got stdout %q, stderr %q; want %q, %q", stdout, stderr, want.stdout, want.stderr)
			}
			if (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
				t.Errorf("got error %v, want %q", err, want.err)
			}
			if got := strings.Join(a.calls, ";"); got != want.call {
				t.Errorf("the agent got the call %q, want %q", got, want.call)
			}
		})
	}
}

func TestReleaseThatFailedIsAnError(t *testing.T) {
	n := newNode(t).withAgent(t, &fakeAgent{outcome: plan.Trampled})
	stdout, _, err := n.run("release", "web")
	if err == nil || !strings.Contains(stdout, "trampled") {
		t.Errorf("got %q, %v; want what was done, and an error", stdout, err)
	}
}

func TestWithoutAnAgent(t *testing.T) {
	n := newNode(t)
	for args, hint := range map[string]string{
		"pause web":   "--state-dir",
		"release web": "plimsoll restore",
		"report":      "plimsoll run",
		"receipts":    "plimsoll run",
		"hold":        "touch " + n.state + "/hold",
		"resume":      "rm -f " + n.state + "/hold",
		"resume web":  "--state-dir",
	} {
		if _, stderr, err := n.run(strings.Fields(args)...); !errors.Is(err, web.ErrNoAgent) ||
			!strings.Contains(stderr, hint) {
			t.Errorf("%s: got %v, %q; want ErrNoAgent and the hint %q", args, err, stderr, hint)
		}
	}
}

func TestStatusAndReportOfALiveAgent(t *testing.T) {
	a := &fakeAgent{}
	n := newNode(t).withAgent(t, a)
	var status, rep, receipts bytes.Buffer
	if err := errors.Join(a.Status().Sorted(report.ByName).Text(&status),
		report.Of(a.Status()).Text(&rep)); err != nil {
		t.Fatal(err)
	}
	if err := report.ReceiptsOf(a.Status()).Text(&receipts); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"status": status.String(), "report": rep.String(),
		"receipts": receipts.String()} {
		stdout, _, err := n.run(args)
		if diff := cmp.Diff(want, stdout); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", args, err, diff)
		}
	}
	stdout, _, err := n.run("status", "--json")
	var got report.Status
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a.Status(), got); diff != "" {
		t.Errorf("status --json (-want +got):\n%s", diff)
	}
	if stdout, _, err = n.run("report", "--json"); err != nil || !strings.Contains(stdout, `"throttled_ratio": 0.1`) {
		t.Errorf("report --json: got %s, %v", stdout, err)
	}
}

// leave writes a journal as a killed agent leaves it: the group's quota raised, its burst set, and more.
func (n testNode) leave(t *testing.T, boot string, more ...journal.Entry) {
	t.Helper()
	info, err := os.Stat(filepath.Join(n.cgroups, "cpu/pods/web"))
	if err != nil {
		t.Fatal(err)
	}
	id := workload.ID{Path: "/pods/web", Inode: info.Sys().(*syscall.Stat_t).Ino}
	j, err := journal.Open(n.state, boot, func() time.Time { return t0 })
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range append(more,
		journal.Entry{Knob: plan.Quota, Original: "50ms", Min: "50ms", Max: "150ms"},
		journal.Entry{Knob: plan.Burst, Original: "0s", Min: "0s", Max: "50ms"}) {
		e.ID = id
		if err := errors.Join(j.Claim(e), j.Intend(id, e.Knob, e.Max)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// intend notes one more intent, as an agent does that dies right after.
func (n testNode) intend(t *testing.T, boot string, knob plan.Knob, value plan.Value) {
	t.Helper()
	j, err := journal.Open(n.state, boot, func() time.Time { return t0 })
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range j.Entries() {
		if e.Knob == knob {
			err = errors.Join(err, j.Intend(e.ID, knob, value))
		}
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}

func (n testNode) offline(t *testing.T) report.Status {
	t.Helper()
	stdout, _, err := n.run("status", "--json")
	var s report.Status
	if err := errors.Join(err, json.Unmarshal([]byte(stdout), &s)); err != nil {
		t.Fatal(err)
	}
	if s.Mode != report.Offline {
		t.Errorf("mode %q, want offline", s.Mode)
	}
	return s
}

func TestOfflineStatus(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	ours := report.Container{Cgroup: "/pods/web", Name: "/pods/web", Limit: 50 * ms, LimitFrom: "journal",
		Period: 100 * ms,
		Quota:  report.Knob{Original: 50 * ms, Requested: 150 * ms, InForce: 150 * ms, Changed: true, Since: &t0},
		Burst:  report.Knob{Original: 0, Requested: 50 * ms, InForce: 50 * ms, Changed: true, Since: &t0},
		Why:    "left by an agent that no longer runs"}
	put := func(quota time.Duration, changed bool, problem string) report.Container {
		c := ours
		c.Quota.InForce, c.Quota.Changed, c.Quota.Problem = quota, changed, problem
		return c
	}
	for name, tc := range map[string]struct {
		after   func(n testNode)
		boot    string
		want    []report.Container
		problem string
	}{
		"left": {func(testNode) {}, boot, []report.Container{ours}, "`plimsoll restore FLAGS` puts it back"},
		"put back": {func(n testNode) { n.write(t, "pods/web/cpu.cfs_quota_us", "50000\n") }, boot,
			[]report.Container{put(50*ms, false, "")}, ""},
		"foreign": {func(n testNode) { n.write(t, "pods/web/cpu.cfs_quota_us", "70000\n") }, boot,
			[]report.Container{put(70*ms, false, "has a value that is not ours: a restore leaves it alone")}, ""},
		"died between putting back and noting it": {func(n testNode) {
			n.write(t, "pods/web/cpu.cfs_quota_us", "50000\n")
			n.intend(t, boot, plan.Quota, "50ms")
		}, boot, []report.Container{func() report.Container {
			c := put(50*ms, false, "")
			c.Quota.Requested = 50 * ms
			return c
		}()}, ""},
		"earlier boot": {func(testNode) {}, "another", []report.Container{}, "earlier boot"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.leave(t, tc.boot)
			tc.after(n)
			s := n.offline(t)
			if diff := cmp.Diff(tc.want, s.Containers); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if problem := strings.ReplaceAll(tc.problem, "FLAGS",
				n.flags()); !strings.Contains(strings.Join(s.Problems, "\n"), problem) {
				t.Errorf("problems %q, want %q", s.Problems, problem)
			}
			if out, _, err := n.run(); err != nil || strings.Contains(out,
				"plimsoll restore "+n.flags()+" ") != (tc.boot == boot) {
				t.Errorf("what to do next: %s, %v", out, err)
			}
		})
	}
}

// TestPlanBesideAJournal: what an agent has written is not its owner's, and a plan without it would keep it.
func TestPlanBesideAJournal(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string][]string{
		boot:      {"quota 150ms 50ms", "burst 50ms 0s"},
		"another": {},
	} {
		n := recordNode(t)
		n.write(t, "pods/web/cgroup.procs", "1\n") // an empty group is not set up yet
		n.leave(t, of)
		out, stderr, err := n.run("plan", "--policy", "none", "--include", "/pods/web", "--watch", "0s", "--json")
		var p report.Plan
		if err := errors.Join(err, json.Unmarshal([]byte(out), &p)); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		got := []string{}
		for _, c := range p.Changes {
			got = append(got, fmt.Sprint(c.Knob, " ", c.From, " ", c.To))
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("boot %s, -want +got:\n%s", of, diff)
		}
	}
}

// TestPlanPointsAtTheAgent: a plan of the node is not what an agent would do that knows of pods.
func TestPlanPointsAtTheAgent(t *testing.T) {
	for _, kube := range []*report.Kubernetes{nil, {Node: "n1"}} {
		n := recordNode(t).withAgent(t, &fakeAgent{kube: kube})
		_, stderr, err := n.run("plan", "--watch", "0s")
		if err != nil || strings.Contains(stderr, "plimsoll plan --of-agent") != (kube != nil) {
			t.Errorf("%+v: %q, %v", kube, stderr, err)
		}
	}
}

func TestOfflineStatusOfARecreatedGroup(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.leave(t, boot)
	web := filepath.Join(n.cgroups, "cpu/pods/web")
	if err := os.Rename(web, web+".old"); err != nil { // kept, so that the inode is not used again
		t.Fatal(err)
	}
	n.write(t, "pods/web/cpu.cfs_quota_us", "150000\n")
	s := n.offline(t)
	if len(s.Containers) != 1 || s.Containers[0].Quota.Changed ||
		s.Containers[0].Quota.Problem != leftover.ErrGone.Error() {
		t.Errorf("got %+v, want the group gone", s.Containers)
	}
}

// TestOfflineStatusOfPriority: what makes offline work stand back outlives a killed agent, too.
func TestOfflineStatusOfPriority(t *testing.T) {
	boot, err := journal.BootID()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.write(t, "pods/web/cpu.idle", "1\n")
	n.leave(t, boot, journal.Entry{Knob: plan.Idle, Original: "0", Min: "0", Max: "1"})
	const want = `/pods/web: idle is "1" in place of "0"`
	if got := strings.Join(n.offline(t).Problems, "\n"); !strings.Contains(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	n.write(t, "pods/web/cpu.idle", "0\n")
	if got := strings.Join(n.offline(t).Problems, "\n"); strings.Contains(got, "idle") {
		t.Errorf("problems %q after it was put back", got)
	}
}

func TestOfflineStatusWithoutAJournal(t *testing.T) {
	n := newNode(t)
	stdout, _, err := n.run("status")
	if err != nil || !strings.Contains(stdout, "offline") || !strings.Contains(stdout, "nothing is changed") {
		t.Errorf("got %q, %v", stdout, err)
	}
}
