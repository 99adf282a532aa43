package runq

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/programs"
)

// What a run of each program takes on average, all of it on CPU 0: in a virtual machine whose time is counted in
// instructions (test/vm/instructions.sh) nothing else is counted then. Four groups are throttled in each period, in
// pods, and sixteen more wake and sleep.
func BenchmarkInstructions(b *testing.B) {
	cgrouptest.Stay(0)
	p, err := probe.Open(probe.Options{Use: true, Ahead: true, Stats: true})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	w := open(b, Options{Stats: true})
	var watched []uint64
	for i := range 20 {
		pod := cgrouptest.New(b)
		container := pod.Child("container")
		pod.Limit(40 * ms)
		container.Limit(20 * ms)
		for _, g := range []*cgrouptest.Group{pod, container} {
			id, err := g.Tree().Inode(g.Path)
			if err != nil {
				b.Fatal(err)
			}
			watched = append(watched, id)
		}
		set(b, w, container, 1)
		if i < 4 {
			cgrouptest.Pin(b, 0, container.Spin(1)[0])
		} else {
			cmd, _, _ := cgrouptest.Dialogue(b, "nap")
			container.Move(cmd.Process.Pid)
		}
	}
	if err := p.Watch(watched); err != nil {
		b.Fatal(err)
	}
	measuring := empty(b)
	for range b.N { // Loop would run it more than once
		time.Sleep(time.Second)
	}
	base := mean(b, "measuring", measuring())
	for from, cost := range map[string]func() ([]programs.Cost, error){"throttle": p.Cost, "waits": w.Cost} {
		list, err := cost()
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range list {
			if c.Runs > 20 {
				b.ReportMetric(mean(b, from, c)-base, "ns/"+from+"-"+c.Program)
			}
		}
	}
	for _, m := range p.Missing() {
		b.Errorf("%s: %v", m.Part, m.Err)
	}
	b.ReportMetric(base, "ns/measuring")
	b.ReportMetric(0, "ns/op")
}

// mean is the mean cost of a run.
func mean(b *testing.B, from string, c programs.Cost) float64 {
	b.Logf("%s %s: %d runs", from, c.Program, c.Runs)
	return float64(c.Total) / float64(max(1, c.Runs))
}

// empty attaches a program that does nothing: its cost is that of measuring.
func empty(b *testing.B) func() programs.Cost {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "nothing", Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceRawTp,
		AttachTo:   "sched_switch", License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0),
			asm.Return()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { program.Close() })
	l, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return func() programs.Cost {
		stats, err := program.Stats()
		if err != nil {
			b.Fatal(err)
		}
		return programs.Cost{Program: "nothing", Runs: int64(stats.RunCount), Total: stats.Runtime}
	}
}
