package agent

import (
	"errors"
	"io/fs"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

const shieldGroup = "/plimsoll-shield"

// newShielded is a world with a container that has CPU 0 of its own, and three tasks in the root that are kept off it.
func newShielded(t *testing.T) *world {
	w := newShared(t, 1, 4)
	w.shield = true
	w.revive()
	w.kernel.SetTasks("/", 3)
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(time.Second)
	w.wantShield("1-3", 3)
	return w
}

func (w *world) wantShield(cpus string, tasks int) {
	w.t.Helper()
	set, err1 := w.tree.CPUs(shieldGroup)
	in, err2 := w.tree.CPUSetThreads(shieldGroup)
	if err := errors.Join(err1, err2); err != nil || set.String() != cpus || len(in) != tasks {
		w.t.Errorf("the shield has CPUs %q and tasks %v (%v), want %q and %d", set, in, err, cpus, tasks)
	}
}

// wantRoot is what there is without a shield.
func (w *world) wantRoot(tasks int) {
	w.t.Helper()
	if _, err := w.tree.CPUs(shieldGroup); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("the shield is still there: %v", err)
	}
	if in, err := w.tree.CPUSetTasks("/"); err != nil || len(in) != min(tasks, 1) {
		w.t.Errorf("processes of the root: %v (%v)", in, err)
	}
	if in, err := w.tree.Tasks("/"); err != nil || len(in) != tasks {
		w.t.Errorf("tasks of the root: %v (%v)", in, err)
	}
}

// TestShield: who is in the root is in a group that is confined, who comes later too, nothing is written where nobody
// comes, and after a crash all is as before, whatever the journal knows.
func TestShield(t *testing.T) {
	w := newShielded(t)
	got := w.agent.Status().Reserve
	if got == nil || got.Shield == nil || got.Shield.Cgroup != shieldGroup || got.Shield.Tasks != 3 ||
		got.Unbound != 0 {
		t.Errorf("status %+v", got)
	}
	w.kernel.SetTasks("/", 5)
	w.run(3 * time.Second)
	w.wantShield("1-3", 5)
	writes := w.ours()
	w.run(2 * time.Minute)
	if n := w.ours() - writes; n != 0 {
		t.Errorf("%d writes where nothing happened", n)
	}
	w.disk = journal.NewMemory()
	w.revive() // kill -9
	w.wantRoot(5)
}

// TestShieldEnds: however it ends, nothing of it is left.
func TestShieldEnds(t *testing.T) {
	for name, end := range map[string]func(*world){
		"stop":      func(w *world) { _ = w.agent.stop() },
		"successor": func(w *world) { w.agent.Successor = func() bool { return true }; _ = w.agent.stop() },
		"crash":     func(w *world) { w.shield = false; w.revive() },
		"adopted":   func(w *world) { w.agent.cpus.Rules = strategy.DefaultReserve(); w.agent.Adopt(nil) },
		"off": func(w *world) {
			w.agent.Reserve(strategy.Reserve{Policy: strategy.ReserveCPUSet, MinShared: 1})
			w.run(time.Second)
			if got := w.files("/a"); got != "/a=0 max" || w.agent.Status().Reserve.Shield != nil {
				t.Errorf("without a shield: %s, status %+v", got, w.agent.Status().Reserve)
			}
		},
		"none": func(w *world) {
			w.agent.Reserve(strategy.Reserve{Policy: strategy.ReserveNone, Shield: true})
			w.run(time.Second)
		},
		"nobody": func(w *world) { w.place.pods = nil; w.run(3 * time.Second) },
		"held":   func(w *world) { _, _ = w.agent.Hold(t.Context(), true, "a test"); w.run(3 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newShielded(t)
			w.t = t
			end(w)
			w.wantRoot(3)
		})
	}
}

// TestShieldHeld: while nothing may be written it stays as it is, and nobody is moved.
func TestShieldHeld(t *testing.T) {
	w := newShielded(t)
	if _, err := w.agent.Hold(t.Context(), false, "a test"); err != nil {
		t.Fatal(err)
	}
	w.kernel.SetTasks("/", 5)
	w.run(3 * time.Second)
	w.wantShield("1-3", 0)
	if got := w.agent.Status(); got.Reserve.Shield == nil ||
		strings.Contains(strings.Join(got.Problems, "\n"), "shield") {
		t.Errorf("status %+v, problems %v", got.Reserve, got.Problems)
	}
	if err := w.agent.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantShield("1-3", 5)
}

// TestShieldRefused: a task that the kernel does not let go is unbound, and is tried again after a minute.
func TestShieldRefused(t *testing.T) {
	w := newShared(t, 1, 4)
	w.shield = true
	w.revive()
	tries := 0
	w.kernel.Fault = func(op, name string, data []byte) error {
		if op == "write" && name == "cpuset"+shieldGroup+"/tasks" && string(data) == "1" {
			tries++
			return syscall.EINVAL
		}
		return nil
	}
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(50 * time.Second)
	w.wantShield("1-3", 0)
	if got := w.agent.Status().Reserve; tries != 1 || got.Unbound != 1 || got.Shield.Tasks != 0 {
		t.Errorf("%d tries, status %+v", tries, got)
	}
	w.run(30 * time.Second)
	if tries != 2 {
		t.Errorf("%d tries in 80 s", tries)
	}
}

// TestShieldKeepsNoThrottleWaiting: a throttle is answered while the tasks of the root are moved, into the shield and
// back.
func TestShieldKeepsNoThrottleWaiting(t *testing.T) {
	w := newShared(t, 1, 4)
	w.shield = true
	w.revive()
	w.kernel.SetTasks("/", 3)
	moved, answered := map[string]int{}, map[string]int{}
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasSuffix(name, "/tasks") {
			if moved[name]++; w.answerable() {
				answered[name]++
			}
		}
		return nil
	}
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(time.Second)
	w.wantShield("1-3", 3)
	w.place.pods = nil
	w.run(3 * time.Second)
	w.wantRoot(3)
	if len(moved) != 2 || !maps.Equal(moved, answered) {
		t.Errorf("throttles could be answered at %v of the moves %v", answered, moved)
	}
}

// TestShieldKept: a group that somebody has made in it keeps it, said, and only as long as that one is there.
func TestShieldKept(t *testing.T) {
	w := newShielded(t)
	if err := w.kernel.Mkdir("cpuset" + shieldGroup + "/nested"); err != nil {
		t.Fatal(err)
	}
	w.place.pods = nil
	w.run(3 * time.Second)
	w.wantShield("0-3", 0)
	if got := strings.Join(w.agent.Status().Problems, "\n"); !strings.Contains(got,
		shieldGroup+": not removed: "+shieldGroup+"/nested is in it") {
		t.Errorf("problems: %s", got)
	}
	if err := w.kernel.Rmdir("cpuset" + shieldGroup + "/nested"); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	w.wantRoot(3)
}

// TestShieldUnified: on v2 nothing is done, and why is said.
func TestShieldUnified(t *testing.T) {
	w := newShared(t, 2, 4)
	w.shield = true
	w.revive()
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(3 * time.Second)
	if got := strings.Join(w.agent.Status().Problems, "\n"); !strings.Contains(got, "shield: cgroup v2") {
		t.Errorf("problems: %s", got)
	}
	if got := w.agent.Status().Reserve; got == nil || got.Shield != nil || len(w.agent.cpus.Problems()) > 1 {
		t.Errorf("problem %q, status %+v", w.agent.cpus.Problems(), got)
	}
	for _, x := range w.agent.Tick(w.kernel.Now()).Results {
		if x.Change.Knob == plan.Shield {
			t.Errorf("%+v", x)
		}
	}
	w.wantRoot(1)
}

// refuse has the kernel refuse writes and directories of the cpuset hierarchy, and counts them.
func (w *world) refuse(op, name, data string, with error) *int {
	tries := new(int)
	w.kernel.Fault = func(o, n string, d []byte) error {
		if o == op && n == "cpuset"+name && (data == "" || string(d) == data) {
			*tries++
			return with
		}
		return nil
	}
	return tries
}

// TestShieldDenied: an agent that may not make the group, as without CAP_DAC_OVERRIDE, says so, has none, and tries no
// more often than it looks.
func TestShieldDenied(t *testing.T) {
	w := newShared(t, 1, 4)
	w.shield = true
	w.revive()
	tries := w.refuse("mkdir", shieldGroup, "", syscall.EACCES)
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(10 * time.Second)
	if *tries < 4 || *tries > 8 {
		t.Errorf("%d tries in 10 s", *tries)
	}
	got := w.agent.Status()
	if got.Reserve == nil || got.Reserve.Shield != nil ||
		strings.Count(strings.Join(got.Problems, "\n"), "mkdir") != 1 {
		t.Errorf("problems %q, status %+v", got.Problems, got.Reserve)
	}
	w.wantProblem("shield: " + shieldGroup + ": mkdir cpuset" + shieldGroup +
		": permission denied (hint: it takes CAP_DAC_OVERRIDE")
	if got := w.files("/a"); got != "/a=0 max" {
		t.Errorf("without a shield: %s", got)
	}
	w.kernel.Fault = nil
	w.run(3 * time.Second)
	w.wantShield("1-3", 1)
	w.wantProblem("")
}

// TestShieldStuck: a thread that cannot be moved, whatever the kernel says of it, keeps none of the others where it is,
// neither on the way in nor on the way out.
func TestShieldStuck(t *testing.T) {
	for with, in := range map[error]string{syscall.EINVAL: "", syscall.EPERM: "threads that cannot be moved: 1",
		syscall.EACCES: "threads that cannot be moved: 1"} {
		t.Run(with.Error(), func(t *testing.T) {
			w := newShared(t, 1, 4)
			w.shield = true
			w.revive()
			w.kernel.SetTasks("/", 3)
			tids, err := w.tree.CPUSetThreads("/")
			if err != nil {
				t.Fatal(err)
			}
			first := strconv.Itoa(tids[0])
			w.refuse("write", shieldGroup+"/tasks", first, with)
			w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
			w.run(5 * time.Second)
			w.wantShield("1-3", 2)
			w.wantProblem(in)
			w.kernel.Fault = nil
			w.run(2 * time.Minute)
			w.wantShield("1-3", 3)
			w.wantProblem("")

			w.refuse("write", "/tasks", first, with)
			w.place.pods = nil
			w.run(3 * time.Second)
			w.wantShield("0-3", 1)
			w.wantProblem(shieldGroup + ": not removed: threads that cannot be moved: 1, the first is " + first +
				" (task" + first + "): ")
			w.kernel.Fault = nil
			w.run(3 * time.Second)
			w.wantRoot(3)
			w.wantProblem("")
		})
	}
}

// TestShieldKeptAtTheStart: what an agent before this one could not undo, and what could not be undone for this one, is
// said and tried again though nobody asks.
func TestShieldKeptAtTheStart(t *testing.T) {
	for name, start := range map[string]func(*world){
		"adopted":   func(w *world) { w.agent.Adopt(nil) },
		"recovered": func(w *world) { w.agent.Recovered(nil, w.agent.Writer.Restore(nil, false)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newShielded(t)
			w.t = t
			w.shield, w.place.pods = false, nil
			w.refuse("write", "/tasks", "", syscall.EINVAL)
			w.revive()
			start(w)
			w.run(3 * time.Second)
			w.wantProblem(shieldGroup + ": not removed: threads that cannot be moved: 3")
			w.kernel.Fault = nil
			w.run(3 * time.Second)
			w.wantRoot(3)
			w.wantProblem("")
		})
	}
}

// TestShieldGrows: a group that was made while a CPU was offline has it afterwards, and who asks keeps its CPUs.
func TestShieldGrows(t *testing.T) {
	w := newShared(t, 1, 4)
	w.shield = true
	w.revive()
	w.kernel.SetTasks("/", 3)
	w.kernel.Fault = func(op, name string, data []byte) error { // the kernel leaves a CPU out that is offline
		if op == "write" && name == "cpuset"+shieldGroup+"/cpuset.cpus" && strings.TrimSpace(string(data)) == "0-3" {
			w.kernel.Fault = nil
			data[2] = '2'
		}
		return nil
	}
	w.made("/a", 100*ms, workload.ExclusiveStrict, 1)
	w.run(time.Second)
	w.wantShield("1-3", 3)
	if got := w.agent.Status().Reserve; got == nil || len(got.Exclusive) != 1 || got.Exclusive[0].CPUs != "0" ||
		len(got.Pinned) != 0 {
		t.Errorf("status %+v", got)
	}
	w.place.pods = nil
	w.run(3 * time.Second)
	w.wantRoot(3)
}
