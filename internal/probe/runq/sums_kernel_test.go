package runq

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

// What a group is said to have received is what the kernel counts, and its waits are those of its threads, through a
// storm of processes that live for a moment.
func TestForkStormAddsUp(t *testing.T) {
	p := open(t, Options{})
	g := cgrouptest.New(t)
	slot := set(t, p, g, 1)
	g.Start("while :; do /bin/true; (:); done")
	g.Start("while :; do (: & : & wait); done")
	time.Sleep(200 * ms)
	used := usage(t, g)
	got := during(t, p, 1500*ms, slot)[0]
	used = usage(t, g) - used
	if received := got.Running - got.IRQ - got.Steal; !near(received, used, slack(0.02)) {
		t.Errorf("received %v, the kernel counts %v", received, used)
	}
	if !near(got.explained(), got.Waiting, 0.1) {
		t.Errorf("%v of waiting, %v of it explained: %+v", got.Waiting, got.explained(), got)
	}
	if got.Waits < 100 {
		t.Errorf("a storm with %d waits", got.Waits)
	}
	if tasks, _ := p.Lost(); tasks > 0 {
		t.Errorf("%d threads were not seen", tasks)
	}
}

// A thread that is moved to and fro, while another keeps one of the CPUs busy.
func TestMigrationAddsUp(t *testing.T) {
	needTwoCPUs(t)
	p := open(t, Options{})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	slot := set(t, p, a, 1)
	pin(t, 0, b.Spin(1)[0])
	s := a.Spin(1)[0]
	pin(t, 0, s)
	time.Sleep(100 * ms)
	delay, used, before := runDelay(t, s.PID()), usage(t, a), read(t, p, slot)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(3 * ms) {
		pin(t, 1, s)
		time.Sleep(3 * ms)
		pin(t, 0, s)
	}
	got := read(t, p, slot).minus(before)
	delay, used = runDelay(t, s.PID())-delay, usage(t, a)-used
	if !near(got.Running+got.Waiting, got.At, 0.01) {
		t.Errorf("wanted %v of %v", got.Running+got.Waiting, got.At)
	}
	if received := got.Running - got.IRQ - got.Steal; !near(received, used, slack(0.02)) {
		t.Errorf("received %v, the kernel counts %v", received, used)
	}
	if !near(got.Waiting, delay, slack(0.05)) {
		t.Errorf("waited %v, /proc/PID/schedstat says %v", got.Waiting, delay)
	}
	if !near(got.explained(), got.Waiting, 0.15) {
		t.Errorf("%v of waiting, %v of it explained: %+v", got.Waiting, got.explained(), got)
	}
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
	pin(t, 0, last.Spin(1)[0])
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

// Threads that run and wait when the programs come are counted, though they may not be switched for long.
func TestCountsWhoIsThere(t *testing.T) {
	g := cgrouptest.New(t)
	pin(t, 0, g.Spin(3)...)
	time.Sleep(50 * ms)
	p := open(t, Options{})
	slot := set(t, p, g, 1)
	time.Sleep(100 * ms) // each thread is switched once, into the group's slot
	if got := during(t, p, 300*ms, slot)[0]; !near(got.Running+got.Waiting, 3*got.At, 0.01) {
		t.Errorf("three threads wanted %v of %v", got.Running+got.Waiting, 3*got.At)
	}
}

// Nothing stays in the kernel.
func TestLeavesNothing(t *testing.T) {
	p, err := Open(Options{})
	if err != nil {
		cgrouptest.Skip(t, "%v", err)
	}
	var ids []ebpf.ProgramID
	for _, program := range p.programs() {
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

// needTwoCPUs: what is seen on another CPU needs another.
func needTwoCPUs(t *testing.T) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || !set.IsSet(0) || !set.IsSet(1) {
		cgrouptest.Skip(t, "there are no CPUs 0 and 1: %v", err)
	}
}
