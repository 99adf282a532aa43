package agent

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/schedext"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// loader is a kernel that takes schedulers, as a test arranges it.
type loader struct {
	usable    bool
	refuse    error
	late      int    // calls that are answered by schedext.ErrNotYet
	slow      bool   // every Open is
	ends      string // why the kernel ends each of them soon
	cancelled int
	opened    []*fakeScheduler
}

func (l *loader) notYet() error {
	if l.late--; l.late >= 0 {
		return schedext.ErrNotYet
	}
	return nil
}

func (l *loader) Preflight() (bool, string, error) { return l.usable, "as arranged", l.notYet() }
func (l *loader) Cancel()                          { l.cancelled++ }
func (l *loader) Open(o schedext.Options) (schedext.Scheduler, error) {
	if err := l.notYet(); err != nil || l.slow {
		return nil, schedext.ErrNotYet
	}
	if l.refuse != nil {
		return nil, l.refuse
	}
	s := &fakeScheduler{options: o, sides: map[uint64]schedext.Side{}, ended: l.ends}
	l.opened = append(l.opened, s)
	return s, nil
}

func (l *loader) last() *fakeScheduler { return l.opened[len(l.opened)-1] }

type fakeScheduler struct {
	options schedext.Options
	sides   map[uint64]schedext.Side
	ended   string
	silent  error // why it does not say whether it runs
	closed  bool
	counted map[uint64]cpu.Counters
	stood   map[uint64]report.Throttles
	changed []uint64
}

func (s *fakeScheduler) Counters(group uint64) cpu.Counters      { return s.counted[group] }
func (s *fakeScheduler) Totals() (schedext.Totals, bool)         { return schedext.Totals{Kicks: 7}, true }
func (s *fakeScheduler) Throttles(group uint64) report.Throttles { return s.stood[group] }
func (s *fakeScheduler) Changed() []uint64                       { return s.changed }

func (s *fakeScheduler) Set(group uint64, to schedext.Side) error { s.sides[group] = to; return nil }
func (s *fakeScheduler) Forget(group uint64) error                { delete(s.sides, group); return nil }
func (s *fakeScheduler) Ended() (string, error)                   { return s.ended, s.silent }
func (s *fakeScheduler) Stall() time.Duration                     { return ms }
func (s *fakeScheduler) Close() error                             { s.closed = true; return nil }

func scheduledWorld(t *testing.T, l *loader) *world {
	w := colocated(t, strategy.MechanismSchedExt, "/web", "/batch")
	w.agent.colocation.Machine = policy.Machine{Idle: true, LeastWeight: 2}
	w.agent.scheduler.Loader = l
	return w
}

// TestSchedule: the scheduler knows who is offline, cpu.idle is set underneath, nobody is raised while it enforces the
// limits, and with the mechanism it goes.
func TestSchedule(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.hog("/hog")
	w.run(2 * time.Second)
	want := map[uint64]schedext.Side{w.id("/web").Inode: {Expels: true}, w.id("/batch").Inode: {Offline: true}}
	if diff := cmp.Diff(want, l.last().sides); diff != "" {
		t.Errorf("sides -want +got\n%s", diff)
	}
	w.wantFile("/batch/cpu.idle", "1")
	w.want("/hog", 50*ms, 0)
	if c := w.agent.Status().Colocation; c.Mechanism != strategy.MechanismSchedExt || c.Scheduler == nil ||
		!c.Scheduler.InForce || c.Scheduler.Groups != 2 {
		t.Errorf("%+v", c)
	}
	w.ask(strategy.MechanismIdle)
	w.run(2 * time.Second)
	if !l.last().closed || len(l.opened) != 1 {
		t.Error("the scheduler is still there")
	}
	w.wantFile("/batch/cpu.idle", "1")
	w.wantRaised("/hog", 50*ms)
}

// TestOnlyDoChanges: before do, a turn neither loads nor unloads a scheduler, and uses no writer: that has the journal.
func TestOnlyDoChanges(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	turn := func(before func()) {
		a, now, writer := w.agent, w.kernel.Now(), w.agent.Writer
		a.mu.Lock()
		defer a.mu.Unlock()
		a.Writer = nil // a call would panic
		in, gone := a.read(now)
		decided := a.decide(now, in)
		changes := a.plan(now, decided)
		a.Writer = writer
		before()
		a.recordTurn(now, decided, a.do(now, gone, decided, changes))
	}
	turn(func() {
		if len(l.opened) > 0 {
			t.Error("a scheduler is loaded before do")
		}
	})
	if len(l.opened) != 1 {
		t.Fatalf("%d loads, want 1", len(l.opened))
	}
	w.run(2 * time.Second)
	if err := w.kernel.ForeignWrite("cpu/batch/cpu.idle", "0"); err != nil { // the weight is the owner's as well now
		t.Fatal(err)
	}
	w.ask(strategy.MechanismIdle)
	had := w.knobs()
	turn(func() {
		if l.last().closed {
			t.Error("the scheduler is unloaded before do")
		}
	})
	if has := w.knobs(); !l.last().closed || slices.Equal(had, has) {
		t.Errorf("closed: %v; in the journal before: %v, after: %v", l.last().closed, had, has)
	}
}

// become gives /batch another class.
func (w *world) become(class workload.Class) {
	pods := slices.Clone(w.place.pods)
	at := slices.IndexFunc(pods, func(p workload.Pod) bool { return p.Containers[0].Path == "/batch" })
	c := pods[at].Containers[0]
	c.Class, c.QOS = class, class.QOS(w.agent.Strategy.Colocation)
	pods[at].Containers = []workload.Container{c}
	w.place.pods = pods
}

// TestScheduleWaitsForOfflineWork: without any the kernel's own scheduler stays, and throttles are answered.
func TestScheduleWaitsForOfflineWork(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.hog("/hog")
	w.become(workload.ClassLS)
	w.run(2 * time.Second)
	if len(l.opened) > 0 {
		t.Error("a scheduler is in force and nobody is offline")
	}
	w.wantRaised("/hog", 50*ms)
	w.become(workload.ClassBE)
	w.run(2 * time.Second)
	if len(l.opened) != 1 {
		t.Fatalf("%d loads", len(l.opened))
	}
	w.become(workload.ClassLS)
	if w.run(schedext.Lingers - 5*time.Second); l.last().closed {
		t.Error("it goes at once: the next job comes in a moment")
	}
	if w.run(10 * time.Second); !l.last().closed || len(l.opened) != 1 {
		t.Errorf("a minute later it is still there, after %d loads", len(l.opened))
	}
	w.wantRaised("/hog", 50*ms)
}

// TestScheduleChanges: a scheduler that is to be otherwise is loaded anew, and one that is not stays.
func TestScheduleChanges(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	floor, on := 1.5, true
	for _, c := range []struct {
		patch strategy.ColocationPatch
		want  schedext.Options
		loads int
	}{
		{strategy.ColocationPatch{KubeQOS: &on}, schedext.Options{Expel: true,
			SchedExt: strategy.SchedExt{FloorPercent: 0.3, WatchdogSeconds: 20}}, 1},
		{strategy.ColocationPatch{SchedExt: strategy.SchedExtPatch{FloorPercent: &floor}},
			schedext.Options{Expel: true, SchedExt: strategy.SchedExt{FloorPercent: 1.5, WatchdogSeconds: 20}}, 2},
	} {
		w.agent.Configure(strategy.NodePatch{Colocation: c.patch}.Over(w.agent.Strategy), nil)
		w.run(2 * time.Second)
		if l.last().options != c.want || len(l.opened) != c.loads || l.last().closed || c.loads > 1 &&
			!l.opened[0].closed {
			t.Errorf("%+v after %d loads, want %+v after %d", l.last().options, len(l.opened), c.want, c.loads)
		}
	}
	if s := w.agent.Status().Colocation.Scheduler; s.FloorPercent != 1.5 || s.WatchdogSeconds != 20 || !s.Expel {
		t.Errorf("%+v", s)
	}
}

// TestScheduleEnds: a scheduler that the kernel ends is loaded again, after longer and longer waits, and not for ever.
func TestScheduleEnds(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	changes, changed := 0, w.agent.scheduler.Changed
	w.agent.scheduler.Changed = func(now time.Time) { changes++; changed(now) }
	for range 600 {
		w.run(time.Second)
		l.last().ended = "runnable task stall"
	}
	if n := len(l.opened); n != schedext.ReloadMost {
		t.Errorf("loaded %d times in 10 minutes, want %d", n, schedext.ReloadMost)
	}
	if changes != 2*schedext.ReloadMost { // each comes into force and ends
		t.Errorf("groups are decided on anew %d times, want %d", changes, 2*schedext.ReloadMost)
	}
	w.wantProblem("runnable task stall")
	w.wantFile("/batch/cpu.idle", "1")
	for _, s := range l.opened {
		if !s.closed {
			t.Error("one that ended is still held")
		}
	}
}

// TestScheduleIsSilent: the status reports a scheduler that does not say whether it runs.
func TestScheduleIsSilent(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	l.last().silent = errors.New("no state")
	w.run(2 * time.Second)
	w.wantProblem("the scheduler: no state")
	l.last().silent = nil
	w.run(2 * time.Second)
	w.wantProblem("")
}

// TestScheduleEndsBetweenJobs: the loads are bounded also where offline work comes and goes, and the status says why
// there is none. A job whose scheduler does not fail counts for none, and an hour of such jobs begins the count anew.
func TestScheduleEndsBetweenJobs(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	job := func(lasts time.Duration, ends string) {
		l.ends = ends
		w.become(workload.ClassBE)
		w.run(lasts)
		w.become(workload.ClassLS)
		w.run(2 * schedext.Lingers)
	}
	const stall = "runnable task stall"
	job(time.Second, stall)
	if n := len(l.opened); n != 3 {
		t.Fatalf("%d loads with the first job, want 3", n)
	}
	for range 6 {
		job(schedext.Lasting/6, "")
	}
	for range 10 {
		job(time.Minute, stall)
	}
	if n, want := len(l.opened), 3+6+schedext.ReloadMost; n != want {
		t.Errorf("%d loads, want %d", n, want)
	}
	if s := w.agent.Status().Colocation.Scheduler; s != nil {
		t.Errorf("without offline work: %+v", s)
	}
	w.become(workload.ClassBE)
	w.run(2 * time.Second)
	w.wantProblem(stall)
}

// TestScheduleLasts: one that was in force for long has all tries before it again, the first after the first wait.
func TestScheduleLasts(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	for len(l.opened) < schedext.ReloadMost {
		l.last().ended = "runnable task stall"
		w.run(5 * time.Second)
	}
	w.run(schedext.Lasting + 30*time.Second)
	l.last().ended = "runnable task stall"
	w.run(schedext.ReloadFirst + 2*time.Second)
	if n := len(l.opened); n != schedext.ReloadMost+1 {
		t.Fatalf("%d loads after one that lasted, want one more than %d", n, schedext.ReloadMost)
	}
	for range 600 {
		l.last().ended = "runnable task stall"
		w.run(time.Second)
	}
	if n := len(l.opened); n != 2*schedext.ReloadMost {
		t.Errorf("%d loads in all, want %d", n, 2*schedext.ReloadMost)
	}
}

func TestScheduleIsRefused(t *testing.T) {
	l := &loader{usable: true, refuse: errors.New("another scheduler is loaded")}
	w := scheduledWorld(t, l)
	w.run(3 * time.Second)
	w.wantProblem("another scheduler is loaded")
	w.wantFile("/batch/cpu.idle", "1")

	w = scheduledWorld(t, &loader{})
	w.run(3 * time.Second)
	if c := w.agent.Status().Colocation; c.Mechanism != strategy.MechanismIdle || c.Scheduler != nil {
		t.Errorf("a kernel that cannot: %+v", c)
	}
}

// TestScheduleIsTriedAgain: what is in the way may be so for the moment only, as another tool's scheduler is: before
// the first load, and when a load fails.
func TestScheduleIsTriedAgain(t *testing.T) {
	l := &loader{}
	w := scheduledWorld(t, l)
	inForce := func(want bool) {
		t.Helper()
		c := w.agent.Status().Colocation
		mechanism := map[bool]strategy.Mechanism{true: strategy.MechanismSchedExt, false: strategy.MechanismIdle}[want]
		if got := c.Scheduler != nil && c.Scheduler.InForce; got != want || c.Mechanism != mechanism {
			t.Errorf("%+v (%+v), want it in force: %v", c, c.Scheduler, want)
		}
	}
	w.run(3 * time.Second)
	inForce(false)
	l.usable = true
	w.run(schedext.ProbeEvery + 2*time.Second)
	inForce(true)
	l.usable, l.refuse = false, errors.New("another scheduler is loaded")
	l.last().ended = "runnable task stall"
	w.run(5 * time.Minute)
	inForce(false)
	loads := w.agent.Status().Colocation.Scheduler.Loads
	l.usable, l.refuse = true, nil
	w.run(schedext.ProbeEvery + 2*time.Second)
	inForce(true)
	if again := w.agent.Status().Colocation.Scheduler.Loads; loads != 2 || again != 3 {
		t.Errorf("%d loads, and %d after the other went, want 2 and 3", loads, again)
	}
}

// TestScheduleGoesFirst: at the end, and with the kill switch, the scheduler is out before files are put back.
func TestScheduleGoesFirst(t *testing.T) {
	l := &loader{usable: true}
	w := scheduledWorld(t, l)
	w.run(2 * time.Second)
	if _, err := w.agent.Hold(t.Context(), true, "test"); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if !l.last().closed || len(l.opened) != 1 {
		t.Error("held, and a scheduler in force")
	}
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if len(l.opened) != 2 {
		t.Fatal("resumed, and no scheduler")
	}
	if err := w.agent.stop(); err != nil || !l.last().closed {
		t.Errorf("stopped, and a scheduler in force (%v)", err)
	}
	w.wantFile("/batch/cpu.idle", "0")
}

// TestScheduleTakesTime: while the kernel checks the programs offline work stands back by cpu.idle, and who ends the
// agent then leaves no scheduler.
func TestScheduleTakesTime(t *testing.T) {
	l := &loader{usable: true, late: 6}
	w := scheduledWorld(t, l)
	w.run(2500 * ms)
	w.wantFile("/batch/cpu.idle", "1")
	if c := w.agent.Status().Colocation; c.Mechanism != strategy.MechanismIdle {
		t.Errorf("%+v", c)
	}
	w.run(10 * time.Second)
	if c := w.agent.Status().Colocation; c.Scheduler == nil || !c.Scheduler.InForce || c.Scheduler.Loads != 1 {
		t.Errorf("%+v", c)
	}
	l = &loader{usable: true, slow: true}
	w = scheduledWorld(t, l)
	w.run(2 * time.Second)
	if err := w.agent.stop(); err != nil || l.cancelled != 1 {
		t.Errorf("cancelled %d times, %v", l.cancelled, err)
	}
}
