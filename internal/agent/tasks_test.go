package agent

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/colocation"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/policy"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// fakeTasks is the tasks of a kernel, by thread id: the slice that each asked for, and its cookie.
type fakeTasks struct {
	slices  map[int]time.Duration
	cookies map[int]uint64
	unread  map[int]error
	stuck   map[int]error // tasks whose slice cannot be set
	refuse  error         // of a cookie
}

func (c fakeTasks) Slice(tid int) (time.Duration, error) {
	if err := c.unread[tid]; err != nil {
		return 0, err
	}
	if s := c.slices[tid]; s > 0 {
		return s, nil
	}
	return c.BaseSlice()
}

func (c fakeTasks) SetSlice(tid int, s time.Duration) error {
	if err := c.stuck[tid]; err != nil {
		return err
	}
	c.slices[tid] = s
	return nil
}

func (c fakeTasks) BaseSlice() (time.Duration, error)  { return 1400 * time.Microsecond, nil }
func (c fakeTasks) Cookie(tid int) (uint64, error)     { return c.cookies[tid], nil }
func (c fakeTasks) SetCookie(tid int, id uint64) error { c.cookies[tid] = id; return nil }
func (c fakeTasks) RunsOn(int, []int) (bool, error)    { return true, nil }
func (c fakeTasks) Name(tid int) string                { return fmt.Sprintf("task%d", tid) }
func (c fakeTasks) Passed(error) bool                  { return false }
func (c fakeTasks) NewCookie() (uint64, error)         { return 4711, c.refuse }

// manned is a world whose tasks can be set.
func manned(t *testing.T, m strategy.Mechanism) (*world, fakeTasks) {
	t.Helper()
	w := colocated(t, m, "/web", "/batch")
	c := fakeTasks{slices: map[int]time.Duration{}, cookies: map[int]uint64{}, unread: map[int]error{},
		stuck: map[int]error{}}
	j, err := journal.OpenDisk(w.disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.agent.colocation.Machine = policy.Machine{Idle: true, Slice: true, CoreSched: true, LeastWeight: 2}
	writer := apply.New(w.tree, j, w.kernel.Now)
	writer.Tasks, w.agent.colocation.Tasks, w.agent.Writer = c, c, writer
	return w, c
}

func (w *world) task(group string) int {
	w.t.Helper()
	tids, err := w.tree.Tasks(group)
	if err != nil || len(tids) == 0 {
		w.t.Fatalf("%s: tasks %v, %v", group, tids, err)
	}
	return tids[0]
}

// busyTasks are tasks that something is done at the reading and setting of.
type busyTasks struct {
	fakeTasks
	at func()
}

func (c busyTasks) Slice(tid int) (time.Duration, error) { c.at(); return c.fakeTasks.Slice(tid) }
func (c busyTasks) SetSlice(tid int, s time.Duration) error {
	c.at()
	return c.fakeTasks.SetSlice(tid, s)
}

// answerable says whether a throttle could be answered now, in the midst of a turn.
func (w *world) answerable() bool {
	done := make(chan struct{})
	go func() {
		w.agent.mu.LockShort()
		w.agent.Writer.Do(nil)
		w.agent.mu.UnlockShort()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// TestManyThreadsKeepNoThrottleWaiting: a throttle is answered while the threads of a container are read or set,
// however many it has.
func TestManyThreadsKeepNoThrottleWaiting(t *testing.T) {
	w, c := manned(t, strategy.MechanismSlice)
	read, answered := 0, 0
	busy := busyTasks{c, func() {
		if read++; w.answerable() {
			answered++
		}
	}}
	w.agent.colocation.Tasks, w.agent.Writer.(*apply.Writer).Tasks = busy, busy
	w.run(2 * time.Second)
	w.ask(strategy.MechanismIdle)
	w.run(2 * time.Second)
	if slice, set := c.slices[w.task("/web")]; !set || slice != 0 || answered != read {
		t.Errorf("%d tasks were read or set, and throttles could be answered at %d of them; slice %v", read, answered,
			slice)
	}
}

// TestManyCPUSetsKeepNoThrottleWaiting: nor while the CPUs of the groups in an offline container are read and written:
// a throttle waits for one file at most.
func TestManyCPUSetsKeepNoThrottleWaiting(t *testing.T) {
	w := confined(t, 1)
	for i := range 50 {
		w.kernel.AddGroup(fmt.Sprintf("/batch/pod/a/%d", i))
	}
	var last string
	var answered <-chan struct{}
	done, late := map[string]int{}, map[string]int{}
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if !strings.HasPrefix(name, "cpuset/batch/pod/a/") || !strings.HasSuffix(name, "/cpuset.cpus") {
			return nil
		}
		done[op]++
		if name == last {
			return nil
		}
		select {
		case <-answered:
		default:
			if last != "" {
				late[op]++
			}
		}
		last, answered = name, w.answerSoon()
		return nil
	}
	w.run(4 * time.Second)
	w.kernel.Fault = nil
	if done["read"] < 200 || done["write"] < 50 || len(late) > 0 {
		t.Errorf("of the accesses %v, %v came before a throttle that began at the one before was answered", done, late)
	}
}

// answerSoon has a throttle answered once the turn lets it, and returns when the throttle waits, or is answered.
func (w *world) answerSoon() (answered <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		w.agent.mu.LockShort()
		w.agent.Writer.Do(nil)
		close(done)
		w.agent.mu.UnlockShort()
	}()
	for !w.agent.mu.Waits() {
		select {
		case <-done:
			return done
		case <-time.After(time.Millisecond):
		}
	}
	return done
}

// TestSlices: the online task gets the slice, one that comes later within seconds, none is looked at each second, and
// another mechanism takes it back.
func TestSlices(t *testing.T) {
	w, c := manned(t, strategy.MechanismSlice)
	w.run(2 * time.Second)
	online, offline := w.task("/web"), w.task("/batch")
	if c.slices[online] != 100*time.Microsecond || c.slices[offline] != 0 {
		t.Fatalf("slices %v of online %d, offline %d", c.slices, online, offline)
	}
	s := w.agent.Status().Colocation
	if s.Mechanism != strategy.MechanismSlice || !s.InForce() {
		t.Errorf("%+v", s)
	}
	w.wantFile("/batch/cpu.idle", "0")
	w.run(8 * time.Second)
	if n := w.agent.Status().Writes.Results[plan.Slice][plan.Applied]; n != 1 {
		t.Errorf("the tasks were set %d times, want once", n)
	}
	w.kernel.SetTasks("/web", 2)
	late := w.task("/web")
	w.run(colocation.TasksEvery + 2*time.Second)
	if c.slices[late] != 100*time.Microsecond {
		t.Errorf("one that came later has %v", c.slices[late])
	}
	w.ask(strategy.MechanismIdle)
	w.run(2 * time.Second)
	if c.slices[late] != 0 {
		t.Errorf("no longer asked for, and there: %v", c.slices[late])
	}
	w.wantFile("/batch/cpu.idle", "1")
}

// TestSlicesThatCannotBeRead: of a task that cannot be read nobody says that it has its slice, be it before it was set
// or after, until it can be read.
func TestSlicesThatCannotBeRead(t *testing.T) {
	w, c := manned(t, strategy.MechanismIdle)
	w.run(2 * time.Second)
	online := w.task("/web")
	w.ask(strategy.MechanismSlice)
	for range 2 {
		c.unread[online] = syscall.EPERM
		w.run(colocation.TasksEvery + time.Second)
		for range 10 {
			w.run(time.Second)
			if s := w.agent.Status().Colocation; s.InForce() {
				t.Fatalf("in force, and nobody can read it: %+v", s.Knobs)
			}
		}
		w.wantProblem("/web: slice: refused")
		delete(c.unread, online)
		w.run(2 * time.Minute)
		if s := w.agent.Status().Colocation; !s.InForce() || c.slices[online] != 100*time.Microsecond {
			t.Errorf("%v, %+v", c.slices, s.Knobs)
		}
		w.wantProblem("")
	}
}

// TestSlicesPartlyRefused: where the kernel refuses the slice of one task, that of another one is taken back all the
// same once none is asked for, as soon as the kernel lets it.
func TestSlicesPartlyRefused(t *testing.T) {
	w, c := manned(t, strategy.MechanismIdle)
	w.run(2 * time.Second)
	w.kernel.SetTasks("/web", 2)
	tids, err := w.tree.Tasks("/web")
	if err != nil || len(tids) != 2 {
		t.Fatalf("tasks %v, %v", tids, err)
	}
	c.stuck[tids[1]] = syscall.EPERM
	w.ask(strategy.MechanismSlice)
	w.run(2 * time.Second)
	if c.slices[tids[0]] != 100*time.Microsecond {
		t.Fatalf("slices %v: the scenario proves nothing", c.slices)
	}
	w.wantProblem("/web: slice: refused")
	w.ask(strategy.MechanismIdle)
	w.run(3 * time.Second)
	if c.slices[tids[0]] != 0 {
		t.Errorf("no longer asked for, and there: %v", c.slices)
	}
	w.wantProblem("")
}

// TestSlicesOnAFullDisk: what the journal could not take is nothing that would have to be taken back again and again.
func TestSlicesOnAFullDisk(t *testing.T) {
	w, c := manned(t, strategy.MechanismIdle)
	disk := &fullDisk{Memory: journal.NewMemory()}
	j, err := journal.OpenDisk(disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	writer := apply.New(w.tree, j, w.kernel.Now)
	writer.Tasks, w.agent.Writer = c, writer
	w.run(2 * time.Second)
	disk.full = true
	w.ask(strategy.MechanismSlice)
	w.run(2 * time.Second)
	w.wantProblem("/web: slice: refused")
	w.ask(strategy.MechanismIdle)
	w.run(10 * time.Second)
	if results := w.agent.Status().Writes.Results[plan.Slice]; results[plan.Skipped] != 1 {
		t.Errorf("%v", results)
	}
}

// TestSliceBesides: a slice may be asked for besides any mechanism, and is changed and taken back with it.
func TestSliceBesides(t *testing.T) {
	w, c := manned(t, strategy.MechanismIdle)
	for _, slice := range []time.Duration{3 * ms, 10 * ms, 0} {
		w.agent.Configure(strategy.NodePatch{Colocation: strategy.ColocationPatch{Slice: &slice}}.Over(
			w.agent.Strategy), nil)
		w.run(2 * time.Second)
		if got := c.slices[w.task("/web")]; got != slice {
			t.Errorf("slice %v, want %v", got, slice)
		}
		w.wantFile("/batch/cpu.idle", "1")
	}
}

// TestCookies: offline tasks have one cookie, and none after the end.
func TestCookies(t *testing.T) {
	w, c := manned(t, strategy.MechanismCoreSched)
	w.run(2 * time.Second)
	online, offline := w.task("/web"), w.task("/batch")
	if c.cookies[offline] != 4711 || c.cookies[online] != 0 {
		t.Errorf("cookies %v of online %d, offline %d", c.cookies, online, offline)
	}
	w.wantFile("/batch/cpu.idle", "1")
	if err := w.agent.stop(); err != nil {
		t.Fatal(err)
	}
	if c.cookies[offline] != 0 {
		t.Errorf("cookies %v after the end", c.cookies)
	}
}

// TestNoCookies: where none can be made, the next best mechanism is used, and said why.
func TestNoCookies(t *testing.T) {
	w, c := manned(t, strategy.MechanismCoreSched)
	c.refuse = errors.New("the kernel has no memory")
	w.agent.colocation.Tasks = c
	w.run(2 * time.Second)
	s := w.agent.Status().Colocation
	if s.Mechanism != strategy.MechanismIdle || len(c.cookies) > 0 {
		t.Errorf("%+v, cookies %v", s, c.cookies)
	}
	var found report.Mechanism
	for _, m := range s.Mechanisms {
		if m.Name == strategy.MechanismCoreSched {
			found = m
		}
	}
	if found.Usable || found.Why != "the kernel has no memory" {
		t.Errorf("%+v", found)
	}
}
