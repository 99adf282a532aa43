package runq

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

func TestMain(m *testing.M) {
	cgrouptest.Main(m, map[string]func(){"nap": nap, "threads": threadStorm, "execs": threadExecs})
}

// nap wakes every 2 ms on CPU 0, and does next to nothing.
func nap() {
	cgrouptest.Stay(0)
	for end := monotonic() + time.Minute; monotonic() < end; {
		rest := unix.NsecToTimespec(int64(2 * ms))
		_ = unix.Nanosleep(&rest, nil) // a signal only ends it early
	}
}

// cold is more than fits into a CPU's own caches, where the programs find nothing of theirs then.
const cold = 4 << 20

// What the programs cost a context switch of two threads in a watched container, in a pod: the time of a switch with
// them less that without, each in turn, and the kernel's figure for each program, with the cost of measuring it.
//
//	go test -run '^$' -bench Switch -benchtime 20x ./internal/probe/runq
func BenchmarkSwitch(b *testing.B) {
	pod := cgrouptest.New(b)
	container := pod.Child("container")
	pingPong := container.PingPong()
	b.Run("with and without", func(b *testing.B) {
		p := load(b, Options{})
		set(b, p, container, 1)
		var without, with, more []time.Duration
		for b.Loop() {
			off := pingPong(0)
			if err := p.Start(); err != nil {
				b.Fatal(err)
			}
			on := pingPong(0)
			stop(b, p)
			without, with, more = append(without, off), append(with, on), append(more, on-off)
		}
		b.ReportMetric(float64(cgrouptest.Median(without)), "ns/without")
		b.ReportMetric(float64(cgrouptest.Median(with)), "ns/with")
		b.ReportMetric(float64(cgrouptest.Median(more)), "ns/programs")
		b.ReportMetric(0, "ns/op")
	})
	for _, c := range []struct {
		name     string
		siblings map[int]int
		walk     int
	}{
		{"by the kernel", nil, 0},
		{"by the kernel, a core of two threads", map[int]int{0: 1, 1: 0}, 0},
		{"by the kernel, cold caches", nil, cold},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := open(b, Options{Siblings: c.siblings, Stats: true})
			set(b, p, container, 1)
			for b.Loop() {
				pingPong(c.walk)
			}
			b.ReportMetric(0, "ns/op")
			costs, err := p.Cost()
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range costs {
				if c.Runs > 1000 {
					b.ReportMetric(float64(c.Total)/float64(c.Runs), "ns/"+c.Program)
				}
			}
		})
	}
}

// stop detaches the programs, which Start attaches again.
func stop(t testing.TB, p *Probe) {
	t.Helper()
	if err := p.programs.Detach(); err != nil {
		t.Fatal(err)
	}
}
