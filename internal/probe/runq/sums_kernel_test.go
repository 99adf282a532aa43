package runq

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe/probetest"
)

// What a group is said to have received is what the kernel counts, and its waits are those of its threads, through a
// storm of processes and threads that live for a moment. What is known of each ends with it.
func TestForkStormAddsUp(t *testing.T) { forkStorm(t, Options{}) }

// No time is lost where a CPU has one cell for all groups: another group runs on the same CPUs, and each takes
// the cell from the other.
func TestSharedCellsAddUp(t *testing.T) {
	forkStorm(t, Options{rowCells: int(First) + 1})
}

func forkStorm(t *testing.T, o Options) {
	p := open(t, o)
	g, other := cgrouptest.New(t), cgrouptest.New(t)
	slot := set(t, p, g, 1)
	set(t, p, other, 1)
	other.Spin(2)
	storm := []*cgrouptest.Process{g.Start("while :; do /bin/true; (:); done"),
		g.Start("while :; do (: & : & wait); done")}
	var helpers []*exec.Cmd
	for _, role := range []string{"threads", "execs"} {
		cmd, _, _ := cgrouptest.Dialogue(t, role)
		g.Move(cmd.Process.Pid)
		helpers = append(helpers, cmd)
	}
	time.Sleep(200 * ms)
	first := look(t, p, slot, g, 0)
	time.Sleep(1500 * ms)
	got := look(t, p, slot, g, 0).against(t, first)
	for _, cmd := range helpers {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: its error says so
	}
	over(t, p, slot, g, storm...)
	if n := known(t, p, slot); n > 0 {
		t.Errorf("%d threads of the group that have ended are still known", n)
	}
	if got.Waits < 100 && !emulated() {
		t.Errorf("a storm with %d waits", got.Waits)
	}
	if tasks, _ := p.Lost(); tasks > 0 {
		t.Errorf("%d threads were not seen", tasks)
	}
}

// threadStorm starts threads that end at once.
func threadStorm() {
	for end := monotonic() + time.Minute; monotonic() < end; {
		var all sync.WaitGroup
		for range 4 {
			all.Go(runtime.LockOSThread) // a thread ends with a goroutine that keeps it
		}
		all.Wait()
	}
}

// threadExecs becomes another program again and again, in a thread that is not its process's first: it takes the pid
// of that one.
func threadExecs() {
	failed := make(chan error)
	for range 2 { // of which one at most has the first thread
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() != os.Getpid() {
				failed <- syscall.Exec("/proc/self/exe", os.Args, os.Environ())
			}
			select {}
		}()
	}
	fmt.Println(<-failed)
}

// known counts the threads of a group in the tables.
func known(t testing.TB, p *Probe, slot Slot) (n int) {
	t.Helper()
	var id uint64
	var task kernelTask
	list := p.objects.Tasks.Iterate()
	for list.Next(&id, &task) {
		if Slot(task.Slot) == slot {
			n++
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// The time of a thread that is moved from group to group, while it runs and while it waits,
// belongs to one or the other.
func TestMovesAddUp(t *testing.T) {
	p := open(t, Options{})
	a, b, beside := cgrouptest.New(t), cgrouptest.New(t), cgrouptest.New(t)
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	s := a.Spin(1)[0]
	cgrouptest.Pin(t, 0, s, beside.Spin(1)[0])
	time.Sleep(100 * ms)
	first := [2]Sums{read(t, p, ours), read(t, p, theirs)}
	runsIn := func(g *cgrouptest.Group) { // a move costs it its place in the queue
		g.Move(s.PID())
		before := runTime(t, s.PID())
		for end := time.Now().Add(10 * time.Second); runTime(t, s.PID()) == before && time.Now().Before(end); {
			time.Sleep(3 * ms)
		}
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		runsIn(b)
		runsIn(a)
	}
	x, y := read(t, p, ours).minus(first[0]), read(t, p, theirs).minus(first[1])
	if wanted := x.Running + x.Waiting + y.Running + y.Waiting; !near(wanted, x.At, 0.01) || x.Running == 0 ||
		y.Running == 0 {
		t.Errorf("wanted %v of %v: %+v, %+v", wanted, x.At, x, y)
	}
	s.Stop()
	over(t, p, ours, a)
	over(t, p, theirs, b)
}

// A thread that is moved to and fro, while another keeps one of the CPUs busy.
func TestMigrationAddsUp(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	slot := set(t, p, a, 1)
	cgrouptest.Pin(t, 0, b.Spin(1)[0])
	s := a.Spin(1)[0]
	cgrouptest.Pin(t, 0, s)
	time.Sleep(100 * ms)
	first := look(t, p, slot, a, s.PID())
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(3 * ms) {
		cgrouptest.Pin(t, 1, s)
		time.Sleep(3 * ms)
		cgrouptest.Pin(t, 0, s)
	}
	got := look(t, p, slot, a, s.PID()).against(t, first)
	if !near(got.Running+got.Waiting, got.At, 0.01) {
		t.Errorf("wanted %v of %v", got.Running+got.Waiting, got.At)
	}
	over(t, p, slot, a, s)
}

// over ends the processes of a group. When no thread waits any more, all waits have their causes.
func over(t *testing.T, p *Probe, slot Slot, g *cgrouptest.Group, list ...*cgrouptest.Process) {
	t.Helper()
	for _, s := range list {
		s.Stop()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * ms) {
		populated, err := g.Tree().Populated(g.Path)
		if err != nil || time.Now().After(end) {
			t.Fatalf("the group does not become empty: %v", err)
		}
		if !populated {
			break
		}
	}
	time.Sleep(50 * ms) // a process has left its group before its last switch
	first := read(t, p, slot)
	time.Sleep(50 * ms)
	if last := read(t, p, slot); last.Waiting != first.Waiting || last.Running != first.Running {
		t.Errorf("an empty group wants a CPU: %v waiting, %v running in %v", last.Waiting-first.Waiting,
			last.Running-first.Running, last.At-first.At)
	}
	if off := (first.explained() - first.Waiting).Abs(); off > first.Waiting/100+ms {
		t.Errorf("%v of waiting, %v of it explained: %+v", first.Waiting, first.explained(), first)
	}
}

// sight is a group at one instant: the kernel's counters between two readings of the probe, because reading takes time.
type sight struct {
	before, after Sums
	used          time.Duration // by the group
	delay         time.Duration // of a thread, if there is one
}

func look(t testing.TB, p *Probe, slot Slot, g *cgrouptest.Group, pid int) sight {
	t.Helper()
	s := sight{before: read(t, p, slot), used: usage(t, g)}
	if pid > 0 {
		s.delay = runDelay(t, pid)
	}
	s.after = read(t, p, slot)
	return s
}

// against compares the probe's sums since another sight with the kernel's, and returns them.
func (s sight) against(t testing.TB, first sight) Sums {
	t.Helper()
	least, most := s.before.minus(first.after), s.after.minus(first.before)
	check := func(what string, kernel, least, most time.Duration) {
		t.Helper()
		off := least/50 + 20*ms // the kernel accounts for the running task from tick to tick
		if emulated() {
			off = least/5 + 50*ms // from the kernel's clock of a switch to ours it is long
		}
		if kernel < least-off || kernel > most+off {
			t.Errorf("%s: between %v and %v, the kernel counts %v", what, least, most, kernel)
		}
	}
	received := func(s Sums) time.Duration { return s.Running - s.IRQ - s.Steal }
	check("received", s.used-first.used, received(least), received(most))
	if s.delay > 0 {
		// the kernel, too, counts waits that are over
		check("waited", s.delay-first.delay, least.explained(), most.explained())
	}
	return most
}

// A thousand containers in the tables, of which the last ones are found as the first.
func TestThousandContainers(t *testing.T) {
	p := open(t, Options{})
	top := cgrouptest.New(t)
	var last *cgrouptest.Group
	var slot Slot
	for i := range 1000 {
		last = top.Child(strconv.Itoa(i))
		slot = set(t, p, last, 1)
	}
	cgrouptest.Pin(t, 0, last.Spin(1)[0])
	time.Sleep(50 * ms)
	got := during(t, p, 200*ms, slot)[0]
	if !near(got.Running+got.Waiting, got.At, 0.02) {
		t.Errorf("wanted %v of %v", got.Running+got.Waiting, got.At)
	}
	begin := time.Now()
	for s := First; s <= slot; s++ {
		read(t, p, s)
	}
	if took := time.Since(begin); !emulated() && took > 50*ms {
		t.Errorf("a thousand readings took %v, of slices of 100ms", took)
	}
}

// Threads that run and wait when the programs are attached are counted, though they may not switch for long.
func TestCountsThreadsOfTheStart(t *testing.T) {
	g := cgrouptest.New(t)
	cgrouptest.Pin(t, 0, g.Spin(3)...)
	time.Sleep(50 * ms)
	p := load(t, Options{})
	slot := set(t, p, g, 1)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got := during(t, p, 300*ms, slot)[0]; !near(got.Running+got.Waiting, 3*got.At, 0.01) {
		t.Errorf("three threads wanted %v of %v", got.Running+got.Waiting, 3*got.At)
	}
}

// Nothing stays in the kernel.
func TestLeavesNothing(t *testing.T) {
	p := load(t, Options{})
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []ebpf.ProgramID
	for _, program := range p.programs.All() {
		info, err := program.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := info.ID()
		ids = append(ids, id)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * ms) { // the kernel frees them after a grace period
		left := 0
		for _, id := range ids {
			if p, err := ebpf.NewProgramFromID(id); err == nil {
				p.Close()
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d programs are still loaded", left, len(ids))
		}
	}
}

func usage(t testing.TB, g *cgrouptest.Group) time.Duration {
	t.Helper()
	d, err := g.Tree().Usage(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func throttled(t testing.TB, g *cgrouptest.Group) time.Duration {
	t.Helper()
	c, err := g.Tree().Stat(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	return c.ThrottledTime
}

// runTime and runDelay are the first two numbers of /proc/PID/schedstat.
func runTime(t testing.TB, pid int) time.Duration { return schedstat(t, pid, 0) }

func runDelay(t testing.TB, pid int) time.Duration { return schedstat(t, pid, 1) }

func schedstat(t testing.TB, pid, field int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(data))[field], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(n)
}

// idleTime is what /proc/stat says of a CPU, in steps of 10 ms.
func idleTime(t testing.TB, cpu int) time.Duration {
	t.Helper()
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 5 && f[0] == fmt.Sprintf("cpu%d", cpu) {
			idle, err := strconv.ParseInt(f[4], 10, 64)
			wait, err2 := strconv.ParseInt(f[5], 10, 64)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			return time.Duration(idle+wait) * 10 * ms
		}
	}
	t.Fatalf("/proc/stat has no CPU %d", cpu)
	return 0
}

// The verifier is far from its limit.
func TestVerifierOfWaits(t *testing.T) {
	p := load(t, Options{})
	probetest.FarFromLimit(t, p.programs.All())
}
