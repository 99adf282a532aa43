package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// throttlesAtSwitches says that tasks are throttled one by one: then only a switch shows it.
func throttlesAtSwitches(t *testing.T) bool {
	t.Helper()
	return cgrouptest.AtLeast(cgrouptest.Release(t), "6.18")
}

// The programs for enqueued tasks are loaded where the kernel throttles at an enqueue, and only there.
func TestProgramsOfTheKernel(t *testing.T) {
	p := open(t, Options{})
	for _, name := range []string{kernelProgSchedWakeup, kernelProgSchedWakeupNew, kernelProgSchedMigrateTask} {
		if got, want := p.programs.Get(name) != nil, !throttlesAtSwitches(t); got != want {
			t.Errorf("%s is loaded: %v, want %v", name, got, want)
		}
	}
}

// enqueues opens one of the programs for enqueued tasks.
func enqueues(t *testing.T, name string, o Options) *Probe {
	t.Helper()
	if throttlesAtSwitches(t) {
		cgrouptest.Elsewhere(t, "tier vm", "a switch shows all here, and %s is not loaded", name)
	}
	o.change = only(name)
	return open(t, o)
}

// A task that wakes on a CPU that has no runtime left is throttled without ever being switched away from. Only the
// programs for wake-ups are loaded here: the spinner that empties the pool on CPU 0 is not seen. Nor are most throttles
// of the sleeper, which begin as it goes to sleep, at a switch: one period in twenty has two that are seen, so that
// there are ten a second.
func TestSleeperOnAnotherCPU(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := enqueues(t, kernelProgSchedWakeup, Options{Realtime: true})
	g := cgrouptest.New(t)
	fillings := 0
	h := subscribe(t, p, func(Event) {
		if fillings++; fillings%2 == 1 && fillings < 1000 {
			g.Limit(20 * ms)
		}
	})
	sleeper, _ := helper(t, "sleep")
	g.Move(sleeper.Process.Pid)
	watch(t, p, g)
	limit(t, g, 20*ms, 100*ms)
	cgrouptest.Pin(t, 0, g.Spin(1)[0])
	within(t, 20*time.Second, "the sleeper is reported", func() bool {
		return slices.ContainsFunc(h.begins(0), func(e Event) bool { return e.CPU == 1 && e.Facts.Runtime == 0 })
	})
	// No end is seen at a wake-up, and still each filling and each period starts over.
	within(t, 20*time.Second, "the next filling and the next period", func() bool {
		var filling, period bool
		list := h.begins(0)
		for i := 1; i < len(list); i++ {
			same := list[i].Facts.Expires == list[i-1].Facts.Expires
			filling, period = filling || same, period || !same
		}
		return filling && period
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.late)
	if late := h.late[len(h.late)/2]; late > ms && !emulated() {
		t.Errorf("reported %v after the wake-up (median of %d)", late, len(h.late))
	}
}

// So is a child that is born to a CPU that has none left, by a parent that has.
func TestBornThrottled(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := enqueues(t, kernelProgSchedWakeupNew, Options{})
	g := cgrouptest.New(t)
	h := subscribe(t, p, nil)
	watch(t, p, g)
	limit(t, g, 8*ms, 20*ms)
	cgrouptest.Pin(t, 1, g.Spin(1)[0])
	g.Start("while :; do (:) & (:) & wait; done")
	within(t, 20*time.Second, "a child is reported", func() bool { return len(h.begins(0)) > 0 })
}

// A task that is moved while it waits for a CPU is throttled where it arrives. Since 6.18 it is throttled when it runs,
// which a switch shows.
func TestMovedThrottled(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := enqueues(t, kernelProgSchedMigrateTask, Options{})
	g := cgrouptest.New(t)
	h := subscribe(t, p, nil)
	watch(t, p, g)
	two := g.Spin(2)
	cgrouptest.Pin(t, 0, two[0])
	cgrouptest.Pin(t, 0, two[1])
	limit(t, g, 5*ms, time.Second)
	time.Sleep(300 * ms)
	if list := h.begins(0); len(list) > 0 {
		t.Fatalf("no task was moved yet: %s", in(list))
	}
	cgrouptest.Pin(t, 1, two[1])
	time.Sleep(100 * ms)
	if list := h.begins(0); len(list) != 1 || list[0].CPU != 1 {
		t.Errorf("moved to CPU 1: %s", in(list))
	}
}

// A task that uses the last of the pool and goes to sleep delays no other. The kernel counts the period at whose end
// the queue was throttled. The napper is alone, so the time that it waited for a CPU shows that no task waited.
func TestNobodyWaits(t *testing.T) {
	const quota, period = 2 * ms, time.Second
	p := open(t, Options{})
	g := cgrouptest.New(t)
	g.Prevail()
	watch(t, p, g)
	n := newNapper(t, g)
	for range 20 {
		limit(t, g, quota, period) // fills the pool
		first, begins, waited := kernelCounters(t, g), totals(t, p, g).Begins, time.Duration(0)
		// A microsecond before the pool is empty, for v2 counts in microseconds: no task may wake in a throttled queue.
		for kernelCounters(t, g).Usage-first.Usage < quota-time.Microsecond {
			waited = n.waited()
			n.wake()
		}
		time.Sleep(period + 100*ms)
		if kernelCounters(t, g).Throttled == first.Throttled || n.waited() > waited+10*ms {
			continue // a period ended between, or the napper woke, or met a tick, when the pool was dry
		}
		if got := totals(t, p, g); got.Begins != begins {
			t.Errorf("no task waited: %+v", got)
		}
		return
	}
	t.Error("in 20 tries the queue was never throttled while empty")
}

// napper is a shell on CPU 0 that sleeps, but for a moment at each line.
type napper struct {
	t       *testing.T
	process *cgrouptest.Process
	lines   *os.File
}

func newNapper(t *testing.T, g *cgrouptest.Group) *napper {
	t.Helper()
	name := filepath.Join(t.TempDir(), "lines")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := os.OpenFile(name, os.O_RDWR, 0) // to read, too, so that it need not wait for the shell
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lines.Close() })
	n := &napper{t, g.Start("while read line; do :; done <" + name), lines}
	cgrouptest.Pin(t, 0, n.process)
	n.wake()
	return n
}

// wake returns when it sleeps again. A task that is woken is no sleeper any more when the write returns.
func (n *napper) wake() {
	n.t.Helper()
	if _, err := n.lines.WriteString("\n"); err != nil {
		n.t.Fatal(err)
	}
	within(n.t, 30*time.Second, "the napper sleeps again", n.sleeps)
}

// sleeps says whether it is off its CPU in a system call, whose number the file begins with then (lib/syscall.c,
// task_current_syscall and wait_task_inactive).
func (n *napper) sleeps() bool {
	return strings.HasPrefix(strings.TrimLeft(n.proc("syscall"), "0123456789"), " ")
}

// waited is for how long a task was runnable and did not run (fs/proc/base.c, proc_pid_schedstat).
func (n *napper) waited() (delay time.Duration) {
	var ran int64
	if _, err := fmt.Sscan(n.proc("schedstat"), &ran, &delay); err != nil {
		n.t.Fatal(err)
	}
	return delay
}

func (n *napper) proc(file string) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", n.process.PID(), file))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(data)
}
