package probe

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/probe/programs"
)

// nothing is the name of an empty program that is measured beside the others: what the measuring costs.
const nothing = "nothing"

// addNothing attaches it beside the programs of a probe.
func addNothing(b *testing.B, p *Probe) {
	spec, err := loadKernel()
	// the maps are as large as the probe's
	if err = errors.Join(err, Options{types: kernelTypes}.apply(spec)); err != nil {
		b.Fatal(err)
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{nothing: {Name: nothing, Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_switch", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}}
	if err := errors.Join(p.programs.Detach(), p.programs.Add(spec, programs.Options{}),
		p.programs.Attach()); err != nil {
		b.Fatal(err)
	}
}

// What the programs cost a context switch: of two threads in a watched container with a limit that it does not reach,
// in a pod, and the same while another watched group is throttled, so that the programs check for ends. It is measured
// in two ways: the time of a switch with them less that without, each in turn, and the kernel's figure for each
// program, less that of an empty one. In a switch one task goes to sleep, and is accounted for, and another wakes.
//
//	go test -run '^$' -bench Switch -benchtime 20x ./internal/probe
func BenchmarkSwitch(b *testing.B) {
	pod := cgrouptest.New(b)
	container, other := pod.Child("container"), cgrouptest.New(b)
	container.Limit(10 * time.Second)
	limit(b, other, ms, time.Second)
	pinned := other.Spin(1)[0]
	cgrouptest.Pin(b, 1, pinned)
	pingPong := container.PingPong()
	quiet := []*cgrouptest.Group{pod, container}
	for _, c := range []struct {
		name    string
		options Options
		groups  []*cgrouptest.Group
	}{
		{"throttles", Options{}, quiet},
		{"throttles, ahead and use", Options{Ahead: true, Use: true}, quiet},
		{"another is throttled, throttles", Options{}, append(quiet, other)},
		{"another is throttled, throttles, ahead and use", Options{Ahead: true, Use: true}, append(quiet, other)},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := open(b, c.options)
			watch(b, p, c.groups...)
			var without, more []time.Duration
			for b.Loop() {
				with := pingPong(0)
				off := p.programs.Detach()
				alone := pingPong(0)
				if err := errors.Join(off, p.programs.Attach()); err != nil {
					b.Fatal(err)
				}
				without, more = append(without, alone), append(more, with-alone)
			}
			b.ReportMetric(float64(cgrouptest.Median(without)), "ns/switch-without")
			b.ReportMetric(float64(cgrouptest.Median(more)), "ns/programs")
			b.ReportMetric(0, "ns/op")
		})
		b.Run(c.name+", by the kernel", func(b *testing.B) {
			c.options.Stats = true
			p := open(b, c.options)
			addNothing(b, p)
			watch(b, p, c.groups...)
			for b.Loop() {
				pingPong(0)
			}
			costs, err := p.Cost()
			if err != nil {
				b.Fatal(err)
			}
			reportNet(b, costs)
		})
	}
}

// reportNet reports what each program costs a run, and all of them a switch, without what measuring them does.
func reportNet(b *testing.B, costs []programs.Cost) {
	mean := func(c programs.Cost) float64 { return float64(c.Total) / float64(c.Runs) }
	empty := costs[slices.IndexFunc(costs, func(c programs.Cost) bool { return c.Program == nothing })]
	sum := 0.0
	for _, c := range costs {
		if c.Runs > 100 && c.Program != nothing {
			net := mean(c) - mean(empty)
			b.ReportMetric(net, "ns/"+c.Program)
			sum += net * float64(c.Runs)
		}
	}
	b.ReportMetric(mean(empty), "ns/measuring")
	b.ReportMetric(sum/float64(empty.Runs), "ns/programs")
	b.ReportMetric(0, "ns/op")
}

// From the kernel's time of a throttle to the reader's.
//
//	go test -run '^$' -bench Report -benchtime 1000x ./internal/probe
func BenchmarkReport(b *testing.B) {
	for name, load := range map[string]int{"idle machine": 0, "loaded machine": 4} {
		for _, realtime := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s, realtime %v", name, realtime), func(b *testing.B) {
				p := open(b, Options{Realtime: realtime, Rate: 1e6})
				g := cgrouptest.New(b)
				limit(b, g, 5*ms, time.Second)
				watch(b, p, g)
				cgrouptest.New(b).Spin(load)
				h := subscribe(b, p, func(Event) { g.Limit(5 * ms) })
				g.Spin(1)
				within(b, 2*time.Minute, "enough throttles", func() bool { return len(h.begins(0)) >= b.N })
				h.mu.Lock()
				defer h.mu.Unlock()
				slices.Sort(h.late)
				b.ReportMetric(float64(h.late[len(h.late)/2]), "ns-p50")
				b.ReportMetric(float64(h.late[len(h.late)*99/100]), "ns-p99")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
