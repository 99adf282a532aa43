package probe

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// flood makes a group throttle as often as the kernel's tick lets it, until there are so many begins.
func flood(t *testing.T, p *Probe, g *cgrouptest.Group, begins int64) Totals {
	t.Helper()
	watch(t, p, g)
	limit(t, g, ms, 5*ms)
	load := g.Spin(1)[0]
	within(t, 30*time.Second, "a flood", func() bool { return totals(t, p, g).Begins >= begins })
	g.Limit(cpu.Unlimited) // the end shows when the task runs again: one that is killed may not
	defer load.Stop()
	return unthrottled(t, p, g)
}

// Without a reader the events beyond the ring are counted, and the totals miss nothing.
func TestRingOverflows(t *testing.T) {
	p := open(t, Options{Ring: os.Getpagesize(), Rate: 1e6})
	g := cgrouptest.New(t)
	got := flood(t, p, g, 80)
	losses := p.Losses()
	h := subscribe(t, p, nil)
	sent := int(got.Begins - got.Dropped)
	within(t, time.Second, "what was sent is read", func() bool { return len(h.begins(0)) >= sent })
	if got.Dropped == 0 || losses.Full < got.Dropped || losses.Limited != 0 || losses.Broken != 0 ||
		p.Lost() != losses.Full {
		t.Errorf("%+v, %+v", got, losses)
	}
	if n := len(h.begins(0)); n != sent || got.Ends != got.Begins {
		t.Errorf("read %d begins: %+v", n, got)
	}
}

// Where a CPU of a group finds no room, what the group uses is not known, in place of what its other CPUs use: the cap
// would be held against too little. Its throttles are told of as ever.
func TestNoRoomForCPUs(t *testing.T) {
	p := open(t, Options{Use: true, Rate: 1e6, change: func(spec *ebpf.CollectionSpec) {
		spec.Maps[kernelMapQueues].MaxEntries = 1
	}})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 10*ms, 50*ms)
	watch(t, p, g)
	h := subscribe(t, p, nil)
	g.Spin(2)
	within(t, 30*time.Second, "a CPU finds no room", func() bool { return p.Unplaced() > 0 })
	n := len(h.begins(0))
	within(t, 30*time.Second, "throttles", func() bool { return len(h.begins(0)) >= n+5 })
	for _, e := range h.begins(0)[n+1:] {
		if e.Facts.Used >= 0 {
			t.Errorf("known is what one of two CPUs used: %+v", e.Facts)
		}
	}
	if got := totals(t, p, g); got.PeriodEnd != 0 || got.Counted {
		t.Errorf("periods are counted: %+v", got)
	}
}

// A walk looks at 64 CPUs. Where more are active, what it finds is a part, and is not told.
func TestNoUseOnManyCPUs(t *testing.T) {
	const many = 65
	p := open(t, Options{Use: true, Rate: 1e6})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 10*ms, 50*ms)
	watch(t, p, g)
	h := subscribe(t, p, nil)
	g.Spin(1)
	known := func(e Event) bool { return e.Facts.Used != NoUse }
	within(t, 30*time.Second, "use is known", func() bool { return slices.ContainsFunc(h.begins(0), known) })
	var state kernelGroup
	id := inode(t, g)
	if err := p.objects.Groups.Lookup(id, &state); err != nil {
		t.Fatal(err)
	}
	state.Actives += many // the machine has fewer
	if err := p.objects.Groups.Put(id, state); err != nil {
		t.Fatal(err)
	}
	n := len(h.begins(0))
	within(t, 30*time.Second, "throttles", func() bool { return len(h.begins(0)) >= n+5 })
	if late := h.begins(0)[n+1:]; slices.ContainsFunc(late, known) {
		t.Errorf("the use on some of the CPUs is told: %+v", late)
	}
}

// A group has its rate, and another one's flood does not use it up.
func TestRateIsLimited(t *testing.T) {
	const rate = 4
	p := open(t, Options{Rate: rate})
	h := subscribe(t, p, nil)
	loud, quiet := cgrouptest.New(t), cgrouptest.New(t)
	begin := time.Now()
	got := flood(t, p, loud, 80)
	took := time.Since(begin)
	losses := p.Losses()
	sent := int(got.Begins - got.Dropped)
	within(t, time.Second, "what was sent is read", func() bool { return len(h.begins(0)) >= sent })
	if got.Dropped == 0 || losses.Limited != got.Dropped || losses.Full != 0 || p.Lost() != 0 ||
		got.Ends != got.Begins {
		t.Errorf("%+v, %+v", got, losses)
	}
	if n := len(h.begins(0)); n != sent || n < 21 || n > 21+1+int(rate*took.Seconds()) {
		t.Errorf("%d of %d begins read after %v", n, got.Begins, took)
	}
	limit(t, quiet, 10*ms, time.Second)
	watch(t, p, loud, quiet)
	quiet.Spin(1)
	within(t, 5*time.Second, "the quiet group is reported", func() bool { return len(h.begins(inode(t, quiet))) > 0 })
}

// A group is removed while it is throttled: nothing of it stays, and other groups are reported as before.
func TestDeletedWhileThrottled(t *testing.T) {
	p := open(t, Options{})
	h := subscribe(t, p, nil)
	gone, other := cgrouptest.New(t), cgrouptest.New(t)
	limit(t, gone, 5*ms, time.Second)
	watch(t, p, gone, other)
	id := inode(t, gone)
	process := gone.Spin(1)[0]
	within(t, 10*time.Second, "it stands still", func() bool { return len(h.begins(id)) > 0 })
	evict(t, gone, process)
	if err := gone.Dir().Rmdir(gone.Tree().Dir(gone.Path)); err != nil {
		t.Fatal(err)
	}
	watch(t, p, other)
	if got, ok := p.Totals(id); ok {
		t.Errorf("it has totals: %+v", got)
	}
	var left kernelThrottle
	if err := p.objects.Standing.Lookup(id, &left); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("it still stands: %+v, %v", left, err)
	}
	if begun, ended := count(p.objects.Begun), count(p.objects.Ended); begun-ended != int64(p.forgotten) {
		t.Errorf("%d begun, %d ended, %d forgotten", begun, ended, p.forgotten)
	}
	limit(t, other, 20*ms, 100*ms)
	other.Spin(1)
	within(t, 5*time.Second, "another's throttle ends", func() bool { return totals(t, p, other).Ends > 1 })
}

// The end of a throttle is seen while another group is throttled, on a CPU whose task had no throttled group above it
// before that did.
func TestEndBesideAnother(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := open(t, Options{})
	g, other := cgrouptest.New(t), cgrouptest.New(t)
	g.Prevail()
	watch(t, p, g, other)
	cgrouptest.Pin(t, 1, other.Spin(1)[0])
	limit(t, other, ms, time.Second)
	cgrouptest.Pin(t, 0, g.Spin(1)[0])
	within(t, 5*time.Second, "the other group is throttled", func() bool { return totals(t, p, other).Since > 0 })
	time.Sleep(300 * ms) // with switches to a task above which no group is throttled
	limit(t, g, 5*ms, time.Second)
	within(t, 5*time.Second, "the group is throttled too", func() bool { return totals(t, p, g).Since > 0 })
	g.Limit(cpu.Unlimited)
	within(t, 5*time.Second, "it does not any more",
		func() bool { got := totals(t, p, g); return got.Since == 0 && got.Ends == got.Begins })
}

// All tasks leave a throttled group: the time until another task comes is not counted. That task runs again and
// again: a task that moves in while it runs is not switched to, and shows nothing until it has slept.
func TestDeserted(t *testing.T) {
	p := open(t, Options{})
	g := cgrouptest.New(t)
	g.Prevail()
	limit(t, g, 5*ms, 100*ms)
	watch(t, p, g)
	process, other := g.Spin(1)[0], cgrouptest.New(t).Start("while :; do sleep 0.05; done")
	within(t, 10*time.Second, "it stands still", func() bool { return totals(t, p, g).Since > 0 })
	evict(t, g, process)
	process.Stop()
	before := totals(t, p, g)
	time.Sleep(time.Second)
	limit(t, g, 80*ms, 100*ms) // enough for the new task
	g.Move(other.PID())
	got := unthrottled(t, p, g)
	if lost := got.Wall - before.Wall; lost > 300*ms && !emulated() {
		t.Errorf("no task was there for a second, and %v count as lost", lost)
	}
}

// evict moves a process to the root.
func evict(t *testing.T, g *cgrouptest.Group, p *cgrouptest.Process) {
	t.Helper()
	err := g.Dir().WriteFile(path.Join(g.Tree().Dir("/"), "cgroup.procs"), []byte(fmt.Sprint(p.PID())))
	if err != nil {
		t.Fatal(err)
	}
}

// Only the process's files keep the programs in the kernel.
func TestKilledLeavesNothing(t *testing.T) {
	holder, lines := helper(t, "keep")
	var ids []ebpf.ProgramID
	for _, line := range lines {
		var id ebpf.ProgramID
		if _, err := fmt.Sscanf(line, "program %d", &id); err == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) != len(open(t, Options{}).programs.All()) || !loaded(ids[0]) {
		t.Fatalf("programs %v, the first is loaded: %v", ids, len(ids) > 0 && loaded(ids[0]))
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it says that it was killed
	for _, id := range ids {
		within(t, 5*time.Second, fmt.Sprintf("program %d is gone", id), func() bool { return !loaded(id) })
	}
}

func loaded(id ebpf.ProgramID) bool {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return false
	}
	_ = program.Close()
	return true
}

// A program that the verifier refuses leaves its log, and nothing in the kernel.
func TestRefusedProgram(t *testing.T) {
	_, err := Open(Options{change: func(spec *ebpf.CollectionSpec) {
		spec.Programs[kernelProgSchedSwitch].Instructions = asm.Instructions{
			asm.LoadMem(asm.R0, asm.R10, 8, asm.DWord), // above the stack
			asm.Return(),
		}
	}})
	var refused *ebpf.VerifierError
	if !errors.As(err, &refused) {
		t.Fatalf("%v", err)
	}
	log := fmt.Sprintf("%+v", refused)
	if !strings.Contains(log, "r0 = *(u64 *)(r10 +8)") || !strings.Contains(err.Error(), kernelProgSchedSwitch) {
		t.Errorf("error: %v\nlog: %s", err, log)
	}
	if hint := Explain(err); !strings.Contains(hint, "refused") {
		t.Errorf("hint: %q", hint)
	}
}

// The verifier accepts the programs of a large machine too: its work grows with the CPUs, and no faster.
func TestManyCPUs(t *testing.T) {
	const cpus = 512
	open(t, Options{Use: true, Ahead: true, change: func(spec *ebpf.CollectionSpec) {
		err := errors.Join(spec.Variables[kernelVarCpus].Set(uint32(cpus)),
			spec.Variables[kernelVarWords].Set(uint32(cpus/64)))
		if err != nil {
			t.Fatal(err)
		}
	}})
}
