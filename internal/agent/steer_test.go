package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// raised is a world with a hog that was given more than its limit.
func raised(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.hog("/lab/a")
	w.run(3 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	return w
}

func TestPauseHoldsAtTheLimit(t *testing.T) {
	w := raised(t)
	ctx := context.Background()
	if err := w.agent.Pause(ctx, "a", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	w.want("/lab/a", 50*ms, 0) // at once
	until := w.kernel.Now().Add(10 * time.Second)
	if c := w.status("/lab/a"); c.Paused == nil || !c.Paused.Equal(until) || !strings.Contains(c.Why, "paused") {
		t.Errorf("status: paused until %v because of %q, want %v", c.Paused, c.Why, until)
	}
	w.run(9900 * ms)
	w.want("/lab/a", 50*ms, 0)
	w.run(3 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	if c := w.status("/lab/a"); c.Paused != nil {
		t.Errorf("paused until %v after its end", c.Paused)
	}

	if err := w.agent.Pause(ctx, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.want("/lab/a", 50*ms, 0)
	if err := w.agent.Pause(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
}

func TestPauseOfWhatIsNot(t *testing.T) {
	w := raised(t)
	var unknown *report.UnknownError
	if err := w.agent.Pause(context.Background(), "b", time.Hour); !errors.As(err, &unknown) {
		t.Errorf("an unknown container: %v", err)
	}
	if err := w.agent.Pause(context.Background(), "a", -time.Hour); err == nil {
		t.Error("a negative time was taken")
	}
	w.wantRaised("/lab/a", 50*ms)
}

// podOf makes a pod of containers, each with 50 ms per 100 ms, of which the first wants all it can get.
func (w *world) podOf(path string, names ...string) {
	w.t.Helper()
	p := workload.Pod{ID: w.group(path, time.Duration(len(names))*50*ms), Name: path}
	for i, name := range names {
		load := sim.Load{}
		if i == 0 {
			load = sim.Spin(2)
		}
		c := w.container(path+"/"+name, 50*ms, load)
		w.kernel.SetTasks(c.Path, 2)
		p.Containers = append(p.Containers, c)
	}
	w.place.pods = append(w.place.pods, p)
}

// TestReleasePutsBack: quota and burst of the container and its pod are put back at once and stay so for the time.
func TestReleasePutsBack(t *testing.T) {
	for _, target := range []string{"/kube/pod", "/kube/pod/a"} {
		w := newWorld(t)
		w.podOf("/kube/pod", "a")
		w.run(3 * time.Second)
		w.wantRaised("/kube/pod", 50*ms)
		w.wantRaised("/kube/pod/a", 50*ms)
		results, err := w.agent.Release(context.Background(), target, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(results, func(r plan.Result) bool {
			return r.Change.Cgroup.Path == "/kube/pod/a" && r.Change.Knob == plan.Quota && r.Outcome == plan.Applied
		}) {
			t.Errorf("%s: results %+v do not tell of the quota", target, results)
		}
		for range 59 {
			w.want("/kube/pod", 50*ms, 0)
			w.want("/kube/pod/a", 50*ms, 0)
			w.run(time.Second)
		}
		w.run(4 * time.Second)
		w.wantRaised("/kube/pod", 50*ms)
	}
}

// TestReleaseMakesWay: what release is for. The kernel refuses a quota below the burst.
func TestReleaseMakesWay(t *testing.T) {
	w := newWorld(t)
	w.alone(w.container("/lab/a", 50*ms, sim.Periodic(time.Second, sim.Fixed(10*ms), 1)))
	w.run(2 * time.Second)
	w.want("/lab/a", 50*ms, 50*ms)
	const file = "cpu/lab/a/cpu.cfs_quota_us"
	if err := w.kernel.ForeignWrite(file, "20000"); err == nil {
		t.Fatal("the kernel takes a quota below the burst: the scenario proves nothing")
	}
	if _, err := w.agent.Release(context.Background(), "a", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := w.kernel.ForeignWrite(file, "20000"); err != nil {
		t.Fatal(err)
	}
	w.run(9 * time.Second)
	w.want("/lab/a", 20*ms, 0)
	w.run(4 * time.Second)
	w.want("/lab/a", 20*ms, 20*ms) // the new limit is the base
}

// TestReleaseThatIsRefused: what could not be put back is an error, also where it waits for its next attempt.
func TestReleaseThatIsRefused(t *testing.T) {
	w := raised(t)
	w.kernel.Fault = func(op, _ string, _ []byte) error {
		if op == "write" {
			return errors.New("no")
		}
		return nil
	}
	for range 2 {
		_, err := w.agent.Release(context.Background(), "a", time.Minute)
		if err == nil || !strings.Contains(err.Error(), "not everything could be restored: /lab/a quota: refused") {
			t.Errorf("got %v, want what is not restored", err)
		}
	}
	w.wantProblem("refused quota")
	w.kernel.Fault = nil
	w.run(5 * time.Second)
	if _, err := w.agent.Release(context.Background(), "a", time.Minute); err != nil {
		t.Error(err)
	}
	w.want("/lab/a", 50*ms, 0)
}

// TestReleaseBesideARefill: a release puts back at once, also where another container of the pod is refilled meanwhile.
func TestReleaseBesideARefill(t *testing.T) {
	w, _ := subscribed(t, true)
	pod := workload.Pod{ID: w.group("/pod", 100*ms), Name: "/pod"}
	for i, p := range []strategy.Policy{strategy.CPUBurstOnly, strategy.CFSQuotaBurstOnly} {
		c := w.container([]string{"/pod/a", "/pod/b"}[i], 50*ms, sim.Load{})
		c.Strategy.Policy = p
		w.kernel.SetTasks(c.Path, 2)
		pod.Containers = append(pod.Containers, c)
	}
	w.place.pods = []workload.Pod{pod}
	w.run(960 * ms)
	w.want("/pod/a", 50*ms, 50*ms)
	throttle := w.throttled("/pod/b", 100*time.Microsecond)
	var answered <-chan struct{}
	w.kernel.Fault = func(_, name string, _ []byte) error {
		if answered == nil && strings.HasPrefix(name, "cpu/pod/a/") {
			answered = w.answer(throttle)
		}
		return nil
	}
	_, err := w.agent.Release(t.Context(), "/pod/a", time.Minute)
	w.kernel.Fault = nil
	if answered == nil {
		t.Fatal("the group was not read")
	}
	<-answered
	if err != nil || w.refills() != 1 {
		t.Errorf("%v, %d refills", err, w.refills())
	}
	w.want("/pod/a", 50*ms, 0)
}

// TestPauseBesideAnUnreadableGroup: a pod is paused and released, of which one container could never be read.
func TestPauseBesideAnUnreadableGroup(t *testing.T) {
	w := newWorld(t)
	w.podOf("/kube/pod", "a", "b")
	w.kernel.Fault = func(_, name string, _ []byte) error {
		if strings.HasPrefix(name, "cpu/kube/pod/b/") {
			return syscall.ENFILE
		}
		return nil
	}
	w.run(3 * time.Second)
	w.wantRaised("/kube/pod/a", 50*ms)
	if err := w.agent.Pause(t.Context(), "/kube/pod", time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := w.agent.Release(t.Context(), "/kube/pod", time.Minute); err != nil {
		t.Error(err)
	}
	w.want("/kube/pod/a", 50*ms, 0)
}

// TestPausedPodPausesNewContainers: a container that starts, or starts again, in a paused pod is paused until the pod
// is resumed.
func TestPausedPodPausesNewContainers(t *testing.T) {
	w := newWorld(t)
	w.podOf("/kube/pod", "a")
	w.limit("/kube/pod", 400*ms)
	w.run(3 * time.Second)
	if err := w.agent.Pause(t.Context(), "/kube/pod", time.Minute); err != nil {
		t.Fatal(err)
	}
	pod := w.place.pods[0]
	pod.Containers = append(slices.Clone(pod.Containers), w.container("/kube/pod/b", 50*ms, sim.Spin(2)))
	w.place.pods = []workload.Pod{pod}
	w.run(3 * time.Second)
	w.want("/kube/pod/b", 50*ms, 0)
	if c := w.status("/kube/pod/b"); c.Paused == nil || c.Released || !strings.HasPrefix(c.Why, "paused") {
		t.Errorf("paused until %v, released %v: %s", c.Paused, c.Released, c.Why)
	}
	for _, d := range []time.Duration{0, 10 * time.Second} {
		err := w.agent.Pause(t.Context(), "/kube/pod/b", d)
		if err == nil || !strings.Contains(err.Error(), "resume /kube/pod") {
			t.Errorf("paused for %v in a paused pod: %v", d, err)
		}
	}
	if err := w.agent.Pause(t.Context(), "/kube/pod", 0); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantRaised("/kube/pod/b", 50*ms)
	if c := w.status("/kube/pod/b"); c.Paused != nil {
		t.Errorf("resumed, and paused until %v", c.Paused)
	}
}

// TestHoldMeasures: while held nothing is written and everything is measured.
func TestHoldMeasures(t *testing.T) {
	w := raised(t)
	ctx := context.Background()
	before, written := w.status("/lab/a"), w.ours()
	if _, err := w.agent.Hold(ctx, false, "test"); err != nil {
		t.Fatal(err)
	}
	w.kernel.SetLoad("/lab/a", sim.Load{}) // else there would be nothing to give back
	w.run(5 * time.Second)
	w.kernel.SetLoad("/lab/a", sim.Spin(2))
	w.run(5 * time.Second)
	if n := w.ours() - written; n != 0 {
		t.Errorf("%d writes while held", n)
	}
	w.wantRaised("/lab/a", 50*ms)
	after := w.status("/lab/a")
	if w.agent.Status().Mode != report.Held || after.Totals.Usage-before.Totals.Usage < 4*time.Second ||
		!after.Quota.Changed {
		t.Errorf("mode %s, usage %v -> %v, changed %v", w.agent.Status().Mode, before.Totals.Usage, after.Totals.Usage,
			after.Quota.Changed)
	}
	if err := w.agent.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	w.kernel.SetLoad("/lab/a", sim.Load{})
	w.run(6 * time.Second)
	w.want("/lab/a", 50*ms, 50*ms)
	if w.agent.Status().Mode != report.Active {
		t.Error("not active after resume")
	}
}

// TestHoldWithRestore: everything is put back and stays so until resume.
func TestHoldWithRestore(t *testing.T) {
	w := raised(t)
	ctx := context.Background()
	results, err := w.agent.Hold(ctx, true, "test")
	if err != nil || len(results) == 0 {
		t.Fatalf("results %v, %v", results, err)
	}
	w.want("/lab/a", 50*ms, 0)
	if c := w.status("/lab/a"); c.Quota.InForce != 50*ms {
		t.Errorf("status has %v in force", c.Quota.InForce)
	}
	w.run(5 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.wantProblem("")
	if err := w.agent.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
}

// TestStatusTellsOfAHold: who finds an agent held is told why and since when, also of a retirement, until it ends.
func TestStatusTellsOfAHold(t *testing.T) {
	w := newWorld(t)
	check := func(what, reason string, since time.Time) {
		t.Helper()
		s := w.agent.Status()
		if told := s.HeldSince != nil; s.HeldReason != reason || told == since.IsZero() || told &&
			!s.HeldSince.Equal(since) {
			t.Errorf("%s: held since %v because of %q; want %v, %q", what, s.HeldSince, s.HeldReason, since, reason)
		}
		w.run(time.Second)
	}
	check("running", "", time.Time{})
	_, err := w.agent.Retire(t.Context())
	retired := w.kernel.Now()
	check("retired", "retired until it is stopped", retired)
	held := w.kernel.Now()
	_, err2 := w.agent.Hold(t.Context(), false, "incident-7")
	check("held", "incident-7", held)
	err3 := w.agent.Resume(t.Context())
	check("resumed", "", time.Time{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Error(err)
	}
}

// TestKillSwitchFile: the switch also works without the agent being asked, and one that cannot be set is an error.
func TestKillSwitchFile(t *testing.T) {
	w := newWorld(t)
	w.hog("/lab/a")
	w.lever.held = true
	w.run(3 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.lever.err = errors.New("read-only")
	if err := w.agent.Resume(context.Background()); !errors.Is(err, w.lever.err) {
		t.Errorf("resume: %v", err)
	}
	if _, err := w.agent.Hold(context.Background(), true, "test"); !errors.Is(err, w.lever.err) {
		t.Errorf("hold: %v", err)
	}
}

// TestRestoreShowsAll: where one file is refused, the answer has all results, and no error that would replace them.
func TestRestoreShowsAll(t *testing.T) {
	w := raised(t)
	w.hog("/lab/b")
	w.run(3 * time.Second)
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "cpu/lab/a/") {
			return syscall.EPERM
		}
		return nil
	}
	results, err := w.agent.Hold(t.Context(), true, "test")
	outcomes := map[plan.Outcome]bool{}
	for _, r := range results {
		outcomes[r.Outcome] = true
	}
	if err != nil || !outcomes[plan.Refused] || !outcomes[plan.Applied] {
		t.Errorf("%v, %+v", err, results)
	}
}

// TestSteeringForWhoHasGone: a request that waited for a turn is not carried out once its caller
// was told that it failed.
func TestSteeringForWhoHasGone(t *testing.T) {
	for name, steer := range map[string]func(context.Context, *Agent) error{
		"hold":    func(ctx context.Context, a *Agent) error { _, err := a.Hold(ctx, true, "test"); return err },
		"resume":  func(ctx context.Context, a *Agent) error { return a.Resume(ctx) },
		"retire":  func(ctx context.Context, a *Agent) error { _, err := a.Retire(ctx); return err },
		"pause":   func(ctx context.Context, a *Agent) error { return a.Pause(ctx, "a", time.Minute) },
		"release": func(ctx context.Context, a *Agent) error { _, err := a.Release(ctx, "a", time.Minute); return err },
	} {
		w := raised(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		w.agent.mu.Lock()
		go func() { done <- steer(ctx, w.agent) }()
		cancel()
		w.lever.held = name == "resume" // by a file that a person made after that
		held := w.lever.held
		w.agent.mu.Unlock()
		if err := <-done; !errors.Is(err, context.Canceled) || w.lever.held != held {
			t.Errorf("%s: %v, held %v; want nothing done, and held %v", name, err, w.lever.held, held)
		}
		w.wantRaised("/lab/a", 50*ms)
	}
}
