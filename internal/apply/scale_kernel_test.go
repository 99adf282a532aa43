package apply

import (
	"errors"
	"path"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// TestKernelScales: the kernel doubles period, quota and burst of a group whose period timer is late in four turns of
// its loop, and a restore after a crash keeps the owner's share of a CPU.
func TestKernelScales(t *testing.T) {
	g := cgrouptest.New(t)
	tree := g.Tree()
	for file, text := range map[cgroup.Version]map[string]string{
		cgroup.V1: {"cpu.cfs_period_us": "1000"},
		cgroup.V2: {"cpu.max": "max 1000"},
	}[tree.Version()] {
		if err := g.Dir().WriteFile(path.Join(tree.Dir(g.Path), file), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	g.Limit(ms)
	inode, err := tree.Inode(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	disk := journal.NewMemory()
	open := func() *Writer {
		j, err := journal.OpenDisk(disk, "boot", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return New(tree, j, time.Now)
	}
	changes := []plan.Change{{Cgroup: workload.ID{Path: g.Path, Inode: inode}, Knob: plan.Quota, From: "1ms",
		To: "1.5ms"}}
	want := []cpu.Bandwidth{{Quota: 3 * ms, Period: 2 * ms}, {Quota: 2 * ms, Period: 2 * ms}}
	if canBurst(tree, g.Path) {
		changes = append(changes, plan.Change{Cgroup: changes[0].Cgroup, Knob: plan.Burst, From: "0s", To: "1ms"})
		want[0].Burst = 2 * ms
	}
	for _, r := range open().Do(changes) {
		if r.Outcome != plan.Applied {
			t.Fatalf("%+v", r)
		}
	}
	delayTimers(t, ms)
	g.Spin(1)
	bandwidth := func() cpu.Bandwidth {
		b, err := tree.Bandwidth(g.Path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for end := time.Now().Add(20 * time.Second); bandwidth().Period == ms && time.Now().Before(end); {
		time.Sleep(10 * ms)
	}
	if got := bandwidth(); got != want[0] {
		t.Fatalf("the kernel made %+v of it, want %+v", got, want[0])
	}
	results := open().Restore(nil, false)
	if got := bandwidth(); got != want[1] {
		t.Errorf("restored %+v, want %+v: %+v", got, want[1], results)
	}
}

// delayTimers has the kernel take longer than a period for each turn of the loop in sched_cfs_period_timer, for every
// group with this period, until the test ends.
func delayTimers(t *testing.T, period time.Duration) {
	t.Helper()
	// the verifier follows each turn, so that one has to take long: it copies that much
	const turns, size = 4000, 16 << 10
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "delay_timers", Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceFEntry,
		AttachTo:   "hrtimer_forward", License: "GPL", Instructions: asm.Instructions{
			asm.LoadMem(asm.R6, asm.R1, 16, asm.DWord), // the interval
			asm.JNE.Imm(asm.R6, int32(period), "end"),
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.Mov.Reg(asm.R9, asm.R0),
			asm.FnKtimeGetNs.Call(),
			asm.Mov.Reg(asm.R7, asm.R0),
			asm.Mov.Imm(asm.R8, 0),
			asm.Mov.Reg(asm.R1, asm.R9).WithSymbol("again"),
			asm.Mov.Imm(asm.R2, size),
			asm.Mov.Reg(asm.R3, asm.R9),
			asm.FnProbeReadKernel.Call(),
			asm.FnKtimeGetNs.Call(),
			asm.Sub.Reg(asm.R0, asm.R7),
			asm.JGT.Imm(asm.R0, int32(period*3/2), "end"),
			asm.Add.Imm(asm.R8, 1),
			asm.JLT.Imm(asm.R8, turns, "again"),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("end"),
			asm.Return(),
		}})
	if errors.Is(err, unix.EPERM) {
		cgrouptest.Elsewhere(t, "tier vm", "no program may be attached to a function here: %v", err)
	}
	if err != nil {
		cgrouptest.Skip(t, "no program in hrtimer_forward: %v", err)
	}
	t.Cleanup(func() { p.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		cgrouptest.Skip(t, "no program in hrtimer_forward: %v", err)
	}
	t.Cleanup(func() { l.Close() })
}
